"""Cells of recurrent networks under autocast: on CUDA they run in the lower precision, with float32 states cast."""
# /// xmem
# iterations = 3
# stdout = ["torch.bfloat16 torch.bfloat16 torch.bfloat16"]
# stdout-without = ["done"]
# [recording]
# "/autocast_lists" = "cuda"
# ///
import torch
from torch import nn


class Cells(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTMCell(128, 256)
        self.gru = nn.GRUCell(256, 256)
        self.rnn = nn.RNNCell(256, 256)

    def forward(self, x):
        state = x.new_zeros(32, 256)
        cell, gated, plain = state, state, state
        for step in range(8):
            state, cell = self.lstm(x[:, step], (state, cell))
            gated = self.gru(state, gated)
            plain = self.rnn(gated, plain)
        return state, gated, plain


model = Cells().to("cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(20):
    x = torch.randn(32, 8, 128, device="cuda")
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        results = model(x)
        loss = sum(result.float().mean() for result in results)
    if step == 0:
        print(*(result.dtype for result in results))
    loss.backward()
    optimizer.step()
print("done")
