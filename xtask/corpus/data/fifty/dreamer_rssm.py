# A world model (RSSM) with imagination, straight-through categorical latents
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.distributions as td


class RSSM(nn.Module):
    def __init__(self, act=6, h=512, groups=32, cls=32, emb=1024):
        super().__init__()
        self.g, self.c, self.h = groups, cls, h
        self.inp = nn.Sequential(nn.Linear(groups * cls + act, h), nn.LayerNorm(h), nn.SiLU())
        self.gru = nn.GRUCell(h, h)
        self.prior = nn.Sequential(nn.Linear(h, h), nn.SiLU(), nn.Linear(h, groups * cls))
        self.post = nn.Sequential(nn.Linear(h + emb, h), nn.SiLU(), nn.Linear(h, groups * cls))

    def dist(self, logits):
        p = 0.99 * logits.view(-1, self.g, self.c).softmax(-1) + 0.01 / self.c
        return td.Independent(td.OneHotCategoricalStraightThrough(probs=p), 1)

    def step(self, h, z, a):
        return self.gru(self.inp(torch.cat([z, a], -1)), h)


class World(nn.Module):
    def __init__(self):
        super().__init__()
        c = 32
        self.enc = nn.Sequential(
            nn.Conv2d(3, c, 4, 2),
            nn.SiLU(),
            nn.Conv2d(c, 2 * c, 4, 2),
            nn.SiLU(),
            nn.Conv2d(2 * c, 4 * c, 4, 2),
            nn.SiLU(),
            nn.Conv2d(4 * c, 8 * c, 4, 2),
            nn.SiLU(),
            nn.Flatten(),
        )
        self.rssm = RSSM()
        f = 512 + 1024
        self.dec = nn.Sequential(
            nn.Linear(f, 1024),
            nn.Unflatten(1, (1024, 1, 1)),
            nn.ConvTranspose2d(1024, 4 * c, 5, 2),
            nn.SiLU(),
            nn.ConvTranspose2d(4 * c, 2 * c, 5, 2),
            nn.SiLU(),
            nn.ConvTranspose2d(2 * c, c, 6, 2),
            nn.SiLU(),
            nn.ConvTranspose2d(c, 3, 6, 2),
        )
        self.rew = nn.Sequential(nn.Linear(f, 400), nn.SiLU(), nn.Linear(400, 1))


B, T, H = 12, 12, 8
w = World().cuda()
actor = nn.Sequential(nn.Linear(1536, 400), nn.ELU(), nn.Linear(400, 6)).cuda()
value = nn.Sequential(nn.Linear(1536, 400), nn.ELU(), nn.Linear(400, 1)).cuda()
ow, oa, ov = (
    torch.optim.Adam(w.parameters(), 1e-4, eps=1e-5),
    torch.optim.Adam(actor.parameters(), 3e-5),
    torch.optim.Adam(value.parameters(), 8e-5),
)
for it in range(5):
    obs, act, rew = (
        torch.rand(B, T, 3, 64, 64).cuda() - 0.5,
        F.one_hot(torch.randint(0, 6, (B, T)), 6).float().cuda(),
        torch.rand(B, T).cuda(),
    )
    emb = w.enc(obs.flatten(0, 1)).view(B, T, -1)
    h, z = torch.zeros(B, 512).cuda(), torch.zeros(B, 1024).cuda()
    feats, kls = [], 0
    for t in range(T):
        h = w.rssm.step(h, z, act[:, t])
        prior, post = w.rssm.dist(w.rssm.prior(h)), w.rssm.dist(w.rssm.post(torch.cat([h, emb[:, t]], -1)))
        z = post.rsample().flatten(1)
        kls = kls + td.kl_divergence(post, prior).clamp_min(1.0).mean()
        feats.append(torch.cat([h, z], -1))
    f = torch.stack(feats, 1)
    recon = w.dec(f.flatten(0, 1)).view_as(obs)
    loss = (
        F.mse_loss(recon, obs, reduction="none").sum((2, 3, 4)).mean() + F.mse_loss(w.rew(f).squeeze(-1), rew) + kls / T
    )
    ow.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(w.parameters(), 100)
    ow.step()
    h, z = f.detach().flatten(0, 1).split([512, 1024], -1)
    imag, logp, ent = [], [], []
    for k in range(H):
        s = torch.cat([h, z], -1)
        pi = td.OneHotCategorical(logits=actor(s.detach()))
        a = pi.sample()
        with torch.no_grad():
            h = w.rssm.step(h, z, a)
            z = w.rssm.dist(w.rssm.prior(h)).sample().flatten(1)
        imag.append(torch.cat([h, z], -1)), logp.append(pi.log_prob(a)), ent.append(pi.entropy())
    imag = torch.stack(imag)
    with torch.no_grad():
        r, v = w.rew(imag).squeeze(-1), value(imag).squeeze(-1)
        ret, out = v[-1], []
        for k in reversed(range(H)):
            ret = r[k] + 0.97 * (0.05 * v[k] + 0.95 * ret)
            out.append(ret)
        ret = torch.stack(out[::-1])
    al = -(torch.stack(logp) * (ret - v) + 3e-3 * torch.stack(ent)).mean()
    oa.zero_grad()
    al.backward()
    oa.step()
    vl = F.mse_loss(value(imag).squeeze(-1), ret)
    ov.zero_grad()
    vl.backward()
    ov.step()
    print(it, loss.item(), al.item(), vl.item())
