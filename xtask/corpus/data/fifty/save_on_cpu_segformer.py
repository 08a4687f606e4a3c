# Segmentation with activations parked in pinned host memory between forward and backward
import torch
import torch.nn as nn
from torch.autograd.graph import save_on_cpu


def conv(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.GroupNorm(8, o), nn.SiLU(inplace=True))


class Net(nn.Module):
    def __init__(self, classes=19, w=32):
        super().__init__()
        self.stem = conv(3, w)
        self.down = nn.ModuleList(
            [
                nn.Sequential(
                    nn.MaxPool2d(2), conv(w * 2**i, w * 2 ** (i + 1)), conv(w * 2 ** (i + 1), w * 2 ** (i + 1))
                )
                for i in range(3)
            ]
        )
        self.up = nn.ModuleList([conv(w * 2 ** (i + 1) + w * 2**i, w * 2**i) for i in reversed(range(3))])
        self.head = nn.Conv2d(w, classes, 1)

    def forward(self, x):
        x = self.stem(x)
        skips = []
        for d in self.down:
            skips.append(x)
            with save_on_cpu(pin_memory=True):
                x = d(x)
        for u in self.up:
            x = nn.functional.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
            x = u(torch.cat([x, skips.pop()], 1))
        return self.head(x)


net = Net().cuda()
opt = torch.optim.AdamW(net.parameters(), 6e-5)
sched = torch.optim.lr_scheduler.PolynomialLR(opt, 8, power=0.9)
loss_fn = nn.CrossEntropyLoss(ignore_index=255)
for i in range(5):
    img = torch.randn(4, 3, 128, 256).cuda(non_blocking=True)
    lab = torch.randint(0, 19, (4, 128, 256)).cuda(non_blocking=True)
    loss = loss_fn(net(img), lab)
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    print("it", i, "loss", round(loss.item(), 4))
net.eval()
hist = torch.zeros(19, 19, device="cuda")
with torch.no_grad():
    for i in range(3):
        img, lab = torch.randn(2, 3, 128, 256).cuda(), torch.randint(0, 19, (2, 128, 256)).cuda()
        pred = net(img).argmax(1)
        hist += torch.bincount(19 * lab.flatten() + pred.flatten(), minlength=361).reshape(19, 19)
iou = hist.diag() / (hist.sum(0) + hist.sum(1) - hist.diag())
print("mIoU", iou.mean().item())
