"""Integers of the GPU that are added up, printed and saved: they decide no size, and are integers to everyone."""
# /// xmem
# iterations = 3
# stdout-without = ["done"]
# [virtual-gpu.replay]
# "/verdict" = "fits"
# "/withheld" = []
# ///
import copy
import io
import json
import pickle

import torch
from torch import nn

linear = nn.Linear(64, 10).cuda()
optimizer = torch.optim.SGD(linear.parameters(), lr=0.1)
correct, seen = 0, 0
for step in range(20):
    optimizer.zero_grad()
    labels = torch.randint(0, 10, (256,)).cuda()
    logits = linear(torch.randn(256, 64, device="cuda"))
    correct += (logits.argmax(1) == labels).sum().item()
    seen += len(labels)
    text = f"{step}: {correct} of {seen}, {correct / seen:.3f}, {100 * correct // seen:3d} %"
    assert json.loads(json.dumps({"correct": correct}))["correct"] == correct, text
    assert type(pickle.loads(pickle.dumps(correct))) is int and isinstance(correct, int)
    assert copy.deepcopy([correct]) == [correct] and correct in {correct: 1} and -correct <= abs(correct)
    torch.save({"correct": correct}, io.BytesIO())
    nn.functional.cross_entropy(logits, labels).backward()
    optimizer.step()
print("done")
