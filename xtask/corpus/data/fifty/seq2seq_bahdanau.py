# GRU encoder/decoder with additive attention and teacher forcing
import random
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

random.seed(0)
SRC, TGT, EMB, HID = 6000, 5000, 256, 384
SOS, EOS, PAD = 1, 2, 0


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(SRC, EMB, padding_idx=PAD)
        self.rnn = nn.GRU(EMB, HID, bidirectional=True, batch_first=True)
        self.fc = nn.Linear(2 * HID, HID)

    def forward(self, x, lens):
        p = pack_padded_sequence(self.emb(x), lens, batch_first=True, enforce_sorted=False)
        out, h = self.rnn(p)
        out, _ = pad_packed_sequence(out, batch_first=True)
        return out, torch.tanh(self.fc(torch.cat([h[-2], h[-1]], 1)))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(TGT, EMB, padding_idx=PAD)
        self.wq, self.wk, self.v = (
            nn.Linear(HID, HID, bias=False),
            nn.Linear(2 * HID, HID),
            nn.Linear(HID, 1, bias=False),
        )
        self.cell = nn.GRUCell(EMB + 2 * HID, HID)
        self.out = nn.Linear(HID * 3 + EMB, TGT)

    def step(self, y, h, enc, keys, mask):
        e = self.emb(y)
        s = self.v(torch.tanh(self.wq(h)[:, None] + keys)).squeeze(-1).masked_fill(mask, -1e9)
        ctx = torch.bmm(s.softmax(1)[:, None], enc).squeeze(1)
        h = self.cell(torch.cat([e, ctx], 1), h)
        return self.out(torch.cat([h, ctx, e], 1)), h

    def forward(self, enc, h, mask, tgt, ratio):
        keys, y, outs = self.wk(enc), tgt[:, 0], []
        for t in range(1, tgt.size(1)):
            o, h = self.step(y, h, enc, keys, mask)
            outs.append(o)
            y = tgt[:, t] if random.random() < ratio else o.argmax(1)
        return torch.stack(outs, 1)


enc, dec = Encoder().cuda(), Decoder().cuda()
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], 1e-3)
for it in range(6):
    src = [torch.randint(3, SRC, (random.randint(10, 30),)) for _ in range(32)]
    tgt = [
        torch.cat([torch.tensor([SOS]), torch.randint(3, TGT, (random.randint(10, 24),)), torch.tensor([EOS])])
        for _ in range(32)
    ]
    lens = torch.tensor([len(s) for s in src])
    x, y = pad_sequence(src, True).cuda(), pad_sequence(tgt, True).cuda()
    e, h = enc(x, lens)
    out = dec(e, h, (x == PAD)[:, : e.size(1)], y, 0.5)
    loss = F.cross_entropy(out.flatten(0, 1), y[:, 1:].flatten(), ignore_index=PAD)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_([*enc.parameters(), *dec.parameters()], 1)
    opt.step()
    print(it, loss.item())
with torch.no_grad():  # greedy decoding until <eos>
    e, h = enc(x[:4], lens[:4])
    y, keys, mask = torch.full((4,), SOS, device="cuda"), dec.wk(e), (x[:4] == PAD)[:, : e.size(1)]
    for t in range(30):
        o, h = dec.step(y, h, e, keys, mask)
        y = o.argmax(1)
        if (y == EOS).all():
            break
    print("decoded", t + 1)
