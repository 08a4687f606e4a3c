"""Mixed precision in bfloat16 with `torch.autocast("cuda")` and the newer, disabled scaler."""
# /// xmem
# torch = ">=2.3"
# iterations = 3
# stdout = ["True torch.bfloat16"]
# stdout-without = ["done"]
# [recording]
# "/autocast" = { contains = { dtype = "bfloat16" } }
# "/grad_scaler" = false
# ///
import torch
from torch import nn

device = torch.device("cuda", 0)
layer = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True)
model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).to(device)
head = nn.Linear(128, 1000).to(device)
parameters = [*model.parameters(), *head.parameters()]
optimizer = torch.optim.AdamW(parameters, lr=1e-4)
scaler = torch.amp.GradScaler("cuda", enabled=False)

for step in range(50):
    tokens = torch.randn(8, 64, 128).to(device)
    targets = torch.randint(0, 1000, (8, 64)).to(device)
    with torch.autocast(device_type="cuda", dtype=torch.bfloat16):
        logits = head(model(tokens))
        if step == 0:
            print(torch.is_autocast_enabled(), logits.dtype)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
print("done")
