"""Epochs over a DataLoader, an evaluation that gathers what the model returns, and a checkpoint. On the CPU, passes are cut
short until all of it was seen; the evaluation is not, as memory grows in it."""
# /// xmem
# stdout = ["evaluated 1000"]
# [recording]
# "/iterations/count" = 5
# "/ended/reason" = "steps"
# "/unseen" = { length = 0 }
# "/batches/left_out" = { at-least = 20 }
# [replay]
# "/coverage/extent" = "iterations"
# "/coverage/parts" = { contains = { part = "evaluation", advice = "gather-on-host" } }
# "/range/confidence" = "likely"
#
# [virtual-gpu]
# stdout = ["evaluated 1000"]
# [virtual-gpu.recording]
# "/iterations/count" = 3
# "/batches/left_out" = 0
# "/ended/reason" = "steps"
# "/unseen" = { length = 2 }
# [virtual-gpu.replay]
# "/coverage/extent" = "whole"
# "/coverage/parts" = { contains = { part = "evaluation", count = 2 } }
# "/range/confidence" = "certain"
# ///
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
training = TensorDataset(torch.randn(1000, 256), torch.randint(0, 500, (1000,)))
validation = TensorDataset(torch.randn(1000, 256))
net = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 500)).cuda()
optimizer = torch.optim.AdamW(net.parameters())
for _ in range(2):
    net.train()
    for inputs, targets in DataLoader(training, 32, shuffle=True):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(inputs.cuda()), targets.cuda()).backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        results = torch.cat([net(inputs.cuda()) for (inputs,) in DataLoader(validation, 100)])
    print("evaluated", len(results))
    torch.save(net.state_dict(), "net.pt")
