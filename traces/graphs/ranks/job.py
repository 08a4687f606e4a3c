"""A training job for one GPU, or for one of several, of which this folder has the graphs:

    xmem export -o gpt.pt2 -- python job.py
    xmem profile --virtual-gpu a100-40g --ranks 8 -o trace.json.zst -- python job.py --mode fsdp

`recorded.tsv` has the arguments and the peaks of each recording.
"""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

parser = argparse.ArgumentParser()
parser.add_argument("--mode", choices=["none", "ddp", "fsdp"], default="none")
parser.add_argument("--net", choices=["gpt", "resnet50"], default="gpt")
parser.add_argument("--batch", type=int, default=8)
parser.add_argument("--steps", type=int, default=4)
parser.add_argument("--accumulate", type=int, default=1)
parser.add_argument("--clip", action="store_true")
parser.add_argument("--autocast", action="store_true")
parser.add_argument("--bucket-view", action="store_true")
parser.add_argument("--mixed-precision", action="store_true")
parser.add_argument("--no-reshard", action="store_true")
args = parser.parse_args()


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.ln2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.heads = heads

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(self.ln1(x)).split(width, 2)
        q, k, v = (y.view(batch, length, self.heads, width // self.heads).transpose(1, 2) for y in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.ln2(x))))


class GPT(nn.Module):
    def __init__(self, layers=6, width=512, heads=8, words=8192, length=256):
        super().__init__()
        self.tok = nn.Embedding(words, width)
        self.pos = nn.Embedding(length, width)
        self.layers = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, ids):
        x = self.tok(ids) + self.pos(torch.arange(ids.shape[1], device=ids.device))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.ln(x))


def batch():
    if args.net == "gpt":
        shape = (args.batch, 256)
        return torch.randint(0, 8192, shape).cuda(), torch.randint(0, 8192, shape).cuda()
    return torch.randn(args.batch, 3, 224, 224).cuda(), torch.randint(0, 1000, (args.batch,)).cuda()


if args.mode != "none":
    torch.distributed.init_process_group("nccl")
    torch.cuda.set_device(0)
if args.net == "gpt":
    model = GPT()
    blocks = model.layers
else:
    import torchvision

    model = torchvision.models.resnet50()
    blocks = [block for stage in (model.layer1, model.layer2, model.layer3, model.layer4) for block in stage]
model.cuda()
if args.mode == "ddp":
    model = nn.parallel.DistributedDataParallel(model, device_ids=[0], gradient_as_bucket_view=args.bucket_view)
if args.mode == "fsdp":
    options = {}
    if args.mixed_precision:
        options["mp_policy"] = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    if args.no_reshard:
        options["reshard_after_forward"] = False
    for block in blocks:
        fully_shard(block, **options)
    fully_shard(model, **options)
if args.net == "gpt":
    optimizer = torch.optim.AdamW(model.parameters())
else:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

for _ in range(args.steps):
    for _ in range(args.accumulate):
        x, y = batch()
        with torch.autocast("cuda", torch.bfloat16, enabled=args.autocast):
            z = model(x)
            loss = F.cross_entropy(z.view(-1, z.shape[-1]), y.view(-1))
        loss.backward()
    if args.clip:
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
