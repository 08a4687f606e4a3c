# 3-D U-Net, deep supervision, Dice + CE, sliding-window validation
import torch
import torch.nn as nn
import torch.nn.functional as F


def block(i, o):
    return nn.Sequential(
        nn.Conv3d(i, o, 3, padding=1),
        nn.InstanceNorm3d(o, affine=True),
        nn.LeakyReLU(0.01, True),
        nn.Conv3d(o, o, 3, padding=1),
        nn.InstanceNorm3d(o, affine=True),
        nn.LeakyReLU(0.01, True),
    )


class UNet3D(nn.Module):
    def __init__(self, c=4, k=4, w=24):
        super().__init__()
        ws = [w, 2 * w, 4 * w, 8 * w]
        self.e = nn.ModuleList(block(i, o) for i, o in zip([c] + ws, ws))
        self.u = nn.ModuleList(nn.ConvTranspose3d(ws[i + 1], ws[i], 2, 2) for i in (2, 1, 0))
        self.d = nn.ModuleList(block(2 * ws[i], ws[i]) for i in (2, 1, 0))
        self.heads = nn.ModuleList(nn.Conv3d(ws[i], k, 1) for i in (2, 1, 0))

    def forward(self, x):
        skips = []
        for i, e in enumerate(self.e):
            x = e(x if i == 0 else F.max_pool3d(x, 2))
            skips.append(x)
        outs = []
        for u, d, h, s in zip(self.u, self.d, self.heads, skips[-2::-1]):
            x = d(torch.cat([u(x), s], 1))
            outs.append(h(x))
        return outs[::-1] if self.training else outs[-1]


def dice_ce(o, t):
    ce = F.cross_entropy(o, t)
    p, y = o.softmax(1), F.one_hot(t, o.size(1)).movedim(-1, 1).float()
    i, u = (p * y).sum((0, 2, 3, 4)), (p + y).sum((0, 2, 3, 4))
    return ce + 1 - ((2 * i + 1e-5) / (u + 1e-5))[1:].mean()


net = UNet3D().cuda()
opt = torch.optim.SGD(net.parameters(), 1e-2, momentum=0.99, nesterov=True, weight_decay=3e-5)
scaler = torch.amp.GradScaler("cuda")
for it in range(5):
    x, t = torch.randn(2, 4, 32, 64, 64).cuda(), torch.randint(0, 4, (2, 32, 64, 64)).cuda()
    opt.zero_grad(set_to_none=True)
    with torch.autocast("cuda", torch.float16):
        outs = net(x)
        loss = sum(
            w * dice_ce(o.float(), t[:, :: 2**k, :: 2**k, :: 2**k])
            for k, (o, w) in enumerate(zip(outs, (0.57, 0.29, 0.14)))
        )
    scaler.scale(loss).backward()
    scaler.unscale_(opt)
    nn.utils.clip_grad_norm_(net.parameters(), 12)
    scaler.step(opt)
    scaler.update()
    print(it, loss.item())
net.eval()
with torch.no_grad(), torch.autocast("cuda", torch.float16):
    vol = torch.randn(1, 4, 64, 96, 96)
    acc, cnt = torch.zeros(1, 4, 64, 96, 96, device="cuda"), torch.zeros(1, 1, 64, 96, 96, device="cuda")
    for z in (0, 32):
        for y in (0, 32):
            for xx in (0, 32):
                sl = (..., slice(z, z + 32), slice(y, y + 64), slice(xx, xx + 64))
                acc[sl] += net(vol[sl].cuda())
                cnt[sl] += 1
    print((acc / cnt).argmax(1).float().mean().item())
