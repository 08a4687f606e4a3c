# Burgers' equation by a PINN: Adam first, then L-BFGS with strong Wolfe line search
import torch
import torch.nn as nn

torch.manual_seed(1234)


class MLP(nn.Module):
    def __init__(self, width=128, depth=6):
        super().__init__()
        dims = [2] + [width] * depth + [1]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(dims, dims[1:]))
        for l in self.layers:
            nn.init.xavier_normal_(l.weight)

    def forward(self, x, t):
        h = torch.cat([x, t], 1)
        for l in self.layers[:-1]:
            h = torch.tanh(l(h))
        return self.layers[-1](h)


net = MLP().cuda()
xf = (torch.rand(10000, 1) * 2 - 1).cuda().requires_grad_()
tf = torch.rand(10000, 1).cuda().requires_grad_()
x0 = torch.linspace(-1, 1, 256)[:, None].cuda()
u0 = -torch.sin(torch.pi * x0)


def losses():
    u = net(xf, tf)
    one = torch.ones_like(u)
    (ut,) = torch.autograd.grad(u, tf, one, create_graph=True)
    (ux,) = torch.autograd.grad(u, xf, one, create_graph=True)
    (uxx,) = torch.autograd.grad(ux, xf, one, create_graph=True)
    f = ut + u * ux - 0.01 / torch.pi * uxx
    return (f**2).mean() + ((net(x0, torch.zeros_like(x0)) - u0) ** 2).mean()


adam = torch.optim.Adam(net.parameters(), 1e-3)
for i in range(10):
    adam.zero_grad()
    loss = losses()
    loss.backward()
    adam.step()
print("adam", loss.item())
lbfgs = torch.optim.LBFGS(
    net.parameters(), lr=1.0, max_iter=8, history_size=20, line_search_fn="strong_wolfe", tolerance_grad=1e-9
)
n = 0


def closure():
    global n
    lbfgs.zero_grad()
    loss = losses()
    loss.backward()
    n += 1
    return loss


for outer in range(2):
    print("lbfgs", outer, lbfgs.step(closure).item(), "evaluations", n)
