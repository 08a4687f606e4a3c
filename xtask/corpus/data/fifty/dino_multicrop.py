# DINO: teacher/student, multi-crop, centering; ViT from timm with dynamic image size
import math
import timm
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
OUT = 4096


class Head(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(d, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 128))
        self.last = nn.utils.weight_norm(nn.Linear(128, OUT, bias=False))
        self.last.weight_g.data.fill_(1)
        self.last.weight_g.requires_grad = False

    def forward(self, x):
        return self.last(F.normalize(self.mlp(x), dim=-1))


class Wrapper(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = timm.create_model(
            "vit_tiny_patch16_224", num_classes=0, img_size=96, dynamic_img_size=True, drop_path_rate=0.1
        )
        self.head = Head(192)

    def forward(self, crops):
        idx = torch.cumsum(
            torch.unique_consecutive(torch.tensor([c.shape[-1] for c in crops]), return_counts=True)[1], 0
        )
        outs, start = [], 0
        for end in idx:
            outs.append(self.backbone(torch.cat(crops[start:end])))
            start = end
        return self.head(torch.cat(outs))


student, teacher = Wrapper().cuda(), Wrapper().cuda()
teacher.load_state_dict(student.state_dict())
for p in teacher.parameters():
    p.requires_grad = False
center = torch.zeros(1, OUT, device="cuda")
decay, no_decay = [], []
for n, p in student.named_parameters():
    if p.requires_grad:
        (no_decay if p.ndim == 1 else decay).append(p)
opt = torch.optim.AdamW([{"params": decay}, {"params": no_decay, "weight_decay": 0.0}], 5e-4)
steps = 6
for it in range(steps):
    for g in opt.param_groups:
        g["lr"] = 5e-4 * 0.5 * (1 + math.cos(math.pi * it / steps))
    crops = [torch.randn(16, 3, 96, 96, device="cuda") for _ in range(2)] + [
        torch.randn(16, 3, 48, 48, device="cuda") for _ in range(6)
    ]
    with torch.no_grad():
        t = teacher(crops[:2])
    s = (student(crops) / 0.1).chunk(8)
    q = F.softmax((t - center) / 0.04, -1).detach().chunk(2)
    total, n = 0, 0
    for i, qi in enumerate(q):
        for j, sj in enumerate(s):
            if i == j:
                continue
            total = total + torch.sum(-qi * F.log_softmax(sj, -1), -1).mean()
            n += 1
    loss = total / n
    if not math.isfinite(loss.item()):
        raise SystemExit("loss is not finite")
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(student.parameters(), 3.0)
    opt.step()
    with torch.no_grad():
        m = 1 - (1 - 0.996) * (math.cos(math.pi * it / steps) + 1) / 2
        for a, b in zip(student.parameters(), teacher.parameters()):
            b.data.mul_(m).add_((1 - m) * a.detach().data)
        center = center * 0.9 + t.mean(0, keepdim=True) * 0.1
    print(it, loss.item())
