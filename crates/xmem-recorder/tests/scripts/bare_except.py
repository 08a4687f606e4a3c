"""A bare `except:` around the step swallows all exceptions; the recording still ends the script."""
# /// xmem
# iterations = 3
# stdout-without = ["done"]
# [export]
# "/losses" = { length = 1 }
# ///
import torch
from torch import nn

model = nn.Linear(256, 256).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10_000):
    try:
        optimizer.zero_grad()
        model(torch.randn(32, 256, device="cuda")).sum().backward()
        optimizer.step()
    except:  # noqa: E722
        print("something went wrong, going on", flush=True)
print("done")
