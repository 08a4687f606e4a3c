"""The user's own sitecustomize runs, too."""
# /// xmem
# iterations = 3
# environment = { PYTHONPATH = "{scripts}/with_sitecustomize" }
# stdout = ["company settings are loaded"]
# ///
import builtins

import torch
from torch import nn

print("company settings are", builtins.COMPANY_SETTINGS)
model = nn.Linear(256, 256).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(20):
    optimizer.zero_grad()
    model(torch.randn(32, 256, device="cuda")).sum().backward()
    optimizer.step()
