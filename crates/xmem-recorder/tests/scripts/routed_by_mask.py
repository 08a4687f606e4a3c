"""Experts whose tokens a mask selects, which is made of zeros, as in Megatron-LM."""
# /// xmem
# iterations = 3
# stdout-without = ["done"]
# [virtual-gpu]
# options = ["--assume", "routing=0..1"]
# contains-cpu = 4.0
# ///
import torch
from torch import nn

TOKENS, EXPERTS, WIDTH = 4096, 8, 64
router = nn.Linear(WIDTH, EXPERTS).cuda()
experts = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(EXPERTS)).cuda()
optimizer = torch.optim.AdamW([*router.parameters(), *experts.parameters()])
for _ in range(20):
    optimizer.zero_grad()
    tokens = torch.randn(TOKENS, WIDTH, device="cuda")
    logits = router(tokens)
    weights, places = logits.softmax(1).topk(2, dim=1)
    routing = torch.zeros_like(logits).int().scatter(1, places, 1).bool()
    counts = routing.sum(dim=0).tolist()
    assert sum(counts) == 2 * TOKENS, counts
    mask = routing.T.contiguous()
    indices = torch.arange(TOKENS, device="cuda").unsqueeze(0).expand(EXPERTS, -1).masked_select(mask)
    permuted = tokens.index_select(0, indices)
    parts = [expert(part) for expert, part in zip(experts, permuted.split(counts))]
    output = torch.zeros_like(tokens).index_add(0, indices, torch.cat(parts))
    (output.sum() + weights.sum()).backward()
    # What is changed in place holds zeros no longer.
    changed = torch.zeros_like(tokens).add_(1)
    assert changed.shape == tokens.shape
    optimizer.step()
print("done")
