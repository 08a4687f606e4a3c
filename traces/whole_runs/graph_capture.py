"""A CUDA graph that is captured after three steps to warm up on another stream."""

import torch
from torch import nn

net = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1024)).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
inputs = torch.randn(512, 1024, device="cuda")
targets = torch.randn(512, 1024, device="cuda")


stream = torch.cuda.Stream()
stream.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(stream):
    for _ in range(3):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(inputs), targets)
        loss.backward()
        optimizer.step()
torch.cuda.current_stream().wait_stream(stream)
graph = torch.cuda.CUDAGraph()
optimizer.zero_grad()
with torch.cuda.graph(graph):
    loss_of_graph = nn.functional.mse_loss(net(inputs), targets)
    loss_of_graph.backward()
    optimizer.step()
for _ in range(20):
    inputs.copy_(torch.randn(512, 1024))
    graph.replay()
print(torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
