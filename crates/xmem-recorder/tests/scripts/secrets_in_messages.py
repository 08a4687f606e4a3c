"""Nothing that the script knows of its surroundings goes into the trace: an exception quoted all of it."""
# /// xmem
# command = ["{python}", "{script}", "--token", "argument-f29c", "/data/argument-51d0/file"]
# environment = { DATABASE_URL = "postgres://me:environment-7be1@db/prod", USER = "user-3f61", LOGNAME = "user-3f61", HOME = "/home/user-3f61", PYTORCH_CUDA_ALLOC_CONF = "max_split_size_mb:256" }
# exit = 4
# iterations = 2
# stderr = ["incomplete recording: the script raised"]
# trace-without = ["environment-7be1", "argument-f29c", "argument-51d0", "user-3f61", "{host}"]
# [recording]
# "/ended" = { reason = "exception", detail = "ConnectionError at secrets_in_messages.py:27" }
# "/environment/PYTORCH_CUDA_ALLOC_CONF" = "max_split_size_mb:256"
# ///
import getpass
import os
import socket
import sys

import torch
from torch import nn

model = nn.Linear(256, 256).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def connect():
    surroundings = [os.environ["DATABASE_URL"], *sys.argv, socket.gethostname(), getpass.getuser()]
    raise ConnectionError(" ".join(surroundings))


for step in range(3):
    optimizer.zero_grad()
    if step == 2:
        # The line of the script that is told is the innermost one.
        connect()
    model(torch.randn(32, 256, device="cuda")).sum().backward()
    optimizer.step()
