"""asyncio: a server that batches requests, a model in a thread, timeouts and cancellation."""

import asyncio

import torch
from state import exact, report
from torch import nn

torch.manual_seed(6)
model = nn.Sequential(nn.Linear(4, 8), nn.SiLU(), nn.Linear(8, 1)).eval()


async def serve(queue):
    while True:
        waiting = [await queue.get()]
        while not queue.empty() and len(waiting) < 4:
            waiting.append(queue.get_nowait())
        batch = torch.stack([item for item, _ in waiting])
        with torch.inference_mode():
            outputs = await asyncio.to_thread(model, batch)
        for (_, answer), output in zip(waiting, outputs, strict=True):
            if not answer.cancelled():
                answer.set_result(exact(output.double().item()))


async def ask(queue, number):
    answer = asyncio.get_running_loop().create_future()
    await queue.put((torch.full((4,), float(number)), answer))
    return await asyncio.wait_for(answer, 100)


async def main():
    queue = asyncio.Queue()
    server = asyncio.create_task(serve(queue))
    answers = await asyncio.gather(*(ask(queue, number) for number in range(12)))
    slow = asyncio.create_task(asyncio.sleep(1000))
    try:
        await asyncio.wait_for(slow, 0.01)
    except TimeoutError:
        answers.append("timeout")
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(ask(queue, number)) for number in range(3)]
    answers += [task.result() for task in tasks]
    server.cancel()
    try:
        await server
    except asyncio.CancelledError:
        answers.append("cancelled")
    return answers


report(model, answers=asyncio.run(main()))
