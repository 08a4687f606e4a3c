"""An error after the model is made, and before the first iteration: there is no verdict."""
# /// xmem
# exit = 4
# stderr = ["FileNotFoundError: no data", "recorded 0 iterations", "…a trace without a complete iteration gets no verdict"]
# [recording]
# "/ended/reason" = "exception"
# "/iterations/count" = 0
# [replay]
# "/verdict" = "withheld"
# "/withheld" = ["no-iteration"]
# ///
import torch
from torch import nn

model = nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
raise FileNotFoundError("no data")
