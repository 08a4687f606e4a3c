"""A plain training loop that uses only `.cuda()`."""
# /// xmem
# iterations = 3
# stdout = ["step 0 loss"]
# stdout-without = ["done"]
# stderr = ["recorded 3 iterations"]
# [inspect]
# "/job/optimizers" = ["Adam"]
# [recording]
# "/schema" = "xmem.recording.1"
# "/reported_device" = "a100-40g"
# "/stacks" = true
# "/ended/reason" = "steps"
# "/iterations/by" = "optimizer steps"
# "/iterations/count" = 3
# "/iterations/backwards" = 3
# "/models" = { length = 1 }
# "/models/0/class" = "torch.nn.modules.container.Sequential"
# "/tensors" = { length = 6 }
# "/tensors/0/name" = "0.weight"
# "/tensors/0/kind" = "parameter"
# "/tensors/0/gradient/bytes" = 2097152
# "/optimizers" = { length = 1 }
# "/optimizers/0/implementation" = "default"
# "/optimizers/0/steps" = 3
# "/optimizers/0/state" = { contains = { name = "exp_avg_sq", tensors = 6, bytes = 6340648 } }
# "/batch/size" = 256
# "/redirected" = { contains = { what = "Tensor.cuda", times = 12 } }
# "/notes" = []
# ///
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)).cuda()
criterion = nn.CrossEntropyLoss().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for step in range(100):
    inputs = torch.randn(256, 512).cuda(non_blocking=True)
    targets = torch.randint(0, 10, (256,)).cuda()
    optimizer.zero_grad()
    loss = criterion(model(inputs), targets)
    loss.backward()
    optimizer.step()
    print("step", step, "loss", loss.item(), flush=True)
print("done")
