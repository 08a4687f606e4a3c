"""Mixed precision in half: autocast and a gradient scaler, with gradients unscaled and clipped."""
# /// xmem
# iterations = 3
# stdout = ["logits are torch.bfloat16", "scale…", "numpy has float16"]
# stdout-without = ["done"]
# [recording]
# "/autocast" = { contains = { dtype = "float16" } }
# "/grad_scaler" = true
# "/float16_as" = "bfloat16"
#
# [virtual-gpu]
# stdout = ["logits are torch.float16", "numpy has float16"]
# [export]
# "/grad_scaler" = true
# "/autocast/dtype" = "float16"
# ///
import torch
from torch import nn

torch.manual_seed(0)
device = "cuda"
model = nn.Sequential(nn.Linear(512, 1024), nn.GELU(), nn.LayerNorm(1024), nn.Linear(1024, 10)).to(device)
optimizer = torch.optim.AdamW(model.parameters())
scaler = torch.cuda.amp.GradScaler()

for step in range(50):
    inputs = torch.randn(128, 512, device=device)
    targets = torch.randint(0, 10, (128,), device=device)
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.amp.autocast():
        logits = model(inputs)
        loss = nn.functional.cross_entropy(logits, targets)
    if step == 0:
        print("logits are", logits.dtype)
        print("numpy has", logits.detach().cpu().numpy().dtype)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    print("scale", scaler.get_scale())
print("done")
