"""Tokens that one rank of four sends to the experts of the others, after compiled code and in layers that are computed again."""
# /// xmem
# options = ["--ranks", "4", "--rank", "2", "--steps", "3"]
# iterations = 3
# torch = ">=2.6"
# skip-on-cpu = "its collectives are those of the host"
# [virtual-gpu]
# stdout = ["experts have [128, 128, 128, 128, 128, 128, 128, 128]", "sends [256, 256, 256, 256] and receives [256, 256, 256, 256]"]
# ///
import functools
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed._functional_collectives import all_to_all_single, all_to_all_single_autograd
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

EXPERTS, CHOSEN, TOKENS, WIDTH = 8, 4, 256, 64
dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
group, size = dist.group.WORLD, dist.get_world_size()


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(WIDTH, EXPERTS, bias=False)
        self.expert = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        scores, places = torch.topk(self.router(x).sigmoid(), k=CHOSEN, dim=-1, sorted=False)
        tokens = torch.histc(places.view(-1), bins=EXPERTS, min=0, max=EXPERTS)
        print(f"experts have {tokens.int().tolist()}", flush=True)
        with torch.no_grad():
            received = torch.ops._c10d_functional.wait_tensor(all_to_all_single(tokens, None, None, group=group))
            inputs = tokens.view(size, -1).sum(dim=1).to("cpu", non_blocking=True)
            outputs = received.view(size, -1).sum(dim=1).to("cpu")
        inputs, outputs = inputs.int().tolist(), outputs.int().tolist()
        print(f"sends {inputs} and receives {outputs}", flush=True)
        x = x.repeat_interleave(CHOSEN, dim=0) * scores.view(-1, 1)
        x = self.expert(all_to_all_single_autograd(x, outputs, inputs, group))
        x = all_to_all_single_autograd(x, inputs, outputs, group)
        return x.view(TOKENS, CHOSEN, WIDTH).sum(dim=1)


def policy(_context, operator, *_args, **_kwargs):
    saved = operator in (torch.ops.aten.mm.default, torch.ops._c10d_functional.all_to_all_single.default)
    return CheckpointPolicy.MUST_SAVE if saved else CheckpointPolicy.PREFER_RECOMPUTE


@functools.partial(torch.compile, backend="eager")
def scaled(x):
    return x * 0.5 + 1


layer = Layer().cuda()
optimizer = torch.optim.AdamW(layer.parameters())
contexts = functools.partial(create_selective_checkpoint_contexts, policy)
for _ in range(3):
    optimizer.zero_grad()
    x = scaled(torch.randn(TOKENS, WIDTH, device="cuda"))
    checkpoint(layer, x, use_reentrant=False, context_fn=contexts).sum().backward()
    optimizer.step()
dist.destroy_process_group()
