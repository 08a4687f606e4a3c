"""A mixture of experts, each called with the tokens that the router gives it (Switch Transformer, Mixtral)."""
# /// xmem
# iterations = 3
# stdout-without = ["done"]
# [virtual-gpu]
# options = ["--assume", "routing=0..1"]
# contains-cpu = 1.0
# [virtual-gpu.replay]
# "/verdict" = "fits"
# "/range/uncertainties" = { contains = { name = "assumed_values" } }
# ///
import torch
from torch import nn
from torch.nn.functional import one_hot, softmax

WIDTH, EXPERTS, CHOSEN = 128, 8, 2


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(WIDTH, EXPERTS, bias=False)
        layers = lambda: [nn.Linear(WIDTH, 512), nn.GELU(), nn.Linear(512, WIDTH)]
        self.experts = nn.ModuleList(nn.Sequential(*layers()) for _ in range(EXPERTS))

    def forward(self, x):
        weights, chosen = torch.topk(softmax(self.gate(x), dim=1), CHOSEN, dim=-1)
        out = torch.zeros_like(x)
        masks = one_hot(chosen, num_classes=EXPERTS).permute(2, 1, 0)
        for expert, mask in zip(self.experts, masks):
            rank, tokens = torch.where(mask)
            out.index_add_(0, tokens, expert(x[tokens]) * weights[tokens, rank, None])
        return out


model = nn.Sequential(Experts(), Experts()).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(20):
    optimizer.zero_grad()
    model(torch.randn(2048, WIDTH, device="cuda")).square().mean().backward()
    optimizer.step()
print("done")
