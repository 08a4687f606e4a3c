# Double dueling DQN with prioritized replay kept on the GPU, on a toy pixel environment
import copy, random
import torch
import torch.nn as nn
import torch.nn.functional as F

random.seed(0)


class Catch:
    def reset(self):
        self.y, self.x, self.p = 0, random.randrange(84), 42
        return self.obs()

    def obs(self):
        o = torch.zeros(4, 84, 84, dtype=torch.uint8)
        o[:, self.y, self.x] = 255
        o[:, 83, self.p] = 255
        return o

    def step(self, a):
        self.p = min(max(self.p + (a - 1) * 6, 0), 83)
        self.y += 6
        done = self.y >= 78
        return self.obs(), float(abs(self.x - self.p) < 6) if done else 0.0, done


class Dueling(nn.Module):
    def __init__(self, actions):
        super().__init__()
        self.f = nn.Sequential(
            nn.Conv2d(4, 32, 8, 4),
            nn.ReLU(),
            nn.Conv2d(32, 64, 4, 2),
            nn.ReLU(),
            nn.Conv2d(64, 64, 3),
            nn.ReLU(),
            nn.Flatten(),
        )
        self.v = nn.Sequential(nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, 1))
        self.a = nn.Sequential(nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, actions))

    def forward(self, x):
        h = self.f(x.float() / 255)
        a = self.a(h)
        return self.v(h) + a - a.mean(1, keepdim=True)


CAP, B = 2000, 64
S, S2 = (torch.zeros(CAP, 4, 84, 84, dtype=torch.uint8, device="cuda") for _ in range(2))
A, R, D, P = torch.zeros(CAP, dtype=torch.long, device="cuda"), *(torch.zeros(CAP, device="cuda") for _ in range(3))
q = Dueling(3).cuda()
target = copy.deepcopy(q)
opt = torch.optim.Adam(q.parameters(), 1e-4, eps=1.5e-4)
env, n, eps = Catch(), 0, 1.0
s = env.reset()
for t in range(120):
    if random.random() < eps:
        a = random.randrange(3)
    else:
        with torch.no_grad():
            a = q(s[None].cuda()).argmax(1).item()
    s2, r, d = env.step(a)
    k = n % CAP
    S[k], S2[k], A[k], R[k], D[k] = s.cuda(), s2.cuda(), a, r, float(d)
    P[k] = P.max().clamp_min(1.0)
    n += 1
    s = env.reset() if d else s2
    eps = max(0.1, eps - 0.01)
    if n >= 80 and t % 4 == 0:
        pr = P[:n] ** 0.6
        idx = torch.multinomial(pr / pr.sum(), B, replacement=True)
        w = (n * pr[idx] / pr.sum()) ** -0.4
        w = w / w.max()
        with torch.no_grad():
            best = q(S2[idx]).argmax(1, keepdim=True)
            y = R[idx] + 0.99 * (1 - D[idx]) * target(S2[idx]).gather(1, best).squeeze(1)
        td = q(S[idx]).gather(1, A[idx, None]).squeeze(1) - y
        loss = (w * F.smooth_l1_loss(td, torch.zeros_like(td), reduction="none")).mean()
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(q.parameters(), 10)
        opt.step()
        P[idx] = td.detach().abs() + 1e-3
        if t % 20 == 0:
            target.load_state_dict(q.state_dict())
            print(t, loss.item(), eps)
