"""Sizes that the device finds: distinct ids, which are known, and elements of masks, which are not."""
# /// xmem
# iterations = 3
# stdout-without = ["done"]
# [virtual-gpu]
# options = ["--assume", "nonzero=0..1,unique=0..1"]
# contains-cpu = 4.0
# [virtual-gpu.replay]
# "/verdict" = "fits"
# "/range/confidence" = "likely"
# "/range/uncertainties" = { contains = { name = "assumed_values" } }
# ///
import torch
from torch import nn

embedding = nn.Embedding(5000, 64).cuda()
linear = nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD([*embedding.parameters(), *linear.parameters()], lr=0.1)
for _ in range(20):
    optimizer.zero_grad()
    ids = torch.randint(0, 5000, (64, 128)).cuda()
    distinct, places = torch.unique(ids, return_inverse=True)
    assert 2000 < len(distinct) < 5000, len(distinct)
    hidden = linear(embedding(distinct))[places].view(-1, 64)
    levels = torch.unique((hidden * 10).round())
    mask = hidden[:, 0] > 0
    parts = [hidden[mask], torch.masked_select(hidden, mask[:, None]), hidden[torch.where(mask)]]
    found = torch.argwhere(mask)
    # The range of a histogram is not what the memory of its ends held before.
    for _ in range(4):
        torch.full((64,), 7.0).cuda()
    assert torch.histc(hidden.detach(), 10).shape == hidden.detach().histc(bins=10).shape == (10,)
    # A seed above the largest int64, as torchtitan reads it.
    seed = torch.full((8,), 255, dtype=torch.uint8).cuda()
    if hasattr(torch, "uint64"):
        assert seed.view(torch.uint64).item() > 0
    assert torch.tensor([3e20]).cuda().item() > 2**63 and torch.tensor([1j]).cuda().item() == 1j
    (sum(part.sum() for part in parts) + hidden.square().mean()).backward()
    optimizer.step()
    del levels, found
print("done")
