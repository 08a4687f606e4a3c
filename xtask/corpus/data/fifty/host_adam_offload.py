# ZeRO-Offload by hand: parameters in bf16 on the GPU, master weights and Adam on the host in pinned memory
import torch
from torch import nn

torch.manual_seed(0)


class HostAdam:
    def __init__(self, params, lr=1e-4):
        self.params = [p for p in params if p.requires_grad]
        self.master = [p.detach().float().cpu().pin_memory() for p in self.params]
        self.grads = [torch.zeros_like(m).pin_memory() for m in self.master]
        for m, g in zip(self.master, self.grads):
            m.requires_grad_(True)
            m.grad = g
        self.inner = torch.optim.AdamW(self.master, lr=lr, weight_decay=0.1)

    @torch.no_grad()
    def step(self):
        for p, g in zip(self.params, self.grads):
            g.copy_(p.grad, non_blocking=True)
            p.grad = None
        torch.cuda.synchronize()
        self.inner.step()
        for p, m in zip(self.params, self.master):
            p.copy_(m, non_blocking=True)


class GPT(nn.Module):
    def __init__(self, v=12000, d=512, layers=8, t=256):
        super().__init__()
        self.tok, self.pos = nn.Embedding(v, d), nn.Embedding(t, d)
        self.blocks = nn.ModuleList(
            [
                nn.TransformerEncoderLayer(d, 8, 4 * d, 0.1, "gelu", batch_first=True, norm_first=True)
                for _ in range(layers)
            ]
        )
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, v, bias=False)
        self.head.weight = self.tok.weight

    def forward(self, ids):
        x = self.tok(ids) + self.pos(torch.arange(ids.size(1), device=ids.device))
        mask = nn.Transformer.generate_square_subsequent_mask(ids.size(1), device=ids.device, dtype=x.dtype)
        for b in self.blocks:
            x = b(x, src_mask=mask, is_causal=True)
        return self.head(self.norm(x))


model = GPT().to(torch.bfloat16).cuda()
opt = HostAdam(model.parameters())
for step in range(5):
    ids = torch.randint(0, 12000, (4, 257), device="cuda")
    logits = model(ids[:, :-1])
    loss = nn.functional.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten())
    loss.backward()
    opt.step()
    print(step, loss.item())
torch.save(model.state_dict(), "gpt.pt")
