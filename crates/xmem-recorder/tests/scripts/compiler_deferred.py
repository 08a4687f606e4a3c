"""torch's compiler is not imported by an optimizer, and is there as soon as the script uses it."""
# /// xmem
# iterations = 3
# stdout = ["deferred", "imported once"]
# [recording]
# "/iterations/count" = 3
# "/notes" = []
# ///
import inspect
import sys

import torch
from torch import nn

model = nn.Linear(512, 512).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(100):
    model(torch.randn(8, 512, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    if step == 0:
        # Looks at all modules that were imported.
        inspect.getmodule(optimizer.step)
        # What the compiler consists of is not there.
        print("deferred" if "torch._dynamo.eval_frame" not in sys.modules else "imported by the optimizer", flush=True)
    if step == 1:
        import torch._dynamo.config
        import torch._dynamo as compiler

        parts = compiler, torch._dynamo, sys.modules["torch._dynamo"]
        same = all(part is parts[0] for part in parts) and compiler.config is sys.modules["torch._dynamo.config"]
        same = same and compiler.config is torch._dynamo.config and compiler.eval_frame is sys.modules["torch._dynamo.eval_frame"]
        print("imported once" if same else "imported twice", flush=True)
