"""A training job for one GPU, or for one of several, of which this folder has the graphs:

    xmem export -o gpt.pt2 -- python job.py
    xmem profile --virtual-gpu a100-40g --ranks 8 -o trace.json.zst -- python job.py --mode fsdp

`recorded.toml` has the arguments and the peaks of each recording.
"""

import torch, torch.nn as nn, torch.nn.functional as F, argparse, os

p = argparse.ArgumentParser()
p.add_argument("--mode", default="none")
p.add_argument("--layers", type=int, default=6)
p.add_argument("--opt", default="adamw")
p.add_argument("--net", default="gpt")
p.add_argument("--batch", type=int, default=8)
p.add_argument("--steps", type=int, default=4)
p.add_argument("--mp", default="")
p.add_argument("--keep", action="store_true")
p.add_argument("--accum", type=int, default=1)
p.add_argument("--clip", action="store_true")
p.add_argument("--autocast", action="store_true")
p.add_argument("--view", action="store_true")
a = p.parse_args()


class Block(nn.Module):
    def __init__(s, d, h):
        super().__init__()
        s.ln1 = nn.LayerNorm(d)
        s.qkv = nn.Linear(d, 3 * d)
        s.proj = nn.Linear(d, d)
        s.ln2 = nn.LayerNorm(d)
        s.up = nn.Linear(d, 4 * d)
        s.down = nn.Linear(4 * d, d)
        s.h = h

    def forward(s, x):
        b, t, d = x.shape
        q, k, v = s.qkv(s.ln1(x)).split(d, 2)
        q, k, v = (y.view(b, t, s.h, d // s.h).transpose(1, 2) for y in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + s.proj(y.transpose(1, 2).reshape(b, t, d))
        return x + s.down(F.gelu(s.up(s.ln2(x))))


class GPT(nn.Module):
    def __init__(s, n=6, d=512, h=8, v=8192, T=256):
        super().__init__()
        s.tok = nn.Embedding(v, d)
        s.pos = nn.Embedding(T, d)
        s.layers = nn.ModuleList(Block(d, h) for _ in range(n))
        s.ln = nn.LayerNorm(d)
        s.head = nn.Linear(d, v, bias=False)

    def forward(s, i):
        x = s.tok(i) + s.pos(torch.arange(i.shape[1], device=i.device))
        for l in s.layers:
            x = l(x)
        return s.head(s.ln(x))


dist = a.mode != "none"
if dist:
    torch.distributed.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
dev = "cuda"
if a.net == "gpt":
    m = GPT(a.layers)
    blocks = m.layers
else:
    import torchvision

    m = getattr(torchvision.models, a.net)()
    blocks = [b for l in (m.layer1, m.layer2, m.layer3, m.layer4) for b in l]
m = m.to(dev)
if a.mode == "ddp":
    m = nn.parallel.DistributedDataParallel(m, device_ids=[0], gradient_as_bucket_view=a.view)
elif a.mode == "fsdp":
    from torch.distributed.fsdp import fully_shard, MixedPrecisionPolicy

    kw = {}
    if a.mp:
        kw["mp_policy"] = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    if a.keep:
        kw["reshard_after_forward"] = False
    for b in blocks:
        fully_shard(b, **kw)
    fully_shard(m, **kw)
o = {"adamw": lambda p: torch.optim.AdamW(p), "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)}[a.opt](
    m.parameters()
)
for i in range(a.steps):
    for k in range(a.accum):
        if a.net == "gpt":
            x = torch.randint(0, 8192, (a.batch, 256)).to(dev)
            y = torch.randint(0, 8192, (a.batch, 256)).to(dev)
        else:
            x = torch.randn(a.batch, 3, 224, 224).to(dev)
            y = torch.randint(0, 1000, (a.batch,)).to(dev)
        if a.autocast:
            with torch.autocast("cuda", dtype=torch.bfloat16):
                z = m(x)
                loss = F.cross_entropy(z.view(-1, z.shape[-1]) if a.net == "gpt" else z, y.view(-1))
        else:
            z = m(x)
            loss = F.cross_entropy(z.view(-1, z.shape[-1]) if a.net == "gpt" else z, y.view(-1))
        loss.backward()
    if a.clip:
        torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0)
    o.step()
    o.zero_grad()
