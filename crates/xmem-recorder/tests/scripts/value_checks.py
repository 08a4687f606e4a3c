"""Checks of values as training loops have them: nothing is infinite, no training ends early, no mask changes."""
# /// xmem
# iterations = 3
# stdout = ["scale 1024.0 learning rate 0.001"]
# stdout-without = ["stopped…", "done"]
# [virtual-gpu]
# stdout = ["scale 1024.0 learning rate 0.001"]
# stdout-without = ["done"]
# [virtual-gpu.replay]
# "/verdict" = "fits"
# # By the line that keeps the best loss.
# "/range/confidence" = "likely"
# ///
import math

import torch
from torch import nn

model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=3)
scaler = torch.cuda.amp.GradScaler(init_scale=1024.0)
causal = nn.Transformer.generate_square_subsequent_mask(256, device="cuda")
best, waited = math.inf, 0


def stop(reason):
    print("stopped:", reason, flush=True)
    raise SystemExit(1)


for _ in range(20):
    optimizer.zero_grad()
    with torch.autocast("cuda", torch.float16):
        loss = model(torch.randn(64, 256, device="cuda")).square().mean()
    if loss.isnan() or torch.isinf(loss).any() or not torch.isfinite(loss):
        stop("the loss is not finite")
    if not torch.isfinite(loss).all() or not math.isfinite(loss.item()):
        stop("the loss is not finite on the host")
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    if not all(torch.isfinite(p.grad).all() for p in model.parameters()):
        stop("a gradient is not finite")
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)
    if norm > 1e9 or torch.isnan(norm):
        stop("the norm of the gradients")
    scaler.step(optimizer)
    scaler.update()
    schedule.step(loss)
    best, waited = (loss.item(), 0) if loss.item() < best else (best, waited + 1)
    if waited > 3:
        stop("no progress")
    other = nn.Transformer.generate_square_subsequent_mask(256, device="cuda")
    if not (causal == other).all():
        stop("a mask is another one")
    print("scale", scaler.get_scale(), "learning rate", optimizer.param_groups[0]["lr"], flush=True)
print("done")
