# Soft actor-critic, single file, after cleanrl's sac_continuous_action.py
import argparse, copy, random
import gymnasium as gym
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal, TanhTransform, TransformedDistribution

p = argparse.ArgumentParser()
p.add_argument("--total-timesteps", type=int, default=140)
p.add_argument("--learning-starts", type=int, default=100)
p.add_argument("--batch-size", type=int, default=1024)
p.add_argument("--hidden", type=int, default=1024)
p.add_argument("--policy-frequency", type=int, default=2)
args = p.parse_args()
random.seed(1), np.random.seed(1), torch.manual_seed(1)
device = torch.device("cuda")


class Buffer:
    def __init__(self, n, obs, act):
        self.o = np.zeros((n, obs), np.float32)
        self.no = self.o.copy()
        self.a = np.zeros((n, act), np.float32)
        self.r = np.zeros(n, np.float32)
        self.d = np.zeros(n, np.float32)
        self.i = 0

    def add(self, o, a, r, no, d):
        k = self.i % len(self.r)
        self.o[k], self.a[k], self.r[k], self.no[k], self.d[k] = o, a, r, no, d
        self.i += 1

    def sample(self, n):
        k = np.random.randint(0, min(self.i, len(self.r)), n)
        return [torch.from_numpy(x[k]).to(device) for x in (self.o, self.a, self.r, self.no, self.d)]


def mlp(i, o):
    return nn.Sequential(
        nn.Linear(i, args.hidden), nn.ReLU(), nn.Linear(args.hidden, args.hidden), nn.ReLU(), nn.Linear(args.hidden, o)
    )


class Actor(nn.Module):
    def __init__(self, obs, act):
        super().__init__()
        self.net = mlp(obs, 2 * act)

    def forward(self, x):
        mean, log_std = self.net(x).chunk(2, -1)
        std = log_std.clamp(-5, 2).exp()
        d = TransformedDistribution(Normal(mean, std), TanhTransform(cache_size=1))
        a = d.rsample()
        return a, d.log_prob(a).sum(-1)


env = gym.make("Pendulum-v1")
obs, _ = env.reset(seed=1)
actor = Actor(3, 1).to(device)
q1, q2 = mlp(4, 1).to(device), mlp(4, 1).to(device)
t1, t2 = copy.deepcopy(q1), copy.deepcopy(q2)
q_opt = torch.optim.Adam(list(q1.parameters()) + list(q2.parameters()), lr=1e-3)
a_opt = torch.optim.Adam(actor.parameters(), lr=3e-4)
log_alpha = torch.zeros(1, requires_grad=True, device=device)
alpha_opt = torch.optim.Adam([log_alpha], lr=1e-3)
rb = Buffer(100_000, 3, 1)
for step in range(args.total_timesteps):
    if step < args.learning_starts:
        action = env.action_space.sample()
    else:
        with torch.no_grad():
            action = actor(torch.as_tensor(obs, device=device)[None])[0][0].cpu().numpy() * 2
    nxt, r, term, trunc, _ = env.step(action)
    rb.add(obs, action / 2, r, nxt, float(term))
    obs = nxt if not (term or trunc) else env.reset()[0]
    if step < args.learning_starts:
        continue
    o, a, r, no, d = rb.sample(args.batch_size)
    alpha = log_alpha.exp().item()
    with torch.no_grad():
        na, nlp = actor(no)
        x = torch.cat([no, na], -1)
        y = r + (1 - d) * 0.99 * (torch.min(t1(x), t2(x)).squeeze(-1) - alpha * nlp)
    x = torch.cat([o, a], -1)
    q_loss = F.mse_loss(q1(x).squeeze(-1), y) + F.mse_loss(q2(x).squeeze(-1), y)
    q_opt.zero_grad()
    q_loss.backward()
    q_opt.step()
    if step % args.policy_frequency == 0:
        for _ in range(args.policy_frequency):
            pi, lp = actor(o)
            x = torch.cat([o, pi], -1)
            a_loss = (alpha * lp - torch.min(q1(x), q2(x)).squeeze(-1)).mean()
            a_opt.zero_grad()
            a_loss.backward()
            a_opt.step()
            alpha_loss = (-log_alpha.exp() * (lp.detach() - 1)).mean()
            alpha_opt.zero_grad()
            alpha_loss.backward()
            alpha_opt.step()
            alpha = log_alpha.exp().item()
    with torch.no_grad():
        for q, t in ((q1, t1), (q2, t2)):
            for w, tw in zip(q.parameters(), t.parameters()):
                tw.copy_(0.005 * w + 0.995 * tw)
    if step % 10 == 0:
        print(step, q_loss.item(), a_loss.item(), alpha)
