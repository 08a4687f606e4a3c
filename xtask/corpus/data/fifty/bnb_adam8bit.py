# 8-bit Adam of bitsandbytes on a text classifier
import bitsandbytes as bnb
import torch
from torch import nn

torch.manual_seed(0)


class Classifier(nn.Module):
    def __init__(self, v=20000, d=512):
        super().__init__()
        self.emb = bnb.nn.StableEmbedding(v, d)
        self.rnn = nn.TransformerEncoder(nn.TransformerEncoderLayer(d, 8, 2048, batch_first=True), 4)
        self.fc = nn.Linear(d, 4)

    def forward(self, x):
        return self.fc(self.rnn(self.emb(x)).mean(1))


net = Classifier().cuda()
opt = bnb.optim.Adam8bit(net.parameters(), lr=1e-3, betas=(0.9, 0.995))
for step in range(6):
    x = torch.randint(0, 20000, (16, 128)).cuda()
    y = torch.randint(0, 4, (16,)).cuda()
    loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()
    opt.step()
    opt.zero_grad()
    print(step, loss.item())
torch.save({"net": net.state_dict(), "opt": opt.state_dict()}, "bnb.pt")
