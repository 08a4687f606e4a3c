"""Synchronous advantage actor-critic on CartPole (gymnasium)."""

import gymnasium as gym
import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical

ENVS, T, UPDATES, GAMMA, LAM = 16, 20, 8, 0.99, 0.95
dev = "cuda"


class ActorCritic(nn.Module):
    def __init__(self, obs, act):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(obs, 1024), nn.Tanh(), nn.Linear(1024, 1024), nn.Tanh())
        self.pi = nn.Linear(1024, act)
        self.v = nn.Linear(1024, 1)

    def forward(self, x):
        h = self.body(x)
        return Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)


envs = [gym.make("CartPole-v1") for _ in range(ENVS)]
obs = np.stack([e.reset(seed=i)[0] for i, e in enumerate(envs)])
net = ActorCritic(4, 2).to(dev)
opt = torch.optim.RMSprop(net.parameters(), lr=7e-4, eps=1e-5)
sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda u: 1 - u / UPDATES)
returns = []
for update in range(UPDATES):
    logps, values, entropies, rewards, masks = [], [], [], [], []
    for t in range(T):
        dist, v = net(torch.as_tensor(obs, dtype=torch.float32, device=dev))
        a = dist.sample()
        logps.append(dist.log_prob(a)), values.append(v), entropies.append(dist.entropy())
        nxt, r, d = [], [], []
        for e, ai in zip(envs, a.cpu().numpy()):
            o, rew, term, trunc, _ = e.step(int(ai))
            if term or trunc:
                o, _ = e.reset()
            nxt.append(o), r.append(rew), d.append(float(term or trunc))
        obs = np.stack(nxt)
        rewards.append(torch.tensor(r, dtype=torch.float32, device=dev))
        masks.append(1 - torch.tensor(d, dtype=torch.float32, device=dev))
    with torch.no_grad():
        last = net(torch.as_tensor(obs, dtype=torch.float32, device=dev))[1]
    adv, gae, advs = 0, torch.zeros(ENVS, device=dev), []
    vals = torch.stack(values)
    nextv = torch.cat([vals[1:], last[None]]).detach()
    for t in reversed(range(T)):
        delta = rewards[t] + GAMMA * nextv[t] * masks[t] - vals[t].detach()
        gae = delta + GAMMA * LAM * masks[t] * gae
        advs.insert(0, gae)
    advs = torch.stack(advs)
    policy = -(torch.stack(logps) * advs).mean()
    value = (vals - (advs + vals.detach())).pow(2).mean()
    loss = policy + 0.5 * value - 0.01 * torch.stack(entropies).mean()
    opt.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 0.5)
    opt.step()
    sched.step()
    returns.append(float(torch.stack(rewards).sum() / ENVS))
    print(f"update {update} loss {loss.item():.3f} reward {returns[-1]:.1f}")
