"""Norms, similarities and a loss with label smoothing under autocast: CUDA's runs them in float32."""
# /// xmem
# iterations = 3
# stdout = ["normalize torch.float32, norm torch.float32, cosine_similarity torch.float32, log_softmax torch.float32"]
# stdout-without = ["done"]
# [recording]
# "/autocast_lists" = "cuda"
# [virtual-gpu]
# contains-cpu = 0.5
# ///
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(128, 256)
        self.other = nn.Linear(256, 256)
        self.head = nn.Linear(256, 1000)

    def forward(self, x):
        one = F.normalize(self.one(x), dim=-1)
        other = self.other(one)
        return one, other, self.head(other)


model = Model().to("cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(20):
    x = torch.randn(256, 128, device="cuda")
    targets = torch.randint(0, 1000, (256,), device="cuda")
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        one, other, logits = model(x)
        norm = other.norm(dim=-1)
        similarity = F.cosine_similarity(one, other, dim=-1)
        loss = F.cross_entropy(logits, targets, label_smoothing=0.1)
        loss = loss + norm.mean() + similarity.mean()
        if step == 0:
            kinds = f"normalize {one.dtype}, norm {norm.dtype}, cosine_similarity {similarity.dtype}"
            print(f"{kinds}, log_softmax {logits.log_softmax(-1).dtype}")
    loss.backward()
    optimizer.step()
print("done")
