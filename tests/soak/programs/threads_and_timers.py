"""Threads, executors and timers around one model, with thread-local autograd modes and signals."""

import concurrent.futures
import signal
import sys
import threading

import torch
from state import exact, report
from torch import nn

torch.manual_seed(8)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))
found = {}
ticks = 0


def tick(number, frame):
    global ticks
    ticks += 1


def work(number):
    inputs = torch.full((2, 4), float(number))
    if number % 2:
        with torch.no_grad():
            return exact(model(inputs).sum().item())
    (gradient,) = torch.autograd.grad(model(inputs).sum(), model[0].weight)
    return exact(gradient.sum().item())


class Late(Exception):
    pass


def late(number, frame):
    global raised
    if waits:
        raised += 1
        raise Late


signal.signal(signal.SIGUSR1, tick)
threads = [threading.Thread(target=lambda n=n: found.update({str(n): work(n)})) for n in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
with concurrent.futures.ThreadPoolExecutor(3) as pool:
    found["pool"] = list(pool.map(work, range(9)))
timer = threading.Timer(0.01, lambda: found.update(timer=work(3)))
timer.start()
timer.join()
for _ in range(20):
    signal.raise_signal(signal.SIGUSR1)
    model(torch.ones(1, 4))
signal.signal(signal.SIGALRM, late)
stopped = raised = 0
for _ in range(25):
    waits = True
    try:
        # Again each second, as pydevd swallows some of these.
        signal.setitimer(signal.ITIMER_REAL, 0.004, 1)
        while True:
            model(torch.ones(1, 4))
    except Late:
        waits = False
        stopped += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
lost = None if "pydevd" in sys.modules else raised - stopped
report(model, found=found, ticks=ticks, stopped=stopped, lost=lost)
