"""Programs that do several things at a time."""

from __future__ import annotations

THREADED = """
from concurrent.futures import ThreadPoolExecutor
import asyncio, contextvars, queue

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        return self.layer(x).relu()

net = Block()
x = torch.ones(2, 3)
"""

PROGRAMS = {
    "pool": """
def main():
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(net, [x[:, :].clone() for _ in range(20)]))
""",
    "replicas": """
class Parallel(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        results = [None, None]
        replicas = [self.module._replicate_for_data_parallel() for _ in results]
        for replica in replicas:
            replica._modules = {"layer": self.module.layer}

        def run(index):
            results[index] = replicas[index](x[index])

        threads = [threading.Thread(target=run, args=(index,)) for index in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return torch.stack(results)

parallel = Parallel(net)

def main():
    return parallel(x)
""",
    "exception in a thread": """
import traceback

def main():
    seen, hook = [], threading.excepthook
    threading.excepthook = lambda args: seen.extend(traceback.format_exception(args.exc_value))
    try:
        thread = threading.Thread(target=lambda: net(x.T))
        thread.start()
        thread.join()
    finally:
        threading.excepthook = hook
    return seen
""",
    "tasks": """
async def step(index, steps):
    y = x[:, :] + index
    for _ in range(steps):
        await asyncio.sleep(0)
        y = net(y)
    return y

async def together():
    return await asyncio.gather(*(step(index, 3) for index in range(3)))

def main():
    return asyncio.run(together())
""",
    "coroutine as forward": """
class Slow(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 3)

    async def forward(self, x):
        x = self.inner(x)
        await asyncio.sleep(0)
        return x * 2

slow = Slow()

async def both():
    return await asyncio.gather(slow(x), slow(x))

def main():
    return asyncio.run(both())
""",
    "generators across modules": """
class Making(nn.Module):
    def forward(self, x):
        def rows():
            for row in x:
                yield row * 2
        return rows()

class Using(nn.Module):
    def forward(self, rows):
        return sum(row.sum() for row in rows)

class Yielding(nn.Module):
    def forward(self, x):
        yield x + 1
        yield net(x)

making, using, yielding = Making(), Using(), Yielding()

def main():
    started = making(x)
    first = next(started)
    return first, using(started), list(yielding(x)), using(yielding(x))
""",
    "context variables": """
current = contextvars.ContextVar("current", default=1)

class Scaling(nn.Module):
    def forward(self, x):
        return x * current.get()

def main():
    scaling = Scaling()
    context = contextvars.copy_context()
    context.run(current.set, 5)
    return scaling(x), context.run(scaling, x), current.get()
""",
    "greenlet-like interleaving": """
def worker(name):
    y = x
    while True:
        command = yield y
        y = net(y) if command else y * 2

def main():
    first, second = worker("a"), worker("b")
    next(first), next(second)
    return first.send(True), second.send(False), first.send(False), second.send(True)
""",
}
