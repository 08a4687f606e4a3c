"""An error in the set-up of a process that torch's launcher started: xmem names it."""
# /// xmem
# exit = 3
# trace = "none"
# command = ["{python}", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "1", "{script}"]
# stderr = ["…the script raised FileNotFoundError at torchrun_raises.py:"]
# stderr-without = ["…SIGKILL…"]
# ///
import torch
from torch import nn

model = nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
raise FileNotFoundError("no data")
