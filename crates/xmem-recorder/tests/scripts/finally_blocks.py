"""The end after three steps passes through functions, classes and `finally`, which all run."""
# /// xmem
# iterations = 3
# stdout = ["closing the log", "leaving the context", "atexit runs"]
# stdout-without = ["done"]
# ///
import atexit
import contextlib
import pathlib

import torch
from torch import nn

atexit.register(lambda: print("atexit runs", flush=True))


@contextlib.contextmanager
def timer():
    try:
        yield
    finally:
        print("leaving the context", flush=True)


class Engine:
    def __init__(self):
        self.model = nn.Linear(256, 256).cuda()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def iteration(self):
        self.optimizer.zero_grad()
        self.model(torch.randn(32, 256, device="cuda")).sum().backward()
        self.optimizer.step()

    def fit(self):
        log = open("log.txt", "w")
        try:
            while True:
                self.iteration()
                log.write("step\n")
        finally:
            log.close()
            steps = pathlib.Path("log.txt").read_text().count("step")
            print("closing the log", steps, flush=True)


with timer():
    Engine().fit()
print("done")
