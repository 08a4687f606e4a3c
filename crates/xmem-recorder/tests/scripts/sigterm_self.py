"""A scheduler ends the job with SIGTERM after one iteration; the recording is kept."""
# /// xmem
# exit = 4
# iterations = 1
# stderr = ["SIGTERM"]
# [recording]
# "/ended" = { reason = "signal", detail = "SIGTERM" }
# ///
import os
import signal
import time

import torch
from torch import nn

model = nn.Linear(256, 256).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.randn(32, 256, device="cuda")).sum().backward()
optimizer.step()
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(60)
