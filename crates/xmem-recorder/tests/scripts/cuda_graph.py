"""A whole training step in a CUDA graph."""
# /// xmem
# iterations = 3
# stdout-without = ["done"]
# ///
import torch
from torch import nn

model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batch = torch.randn(300, 512, device="cuda")
goal = torch.randn(300, 512, device="cuda")


def compute():
    loss = nn.functional.mse_loss(model(batch), goal)
    loss.backward()
    return loss


side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(2):
        optimizer.zero_grad(set_to_none=True)
        compute()
torch.cuda.current_stream().wait_stream(side)

graph = torch.cuda.CUDAGraph()
optimizer.zero_grad(set_to_none=True)
with torch.cuda.graph(graph):
    loss = compute()

for _ in range(20):
    batch.copy_(torch.randn(300, 512))
    graph.replay()
    optimizer.step()
print("done")
