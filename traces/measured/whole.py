"""A short, complete training script of a kind of its own: whole.py NAME.

NAMES lists them. Each runs to its end within seconds, with random weights and data. WHOLE_DEVICE chooses the device.
"""

import os, sys, tempfile, warnings

warnings.filterwarnings("ignore")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
DEV = os.environ.get("WHOLE_DEVICE", "cuda")
JOBS = {}


def job(f):
    JOBS[f.__name__] = f
    return f


@job
def eval_gather_logits():
    import torch
    import torchvision
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    model = torchvision.models.resnet18(num_classes=1000).to(DEV)
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4, nesterov=True)
    train = DataLoader(TensorDataset(torch.randn(256, 3, 96, 96), torch.randint(0, 1000, (256,))), 64, shuffle=True)
    test = DataLoader(TensorDataset(torch.randn(320, 3, 96, 96), torch.randint(0, 1000, (320,))), 128)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 3)
    crit = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
    for epoch in range(3):
        model.train()
        for x, y in train:
            x, y = x.to(DEV), y.to(DEV)
            opt.zero_grad()
            loss = crit(model(x), y)
            loss.backward()
            opt.step()
        sched.step()
        model.eval()
        logits, labels = [], []
        with torch.no_grad():
            for x, y in test:
                logits.append(model(x.to(DEV)))
                labels.append(y.to(DEV))
        logits, labels = torch.cat(logits), torch.cat(labels)
        top5 = (logits.topk(5, 1)[1] == labels[:, None]).any(1).float().mean()
        print(epoch, loss.item(), crit(logits, labels).item(), top5.item())


@job
def checkpoint_roundtrip():
    import torch
    import torch.nn as nn

    torch.manual_seed(1)

    def build():
        layer = nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, norm_first=True, activation="gelu")
        net = nn.ModuleDict(
            dict(emb=nn.Embedding(8000, 512), body=nn.TransformerEncoder(layer, 6), head=nn.Linear(512, 8000))
        ).to(DEV)
        return net, torch.optim.AdamW(net.parameters(), lr=3e-4)

    def step(net, opt):
        ids = torch.randint(0, 8000, (8, 129)).to(DEV)
        mask = nn.Transformer.generate_square_subsequent_mask(128, device=DEV)
        out = net["head"](net["body"](net["emb"](ids[:, :-1]), mask=mask, is_causal=True))
        loss = nn.functional.cross_entropy(out.reshape(-1, 8000), ids[:, 1:].reshape(-1))
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item()

    net, opt = build()
    for i in range(5):
        print(i, step(net, opt))
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "last.pt")
        torch.save({"model": net.state_dict(), "optim": opt.state_dict(), "step": 5}, path)
        net, opt = build()
        state = torch.load(path, map_location=DEV)
    net.load_state_dict(state["model"])
    opt.load_state_dict(state["optim"])
    for i in range(state["step"], state["step"] + 5):
        print(i, step(net, opt))


@job
def freeze_unfreeze():
    import torch
    from torchvision.models import resnet50

    torch.manual_seed(0)
    net = resnet50()
    net.fc = torch.nn.Sequential(torch.nn.Dropout(0.3), torch.nn.Linear(2048, 37))
    net = net.to(DEV)
    for n, p in net.named_parameters():
        p.requires_grad = n.startswith("fc")

    def run(optimizer, steps):
        for s in range(steps):
            x = torch.randn(24, 3, 192, 192, device=DEV)
            y = torch.randint(0, 37, (24,), device=DEV)
            loss = torch.nn.functional.cross_entropy(net(x), y)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            print(s, float(loss))

    run(torch.optim.Adam(filter(lambda p: p.requires_grad, net.parameters()), lr=1e-3), 6)
    for p in net.parameters():
        p.requires_grad_(True)
    backbone = [p for n, p in net.named_parameters() if not n.startswith("fc")]
    run(torch.optim.Adam([{"params": backbone, "lr": 1e-5}, {"params": net.fc.parameters(), "lr": 1e-4}]), 5)


@job
def padded_collate():
    import random
    import torch
    from torch import nn
    from torch.nn.utils.rnn import pad_sequence

    random.seed(7)
    torch.manual_seed(7)

    class Reviews(torch.utils.data.Dataset):
        def __init__(self, n):
            self.items = [(torch.randint(1, 20000, (random.randint(12, 300),)), random.randint(0, 4)) for _ in range(n)]

        def __len__(self):
            return len(self.items)

        def __getitem__(self, i):
            return self.items[i]

    def collate(batch):
        ids = pad_sequence([b[0] for b in batch], batch_first=True, padding_value=0)
        return ids, ids.eq(0), torch.tensor([b[1] for b in batch])

    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.tok = nn.Embedding(20000, 256, padding_idx=0)
            self.pos = nn.Embedding(512, 256)
            self.enc = nn.TransformerEncoder(nn.TransformerEncoderLayer(256, 4, 1024, 0.1, batch_first=True), 4)
            self.out = nn.Linear(256, 5)

        def forward(self, ids, pad):
            h = self.tok(ids) + self.pos(torch.arange(ids.shape[1], device=ids.device))
            h = self.enc(h, src_key_padding_mask=pad)
            keep = (~pad).unsqueeze(-1).float()
            return self.out((h * keep).sum(1) / keep.sum(1))

    model = Classifier().to(DEV)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4)
    warm = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1, (s + 1) / 10))
    for epoch in range(2):
        total = 0
        for ids, pad, y in torch.utils.data.DataLoader(Reviews(400), batch_size=32, shuffle=True, collate_fn=collate):
            ids, pad, y = ids.to(DEV), pad.to(DEV), y.to(DEV)
            loss = nn.functional.cross_entropy(model(ids, pad), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            warm.step()
            optimizer.zero_grad()
            total += loss.item()
        print("epoch", epoch, "loss", total)


@job
def last_batch_and_validation():
    import torch
    from torch.utils.data import DataLoader, TensorDataset, random_split

    torch.manual_seed(42)
    data = TensorDataset(torch.randn(1100, 3, 64, 64), torch.randint(0, 10, (1100,)))
    tr, va = random_split(data, [500, 600])
    blocks = []
    for i, o in [(3, 48), (48, 96), (96, 192), (192, 384)]:
        blocks += [torch.nn.Conv2d(i, o, 3, padding=1, bias=False), torch.nn.BatchNorm2d(o), torch.nn.ReLU(True)]
        blocks += [torch.nn.Conv2d(o, o, 3, padding=1, bias=False), torch.nn.BatchNorm2d(o), torch.nn.ReLU(True)]
        blocks += [torch.nn.MaxPool2d(2)]
    net = torch.nn.Sequential(*blocks, torch.nn.Flatten(), torch.nn.Linear(384 * 16, 10)).to(DEV)
    opt = torch.optim.RMSprop(net.parameters(), 1e-4, momentum=0.9)
    best = 1e9
    for epoch in range(2):
        net.train()
        for x, y in DataLoader(tr, batch_size=96, shuffle=True):
            opt.zero_grad()
            torch.nn.functional.cross_entropy(net(x.to(DEV)), y.to(DEV)).backward()
            opt.step()
        net.eval()
        val = 0.0
        with torch.inference_mode():
            for x, y in DataLoader(va, batch_size=256):
                val += torch.nn.functional.cross_entropy(net(x.to(DEV)), y.to(DEV), reduction="sum").item()
        best = min(best, val)
        print(epoch, val / len(va), best / len(va))


@job
def accumulate_tail():
    import timm
    import torch

    torch.manual_seed(0)
    model = timm.create_model("vit_small_patch16_224", pretrained=False, num_classes=100).to(DEV)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.05)
    batches = [(torch.randn(16, 3, 224, 224), torch.randint(0, 100, (16,))) for _ in range(10)]
    every = 4
    for i, (x, y) in enumerate(batches):
        group = min(every, len(batches) - i // every * every)
        with torch.autocast(DEV, dtype=torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(x.to(DEV)), y.to(DEV)) / group
        loss.backward()
        if (i + 1) % every == 0 or i + 1 == len(batches):
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            opt.zero_grad()
            print(i, loss.item() * group, norm.item())


@job
def ema_swa_utils():
    import torch
    import torchvision
    from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn, update_bn

    torch.manual_seed(0)
    model = torchvision.models.mobilenet_v3_large(num_classes=50).to(DEV)
    ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.99))
    opt = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    loader = [(torch.rand(32, 3, 160, 160), torch.randint(0, 50, (32,))) for _ in range(4)]
    for epoch in range(3):
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(model(x.to(DEV)), y.to(DEV))
            opt.zero_grad()
            loss.backward()
            opt.step()
            ema.update_parameters(model)
        print(epoch, loss.item())
    update_bn(loader, ema, device=DEV)
    ema.eval()
    with torch.no_grad():
        print(sum((ema(x.to(DEV)).argmax(1) == y.to(DEV)).sum().item() for x, y in loader))


@job
def sharpness_aware():
    import torch
    import torchvision

    class SAM(torch.optim.Optimizer):
        def __init__(self, params, base, rho=0.05, **kw):
            super().__init__(params, dict(rho=rho, **kw))
            self.base = base(self.param_groups, **kw)
            self.param_groups = self.base.param_groups

        @torch.no_grad()
        def ascend(self):
            ps = [p for g in self.param_groups for p in g["params"] if p.grad is not None]
            norm = torch.norm(torch.stack([p.grad.norm(p=2) for p in ps]), p=2)
            for p in ps:
                self.state[p]["old"] = p.data.clone()
                p.add_(p.grad * (0.05 / (norm + 1e-12)))
            self.zero_grad()

        @torch.no_grad()
        def descend(self):
            for g in self.param_groups:
                for p in g["params"]:
                    if p.grad is not None:
                        p.data = self.state[p]["old"]
            self.base.step()
            self.zero_grad()

    torch.manual_seed(3)
    net = torchvision.models.resnet34(num_classes=20).to(DEV)
    opt = SAM(net.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9)
    for step in range(6):
        x, y = torch.randn(32, 3, 128, 128).to(DEV), torch.randint(0, 20, (32,)).to(DEV)
        loss = torch.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        opt.ascend()
        torch.nn.functional.cross_entropy(net(x), y).backward()
        opt.descend()
        print(step, loss.item())


@job
def distillation():
    import torch
    import torch.nn.functional as F
    from torchvision import models

    torch.manual_seed(0)
    teacher = models.resnet101(num_classes=200).to(DEV).eval().requires_grad_(False)
    student = models.mobilenet_v2(num_classes=200).to(DEV)
    opt = torch.optim.AdamW(student.parameters(), 1e-3)
    T, alpha = 4.0, 0.7
    for it in range(8):
        x = torch.randn(32, 3, 160, 160, device=DEV)
        y = torch.randint(200, (32,), device=DEV)
        with torch.no_grad():
            t = teacher(x)
        s = student(x)
        kd = F.kl_div(F.log_softmax(s / T, 1), F.softmax(t / T, 1), reduction="batchmean") * T * T
        loss = alpha * kd + (1 - alpha) * F.cross_entropy(s, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f"{it}: kd {kd.item():.3f} total {loss.item():.3f}")


@job
def gan_r1():
    import torch
    from torch import nn
    import torch.nn.functional as F

    torch.manual_seed(0)
    G = nn.Sequential(
        nn.Linear(128, 512 * 16),
        nn.Unflatten(1, (512, 4, 4)),
        *[
            m
            for i, o in [(512, 256), (256, 128), (128, 64), (64, 32)]
            for m in (nn.Upsample(scale_factor=2), nn.Conv2d(i, o, 3, 1, 1), nn.BatchNorm2d(o), nn.LeakyReLU(0.2, True))
        ],
        nn.Conv2d(32, 3, 3, 1, 1),
        nn.Tanh(),
    ).to(DEV)
    D = nn.Sequential(
        *[
            m
            for i, o in [(3, 64), (64, 128), (128, 256), (256, 512)]
            for m in (nn.Conv2d(i, o, 4, 2, 1), nn.LeakyReLU(0.2))
        ],
        nn.Flatten(),
        nn.Linear(512 * 16, 1),
    ).to(DEV)
    og = torch.optim.Adam(G.parameters(), 2e-4, (0.0, 0.99))
    od = torch.optim.Adam(D.parameters(), 2e-4, (0.0, 0.99))
    for it in range(12):
        real = torch.rand(64, 3, 64, 64, device=DEV) * 2 - 1
        fake = G(torch.randn(64, 128, device=DEV))
        d_loss = F.softplus(-D(real)).mean() + F.softplus(D(fake.detach())).mean()
        od.zero_grad()
        d_loss.backward()
        od.step()
        if it % 4 == 0:
            real.requires_grad_(True)
            (g,) = torch.autograd.grad(D(real).sum(), real, create_graph=True)
            r1 = g.pow(2).flatten(1).sum(1).mean()
            od.zero_grad()
            (5.0 * r1 * 4).backward()
            od.step()
        g_loss = F.softplus(-D(fake)).mean()
        og.zero_grad()
        g_loss.backward()
        og.step()
        print(it, d_loss.item(), g_loss.item())
    G.eval()
    with torch.no_grad():
        grid = G(torch.randn(100, 128, device=DEV)).cpu()
    print(grid.shape)


@job
def maml():
    import torch
    from torch import nn
    from torch.func import functional_call, grad, vmap

    torch.manual_seed(0)
    layers = []
    for i in (3, 64, 64, 64):
        layers += [nn.Conv2d(i, 64, 3, padding=1), nn.GroupNorm(8, 64), nn.ReLU(), nn.MaxPool2d(2)]
    net = nn.Sequential(*layers, nn.Flatten(), nn.Linear(64 * 25, 5)).to(DEV)
    meta = torch.optim.Adam(net.parameters(), 1e-3)

    def loss_fn(params, x, y):
        return nn.functional.cross_entropy(functional_call(net, params, (x,)), y)

    def task(params, xs, ys, xq, yq):
        for _ in range(3):
            g = grad(loss_fn)(params, xs, ys)
            params = {k: p - 0.01 * g[k] for k, p in params.items()}
        return loss_fn(params, xq, yq)

    for step in range(4):
        xs, xq = (torch.randn(3, 25, 3, 84, 84, device=DEV), torch.randn(3, 15, 3, 84, 84, device=DEV))
        ys, yq = (torch.randint(0, 5, (3, 25), device=DEV), torch.randint(0, 5, (3, 15), device=DEV))
        params = dict(net.named_parameters())
        losses = vmap(task, in_dims=(None, 0, 0, 0, 0))(params, xs, ys, xq, yq)
        meta.zero_grad()
        losses.mean().backward()
        meta.step()
        print(step, losses.mean().item())


@job
def dp_sgd_per_sample():
    import torch
    from torch.func import functional_call, grad_and_value, vmap

    torch.manual_seed(5)
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(1, 32, 5, 2), nn.Tanh(), nn.Conv2d(32, 64, 5, 2), nn.Tanh(), nn.Flatten(), nn.Linear(1024, 512)
    )
    model.append(nn.ReLU()).append(nn.Linear(512, 10)).to(DEV)
    C, sigma, lr = 1.0, 0.8, 0.2

    def one(p, x, y):
        return nn.functional.cross_entropy(functional_call(model, p, (x[None],)), y[None])

    per = vmap(grad_and_value(one), in_dims=(None, 0, 0), randomness="different")
    for it in range(6):
        x, y = (torch.rand(200, 1, 28, 28, device=DEV), torch.randint(0, 10, (200,), device=DEV))
        params = {k: v.detach() for k, v in model.named_parameters()}
        gs, losses = per(params, x, y)
        norms = torch.stack([g.flatten(1).norm(dim=1) for g in gs.values()]).norm(dim=0)
        scale = (C / (norms + 1e-6)).clamp(max=1.0)
        with torch.no_grad():
            for k, p in model.named_parameters():
                g = torch.einsum("b,b...->...", scale, gs[k])
                p -= lr * (g + sigma * C * torch.randn_like(g)) / len(x)
        print(it, losses.mean().item())


@job
def style_lbfgs():
    import torch
    import torch.nn.functional as F
    import torchvision

    torch.manual_seed(0)
    vgg = torchvision.models.vgg16(init_weights=False).features[:23].to(DEV).eval()
    for p in vgg.parameters():
        p.requires_grad_(False)
    for m in vgg:
        if isinstance(m, torch.nn.ReLU):
            m.inplace = False

    def feats(x):
        out = []
        for i, m in enumerate(vgg):
            x = m(x)
            if i in (3, 8, 15, 22):
                out.append(x)
        return out

    def gram(f):
        f = f.flatten(2)
        return f @ f.mT / f[0].numel()

    content, style = (torch.rand(1, 3, 320, 320, device=DEV), torch.rand(1, 3, 256, 256, device=DEV))
    with torch.no_grad():
        c = feats(content)[2]
        s = [gram(f) for f in feats(style)]
    image = content.clone().requires_grad_(True)
    opt = torch.optim.LBFGS([image], max_iter=10, history_size=20)
    for it in range(3):

        def closure():
            opt.zero_grad()
            fs = feats(image)
            loss = F.mse_loss(fs[2], c) + 1e4 * sum(F.mse_loss(gram(a), b) for a, b in zip(fs, s))
            loss.backward()
            return loss

        print(it, float(opt.step(closure)))
        with torch.no_grad():
            image.clamp_(0, 1)


@job
def shampoo():
    import torch
    from torch import nn

    torch.manual_seed(0)

    class Shampoo(torch.optim.Optimizer):
        def __init__(self, params, lr=1e-2, eps=1e-3, every=3):
            super().__init__(params, dict(lr=lr, eps=eps, every=every))

        @torch.no_grad()
        def step(self):
            for group in self.param_groups:
                for p in group["params"]:
                    st = self.state[p]
                    if not st:
                        st["t"] = 0
                        st["pre"] = [group["eps"] * torch.eye(n, device=p.device) for n in p.shape]
                        st["inv"] = [torch.eye(n, device=p.device) for n in p.shape]
                    g = p.grad
                    for d, n in enumerate(p.shape):
                        m = g.transpose(0, d).reshape(n, -1)
                        st["pre"][d] += m @ m.T
                        if st["t"] % group["every"] == 0:
                            w, q = torch.linalg.eigh(st["pre"][d])
                            root = w.clamp_min(group["eps"]).pow(-0.5 / p.dim())
                            st["inv"][d] = q @ torch.diag(root) @ q.T
                        shape = g.transpose(0, d).shape
                        g = (st["inv"][d] @ g.transpose(0, d).reshape(n, -1)).view(shape).transpose(0, d)
                    st["t"] += 1
                    p.add_(g, alpha=-group["lr"])

    net = nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)).to(DEV)
    opt = Shampoo(net.parameters())
    for i in range(6):
        x, y = (torch.rand(512, 784, device=DEV), torch.randint(0, 10, (512,), device=DEV))
        loss = nn.functional.cross_entropy(net(x), y)
        net.zero_grad()
        loss.backward()
        opt.step()
        print(i, loss.item())


@job
def gpt2_train_then_generate():
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    cfg = GPT2Config(vocab_size=8192, n_positions=512, n_embd=512, n_layer=8, n_head=8, bos_token_id=0)
    cfg.eos_token_id = None
    model = GPT2LMHeadModel(cfg).to(DEV)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95))
    model.train()
    for step in range(5):
        ids = torch.randint(0, 8192, (8, 256), device=DEV)
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        opt.step()
        opt.zero_grad()
        print(step, loss.item())
    model.eval()
    prompt = torch.randint(0, 8192, (16, 64), device=DEV)
    out = model.generate(
        prompt,
        attention_mask=torch.ones_like(prompt),
        max_new_tokens=96,
        min_new_tokens=96,
        do_sample=False,
        pad_token_id=0,
    )
    print(out.shape)


@job
def dpo_llama():
    import copy
    import torch
    import torch.nn.functional as F
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    cfg = LlamaConfig(
        vocab_size=16000,
        hidden_size=512,
        intermediate_size=1376,
        num_hidden_layers=6,
        num_attention_heads=8,
        num_key_value_heads=4,
    )
    policy = LlamaForCausalLM(cfg).to(DEV, torch.bfloat16)
    ref = copy.deepcopy(policy).eval()
    for p in ref.parameters():
        p.requires_grad = False
    opt = torch.optim.RMSprop(policy.parameters(), lr=5e-7)

    def logps(m, ids, mask):
        lp = m(ids).logits[:, :-1].float().log_softmax(-1)
        return (lp.gather(2, ids[:, 1:, None]).squeeze(2) * mask[:, 1:]).sum(1)

    for step in range(5):
        n = [160, 192, 128, 224, 144][step]
        ids = torch.randint(0, 16000, (8, n), device=DEV)  # chosen, then rejected
        mask = (torch.arange(n, device=DEV) >= 64).float().expand(8, n)
        with torch.no_grad():
            rc, rr = logps(ref, ids, mask).chunk(2)
        pc, pr = logps(policy, ids, mask).chunk(2)
        loss = -F.logsigmoid(0.1 * ((pc - pr) - (rc - rr))).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(step, loss.item(), (pc - pr).mean().item())


@job
def ppo_pixels():
    import torch
    from torch import nn
    from torch.distributions import Categorical

    torch.manual_seed(0)
    N, T = 16, 64

    class Agent(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.ReLU()
            )
            self.fc = nn.Sequential(nn.Flatten(), nn.Linear(3136, 512), nn.ReLU())
            self.pi, self.v = nn.Linear(512, 6), nn.Linear(512, 1)

        def forward(self, o):
            h = self.fc(self.body(o / 255.0))
            return Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)

    agent = Agent().to(DEV)
    opt = torch.optim.Adam(agent.parameters(), lr=2.5e-4, eps=1e-5)
    obs = torch.zeros(T, N, 4, 84, 84, device=DEV)
    acts, logp, rew, val = (torch.zeros(T, N, device=DEV) for _ in range(4))
    for update in range(2):
        for t in range(T):
            obs[t] = torch.randint(0, 256, (N, 4, 84, 84)).float().to(DEV)
            with torch.no_grad():
                d, v = agent(obs[t])
                a = d.sample()
            acts[t], logp[t], val[t] = a, d.log_prob(a), v
            rew[t] = torch.randn(N).to(DEV)
        adv, last = torch.zeros_like(rew), 0
        for t in reversed(range(T)):
            nv = val[t + 1] if t + 1 < T else val[t]
            delta = rew[t] + 0.99 * nv - val[t]
            adv[t] = last = delta + 0.99 * 0.95 * last
        ret = adv + val
        b = [z.reshape(T * N, *z.shape[2:]) for z in (obs, acts, logp, adv, ret)]
        for epoch in range(3):
            for idx in torch.randperm(T * N, device=DEV).split(256):
                o, a, lp, ad, r = (z[idx] for z in b)
                d, v = agent(o)
                ratio = (d.log_prob(a) - lp).exp()
                ad = (ad - ad.mean()) / (ad.std() + 1e-8)
                pg = torch.max(-ad * ratio, -ad * ratio.clamp(0.9, 1.1)).mean()
                loss = pg + 0.5 * (v - r).pow(2).mean() - 0.01 * d.entropy().mean()
                opt.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                opt.step()
        print(update, loss.item())


@job
def recurrent_actor_critic():
    import torch

    torch.manual_seed(0)
    envs, horizon, width = 256, 20, 512
    enc = torch.nn.Sequential(torch.nn.Linear(200, width), torch.nn.ELU())
    cell = torch.nn.GRUCell(width, width)
    actor, critic = torch.nn.Linear(width, 12), torch.nn.Linear(width, 1)
    net = torch.nn.ModuleList([enc, cell, actor, critic]).to(DEV)
    opt = torch.optim.RMSprop(net.parameters(), lr=7e-4, alpha=0.99, eps=1e-5)
    h = torch.zeros(envs, width, device=DEV)
    for update in range(10):
        h = h.detach()
        values, logps, ents, rewards = [], [], [], []
        for t in range(horizon):
            h = cell(enc(torch.randn(envs, 200, device=DEV)), h)
            dist = torch.distributions.Categorical(logits=actor(h))
            a = dist.sample()
            logps.append(dist.log_prob(a))
            ents.append(dist.entropy())
            values.append(critic(h)[:, 0])
            rewards.append(torch.rand(envs, device=DEV))
            done = (torch.rand(envs, 1, device=DEV) < 0.05).float()
            h = h * (1 - done)
        R, returns = values[-1].detach(), []
        for r in reversed(rewards):
            R = r + 0.99 * R
            returns.insert(0, R)
        adv = torch.stack(returns) - torch.stack(values)
        loss = -(torch.stack(logps) * adv.detach()).mean() + 0.5 * adv.pow(2).mean() - 0.01 * torch.stack(ents).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(update, loss.item())


@job
def ddpm():
    import copy, math
    import torch
    from torch import nn
    import torch.nn.functional as F

    torch.manual_seed(0)

    class Res(nn.Module):
        def __init__(self, i, o, attn=False):
            super().__init__()
            self.n1, self.c1 = nn.GroupNorm(8, i), nn.Conv2d(i, o, 3, padding=1)
            self.n2, self.c2 = nn.GroupNorm(8, o), nn.Conv2d(o, o, 3, padding=1)
            self.t = nn.Linear(256, o)
            self.skip = nn.Conv2d(i, o, 1) if i != o else nn.Identity()
            self.attn = nn.MultiheadAttention(o, 4, batch_first=True) if attn else None

        def forward(self, x, t):
            h = self.c1(F.silu(self.n1(x))) + self.t(F.silu(t))[:, :, None, None]
            h = self.c2(F.silu(self.n2(h))) + self.skip(x)
            if self.attn is not None:
                z = h.flatten(2).transpose(1, 2)
                z = z + self.attn(z, z, z, need_weights=False)[0]
                h = z.transpose(1, 2).reshape(h.shape)
            return h

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.time = nn.Sequential(nn.Linear(64, 256), nn.SiLU(), nn.Linear(256, 256))
            self.inp = nn.Conv2d(3, 64, 3, padding=1)
            self.d1, self.d2, self.d3 = Res(64, 64), Res(64, 128), Res(128, 256, True)
            self.mid = Res(256, 256, True)
            self.u3, self.u2, self.u1 = Res(512, 128, True), Res(256, 64), Res(128, 64)
            self.out = nn.Sequential(nn.GroupNorm(8, 64), nn.SiLU(), nn.Conv2d(64, 3, 3, padding=1))

        def forward(self, x, t):
            f = torch.exp(-math.log(10000) * torch.arange(32, device=x.device) / 32)
            e = t[:, None].float() * f
            t = self.time(torch.cat([e.sin(), e.cos()], 1))
            a = self.d1(self.inp(x), t)
            b = self.d2(F.avg_pool2d(a, 2), t)
            c = self.d3(F.avg_pool2d(b, 2), t)
            h = self.mid(c, t)
            h = self.u3(torch.cat([h, c], 1), t)
            h = self.u2(torch.cat([F.interpolate(h, scale_factor=2), b], 1), t)
            return self.out(self.u1(torch.cat([F.interpolate(h, scale_factor=2), a], 1), t))

    net = UNet().to(DEV)
    ema = copy.deepcopy(net).requires_grad_(False)
    opt = torch.optim.AdamW(net.parameters(), 2e-4)
    beta = torch.linspace(1e-4, 0.02, 1000, device=DEV)
    abar = torch.cumprod(1 - beta, 0)
    for it in range(8):
        x = torch.rand(32, 3, 64, 64, device=DEV) * 2 - 1
        t = torch.randint(0, 1000, (32,), device=DEV)
        noise = torch.randn_like(x)
        ab = abar[t].view(-1, 1, 1, 1)
        loss = F.mse_loss(net(ab.sqrt() * x + (1 - ab).sqrt() * noise, t), noise)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        with torch.no_grad():
            for p, q in zip(ema.parameters(), net.parameters()):
                p.lerp_(q, 0.001)
        print(it, loss.item())
    ema.eval()
    with torch.no_grad():
        x = torch.randn(64, 3, 64, 64, device=DEV)
        for i in range(975, -1, -25):  # DDIM
            t = torch.full((64,), i, device=DEV)
            e = ema(x, t)
            x0 = ((x - (1 - abar[i]).sqrt() * e) / abar[i].sqrt()).clamp(-1, 1)
            prev = abar[i - 25] if i >= 25 else torch.ones((), device=DEV)
            x = prev.sqrt() * x0 + (1 - prev).sqrt() * e
    print(x.mean().item())


@job
def conv_vae():
    import torch
    import torch.nn as nn
    import torch.nn.functional as F

    class VAE(nn.Module):
        def __init__(self, z=128):
            super().__init__()
            self.enc = nn.Sequential(
                nn.Conv2d(3, 64, 4, 2, 1),
                nn.ReLU(),
                nn.Conv2d(64, 128, 4, 2, 1),
                nn.ReLU(),
                nn.Conv2d(128, 256, 4, 2, 1),
            )
            self.mu, self.logvar = nn.Linear(256 * 64, z), nn.Linear(256 * 64, z)
            self.up = nn.Linear(z, 256 * 64)
            self.dec = nn.Sequential(
                nn.ConvTranspose2d(256, 128, 4, 2, 1),
                nn.ReLU(),
                nn.ConvTranspose2d(128, 64, 4, 2, 1),
                nn.ReLU(),
                nn.ConvTranspose2d(64, 3, 4, 2, 1),
                nn.Sigmoid(),
            )

        def forward(self, x):
            h = F.relu(self.enc(x)).flatten(1)
            mu, logvar = self.mu(h), self.logvar(h)
            z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
            return self.dec(self.up(z).view(-1, 256, 8, 8)), mu, logvar

    torch.manual_seed(1)
    vae = VAE().to(DEV)
    optimizer = torch.optim.Adamax(vae.parameters(), lr=1e-3)
    images = torch.rand(600, 3, 64, 64)
    for epoch in range(2):
        running = torch.zeros((), device=DEV)
        for i in range(0, len(images), 128):
            x = images[i : i + 128].to(DEV)
            rec, mu, lv = vae(x)
            bce = F.mse_loss(rec, x, reduction="sum")
            kld = -0.5 * torch.sum(1 + lv - mu.pow(2) - lv.exp())
            optimizer.zero_grad()
            ((bce + kld) / len(x)).backward()
            optimizer.step()
            running += (bce + kld).detach()
        print(epoch, (running / len(images)).item())


@job
def simclr():
    import torch
    import torch.nn.functional as F
    import torchvision
    from torchvision.transforms import v2

    torch.manual_seed(0)
    net = torchvision.models.resnet18(num_classes=512)
    net.conv1 = torch.nn.Conv2d(3, 64, 3, 1, 1, bias=False)
    net.maxpool = torch.nn.Identity()
    net.fc = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 128))
    net = net.to(DEV)
    opt = torch.optim.SGD(net.parameters(), 0.3, momentum=0.9, weight_decay=1e-6)
    aug = v2.Compose([v2.RandomResizedCrop(32, scale=(0.2, 1.0), antialias=True), v2.RandomHorizontalFlip()])
    for step in range(6):
        x = torch.rand(256, 3, 32, 32, device=DEV)
        z = F.normalize(net(torch.cat([aug(x), aug(x)])), dim=1)
        sim = z @ z.T / 0.5
        sim.fill_diagonal_(-1e9)
        target = torch.arange(512, device=DEV).roll(256)
        loss = F.cross_entropy(sim, target)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(step, loss.item())


@job
def masked_autoencoder():
    import torch
    from torch import nn
    from timm.models.vision_transformer import Block

    torch.manual_seed(0)

    class MAE(nn.Module):
        def __init__(self, p=16, dim=512, ddim=256, n=196):
            super().__init__()
            self.p = p
            self.embed = nn.Conv2d(3, dim, p, p)
            self.pos = nn.Parameter(torch.randn(1, n, dim) * 0.02)
            self.enc = nn.Sequential(*[Block(dim, 8) for _ in range(8)], nn.LayerNorm(dim))
            self.to_dec = nn.Linear(dim, ddim)
            self.mask = nn.Parameter(torch.zeros(1, 1, ddim))
            self.dpos = nn.Parameter(torch.randn(1, n, ddim) * 0.02)
            self.dec = nn.Sequential(
                *[Block(ddim, 8) for _ in range(4)], nn.LayerNorm(ddim), nn.Linear(ddim, p * p * 3)
            )

        def forward(self, im):
            x = self.embed(im).flatten(2).transpose(1, 2) + self.pos
            B, N, D = x.shape
            keep = N // 4
            order = torch.rand(B, N, device=x.device).argsort(1)
            restore = order.argsort(1)
            x = self.enc(x.gather(1, order[:, :keep, None].expand(-1, -1, D)))
            x = self.to_dec(x)
            x = torch.cat([x, self.mask.expand(B, N - keep, -1)], 1)
            x = x.gather(1, restore[:, :, None].expand(-1, -1, x.shape[2])) + self.dpos
            target = nn.functional.unfold(im, self.p, stride=self.p).transpose(1, 2)
            err = (self.dec(x) - target).pow(2).mean(-1)
            hidden = (restore >= keep).float()
            return (err * hidden).sum() / hidden.sum()

    model = MAE().to(DEV)
    opt = torch.optim.AdamW(model.parameters(), 1.5e-4, betas=(0.9, 0.95), fused=DEV == "cuda")
    for it in range(6):
        with torch.autocast(DEV, torch.bfloat16):
            loss = model(torch.randn(48, 3, 224, 224, device=DEV))
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        print(it, loss.item())


@job
def clip_two_towers():
    import numpy as np
    import timm
    import torch
    import torch.nn.functional as F

    torch.manual_seed(0)
    image = timm.create_model("resnet26d", num_classes=256)
    layer = torch.nn.TransformerEncoderLayer(256, 4, 1024, 0.0, batch_first=True)
    text = torch.nn.TransformerEncoder(layer, 4)
    emb = torch.nn.Embedding(10000, 256)
    scale = torch.nn.Parameter(torch.tensor(np.log(1 / 0.07), dtype=torch.float32))
    for m in (image, text, emb):
        m.to(DEV)
    scale = torch.nn.Parameter(scale.data.to(DEV))
    params = [*image.parameters(), *text.parameters(), *emb.parameters()]
    opt = torch.optim.AdamW([dict(params=params, weight_decay=0.2), dict(params=[scale], weight_decay=0)], lr=5e-4)
    scaler = torch.amp.GradScaler(DEV)
    for step in range(6):
        im, ids = (torch.randn(64, 3, 160, 160).to(DEV), torch.randint(0, 10000, (64, 77)).to(DEV))
        opt.zero_grad()
        with torch.autocast(DEV, dtype=torch.float16):
            a = F.normalize(image(im), dim=-1)
            b = F.normalize(text(emb(ids))[:, -1], dim=-1)
            logits = scale.exp() * a @ b.t()
            lab = torch.arange(64, device=DEV)
            loss = (F.cross_entropy(logits, lab) + F.cross_entropy(logits.t(), lab)) / 2
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        with torch.no_grad():
            scale.clamp_(0, 4.6052)
        print(step, loss.item())


@job
def fcos_like():
    import torch
    from torch import nn
    from torchvision.models import resnet18
    from torchvision.models._utils import IntermediateLayerGetter
    from torchvision.ops import FeaturePyramidNetwork, batched_nms, generalized_box_iou_loss, sigmoid_focal_loss

    torch.manual_seed(0)

    class Detector(nn.Module):
        def __init__(self, classes=20):
            super().__init__()
            self.body = IntermediateLayerGetter(resnet18(), {"layer2": "0", "layer3": "1", "layer4": "2"})
            self.fpn = FeaturePyramidNetwork([128, 256, 512], 128)
            tower = lambda: nn.Sequential(
                nn.Conv2d(128, 128, 3, padding=1), nn.GroupNorm(16, 128), nn.ReLU(), nn.Conv2d(128, 128, 3, padding=1)
            )
            self.tc, self.tb = tower(), tower()
            self.cls, self.box = (nn.Conv2d(128, classes, 3, padding=1), nn.Conv2d(128, 4, 3, padding=1))

        def forward(self, x):
            cls, box, pts = [], [], []
            for f, s in zip(self.fpn(self.body(x)).values(), (8, 16, 32)):
                h, w = f.shape[-2:]
                gy, gx = torch.meshgrid(
                    torch.arange(h, device=x.device), torch.arange(w, device=x.device), indexing="ij"
                )
                p = (torch.stack([gx, gy], -1).reshape(-1, 2).float() + 0.5) * s
                d = nn.functional.softplus(self.box(self.tb(f))).flatten(2).transpose(1, 2) * s
                cls.append(self.cls(self.tc(f)).flatten(2).transpose(1, 2))
                box.append(torch.cat([p - d[..., :2], p + d[..., 2:]], -1))
                pts.append(p)
            return torch.cat(cls, 1), torch.cat(box, 1), torch.cat(pts)

    net = Detector().to(DEV)
    opt = torch.optim.SGD(net.parameters(), 0.005, momentum=0.9)
    for step in range(6):
        x = torch.randn(8, 3, 320, 320, device=DEV)
        c = torch.rand(8, 12, 2, device=DEV) * 240 + 40
        wh = torch.rand(8, 12, 2, device=DEV) * 35 + 5
        gt, lab = (torch.cat([c - wh, c + wh], -1), torch.randint(0, 20, (8, 12), device=DEV))
        cls, box, pts = net(x)
        lt = pts[None, :, None] - gt[:, None, :, :2]
        rb = gt[:, None, :, 2:] - pts[None, :, None]
        inside = torch.cat([lt, rb], -1).min(-1).values
        best, which = inside.max(-1)
        pos = best > 0
        target = torch.zeros_like(cls)
        hit = lab.gather(1, which)
        target[pos] = nn.functional.one_hot(hit[pos], 20).float()
        matched = gt.gather(1, which[..., None].expand(-1, -1, 4))
        n = pos.sum().clamp(min=1)
        giou = generalized_box_iou_loss(box[pos], matched[pos], reduction="sum") / n
        loss = sigmoid_focal_loss(cls, target, reduction="sum") / n + giou
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(step, loss.item())
    net.eval()
    with torch.no_grad():
        cls, box, _ = net(x)
        score, k = cls.sigmoid().max(-1)
        top = score.topk(300, 1).indices
        for i in range(8):
            keep = batched_nms(box[i, top[i]], score[i, top[i]], k[i, top[i]], 0.5)[:100]
            print(i, len(keep))


@job
def unet_dice():
    import torch
    import torch.nn as nn

    torch.manual_seed(0)

    def double(i, o):
        return nn.Sequential(
            nn.Conv2d(i, o, 3, padding=1),
            nn.BatchNorm2d(o),
            nn.ReLU(inplace=True),
            nn.Conv2d(o, o, 3, padding=1),
            nn.BatchNorm2d(o),
            nn.ReLU(inplace=True),
        )

    class UNet(nn.Module):
        def __init__(self, chans=(32, 64, 128, 256, 512)):
            super().__init__()
            self.downs = nn.ModuleList(double(i, o) for i, o in zip((1, *chans), chans))
            self.ups = nn.ModuleList(nn.ConvTranspose2d(o, i, 2, 2) for i, o in zip(chans, chans[1:]))
            self.convs = nn.ModuleList(double(2 * i, i) for i in chans[:-1])
            self.last = nn.Conv2d(chans[0], 1, 1)

        def forward(self, x):
            skips = []
            for i, d in enumerate(self.downs):
                x = d(x if i == 0 else nn.functional.max_pool2d(x, 2))
                skips.append(x)
            for i in reversed(range(len(self.ups))):
                x = self.convs[i](torch.cat([self.ups[i](x), skips[i]], 1))
            return self.last(x)

    def dice(p, t, eps=1.0):
        p = p.sigmoid()
        return 1 - ((2 * (p * t).sum((1, 2, 3)) + eps) / (p.sum((1, 2, 3)) + t.sum((1, 2, 3)) + eps)).mean()

    model = UNet().to(DEV)
    opt = torch.optim.Adam(model.parameters(), 1e-4)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=1)
    for epoch in range(2):
        model.train()
        for _ in range(3):
            im, mask = (torch.randn(6, 1, 256, 256).to(DEV), (torch.rand(6, 1, 256, 256) > 0.7).float().to(DEV))
            out = model(im)
            loss = nn.functional.binary_cross_entropy_with_logits(out, mask) + dice(out, mask)
            opt.zero_grad()
            loss.backward()
            opt.step()
        model.eval()
        with torch.no_grad():
            val = dice(model(torch.randn(12, 1, 256, 256).to(DEV)), mask[:1])
        plateau.step(val.item())
        print(epoch, loss.item(), val.item())


@job
def video_3d():
    import torch
    from torch import nn

    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv3d(3, 32, 3, padding=1),
        nn.BatchNorm3d(32),
        nn.ReLU(),
        nn.MaxPool3d((1, 2, 2)),
        nn.Conv3d(32, 64, 3, padding=1),
        nn.BatchNorm3d(64),
        nn.ReLU(),
        nn.MaxPool3d(2),
        nn.Conv3d(64, 128, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool3d((1, 4, 4)),
        nn.Flatten(),
        nn.Linear(2048, 101),
    ).to(DEV)
    opt = torch.optim.SGD(net.parameters(), 1e-3, momentum=0.9)
    for clip in range(5):
        x, y = (torch.randn(6, 3, 16, 96, 96).to(DEV), torch.randint(0, 101, (6,)).to(DEV))
        loss = nn.CrossEntropyLoss()(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print("clip", clip, loss.item())


@job
def packed_lstm():
    import torch
    from torch import nn
    from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

    g = torch.Generator().manual_seed(11)
    torch.manual_seed(11)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb = nn.Embedding(30000, 300, padding_idx=0)
            self.rnn = nn.LSTM(300, 512, num_layers=2, bidirectional=True, dropout=0.3, batch_first=True)
            self.att = nn.Linear(1024, 1)
            self.fc = nn.Linear(1024, 2)

        def forward(self, x, n):
            packed = pack_padded_sequence(self.emb(x), n, batch_first=True, enforce_sorted=False)
            out, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
            w = self.att(out).masked_fill((x == 0)[:, : out.shape[1], None], -1e4).softmax(1)
            return self.fc((w * out).sum(1))

    net = Net().to(DEV)
    opt = torch.optim.Adagrad(net.parameters(), lr=0.01)
    for step in range(10):
        n = torch.randint(10, 200, (48,), generator=g)
        x = pad_sequence([torch.randint(1, 30000, (int(k),), generator=g) for k in n], batch_first=True)
        y = torch.randint(0, 2, (48,), generator=g)
        loss = nn.functional.cross_entropy(net(x.to(DEV), n), y.to(DEV))
        net.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(net.parameters(), 0.5)
        opt.step()
        print(step, loss.item())


@job
def convlstm():
    import torch
    from torch import nn

    torch.manual_seed(0)

    class Cell(nn.Module):
        def __init__(self, i, h):
            super().__init__()
            self.h = h
            self.gates = nn.Conv2d(i + h, 4 * h, 5, padding=2)

        def forward(self, x, state):
            h, c = state
            i, f, o, g = self.gates(torch.cat([x, h], 1)).chunk(4, 1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            return h, c

    cells = nn.ModuleList([Cell(1, 32), Cell(32, 32)]).to(DEV)
    head = nn.Conv2d(32, 1, 1).to(DEV)
    opt = torch.optim.NAdam([*cells.parameters(), *head.parameters()], 1e-3)
    for step in range(4):
        seq = torch.rand(8, 20, 1, 64, 64, device=DEV)
        st = [(torch.zeros(8, 32, 64, 64, device=DEV),) * 2 for _ in cells]
        loss, frame = 0, seq[:, 0]
        for t in range(19):
            x = seq[:, t] if t < 10 else frame  # teacher forcing for the first half
            for k, c in enumerate(cells):
                st[k] = c(x, st[k])
                x = st[k][0]
            frame = head(x).sigmoid()
            if t >= 9:
                loss = loss + nn.functional.mse_loss(frame, seq[:, t + 1])
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(step, loss.item())


@job
def tcn_forecast():
    import torch
    from torch import nn
    from torch.nn.utils.parametrizations import weight_norm

    torch.manual_seed(0)

    class Block(nn.Module):
        def __init__(self, i, o, d):
            super().__init__()
            self.pad = 2 * d
            self.a = weight_norm(nn.Conv1d(i, o, 3, dilation=d))
            self.b = weight_norm(nn.Conv1d(o, o, 3, dilation=d))
            self.down = nn.Conv1d(i, o, 1) if i != o else None

        def forward(self, x):
            h = torch.relu(self.a(nn.functional.pad(x, (self.pad, 0))))
            h = nn.functional.dropout(h, 0.1, self.training)
            h = torch.relu(self.b(nn.functional.pad(h, (self.pad, 0))))
            return torch.relu(h + (x if self.down is None else self.down(x)))

    net = nn.Sequential(*[Block(24 if k == 0 else 128, 128, 2**k) for k in range(7)], nn.Conv1d(128, 24, 1)).to(DEV)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, amsgrad=True)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, 1e-2, total_steps=12)
    for i in range(12):
        series = torch.cumsum(torch.randn(32, 24, 513), -1).to(DEV)
        loss = nn.functional.huber_loss(net(series[..., :-1]), series[..., 1:])
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        if i % 3 == 0:
            print(i, loss.item(), sched.get_last_lr())


@job
def translate_nn_transformer():
    import math
    import torch
    from torch import nn

    torch.manual_seed(0)

    class Seq2Seq(nn.Module):
        def __init__(self, V=10000, d=384):
            super().__init__()
            self.src, self.tgt = nn.Embedding(V, d), nn.Embedding(V, d)
            pos = torch.arange(200)[:, None] * torch.exp(torch.arange(0, d, 2) * (-math.log(1e4) / d))
            self.register_buffer("pe", torch.stack([pos.sin(), pos.cos()], -1).flatten(1)[:, None])
            self.tr = nn.Transformer(d, 6, 3, 3, 1536, 0.1)
            self.gen = nn.Linear(d, V)

        def forward(self, s, t, sp, tp):
            m = self.tr.generate_square_subsequent_mask(t.shape[0], device=t.device)
            a, b = self.src(s) + self.pe[: len(s)], self.tgt(t) + self.pe[: len(t)]
            return self.gen(self.tr(a, b, tgt_mask=m, src_key_padding_mask=sp, tgt_key_padding_mask=tp))

    model = Seq2Seq().to(DEV)
    for p in model.parameters():
        if p.dim() > 1:
            nn.init.xavier_uniform_(p)
    opt = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9)
    crit = nn.CrossEntropyLoss(ignore_index=1)
    for step, (ls, lt) in enumerate([(40, 35), (64, 70), (22, 30), (90, 81), (51, 60)]):
        src, tgt = torch.randint(2, 10000, (ls, 48)), torch.randint(2, 10000, (lt, 48))
        src[ls - 5 :, ::2] = 1
        tgt[lt - 7 :, ::3] = 1
        src, tgt = src.to(DEV), tgt.to(DEV)
        inp, out = tgt[:-1], tgt[1:]
        f = lambda z: torch.zeros(z.T.shape, device=DEV).masked_fill((z == 1).T, float("-inf"))
        logits = model(src, inp, f(src), f(inp))
        loss = crit(logits.reshape(-1, 10000), out.reshape(-1))
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(step, loss.item())


@job
def moe_capacity():
    import torch
    from torch import nn
    import torch.nn.functional as F

    torch.manual_seed(0)

    class MoE(nn.Module):
        def __init__(self, d=384, E=8, k=2, cap=1.25):
            super().__init__()
            self.E, self.k, self.cap = E, k, cap
            self.gate = nn.Linear(d, E, bias=False)
            self.w1 = nn.Parameter(torch.randn(E, d, 4 * d) * d**-0.5)
            self.w2 = nn.Parameter(torch.randn(E, 4 * d, d) * (4 * d) ** -0.5)

        def forward(self, x):
            B, T, D = x.shape
            x = x.reshape(-1, D)
            probs = self.gate(x).softmax(-1)
            top, idx = probs.topk(self.k, -1)
            top = top / top.sum(-1, keepdim=True)
            C = int(self.cap * self.k * len(x) / self.E)
            hot = F.one_hot(idx, self.E).transpose(0, 1).reshape(-1, self.E)
            rank = (hot.cumsum(0) - 1).mul(hot).sum(-1).view(self.k, -1).T
            keep = rank < C
            slot = idx * C + rank.clamp(max=C - 1)
            buf = torch.zeros(self.E * C, D, device=x.device, dtype=x.dtype)
            for j in range(self.k):
                buf = buf.index_add(0, slot[:, j], x * keep[:, j, None])
            h = torch.bmm(F.gelu(torch.bmm(buf.view(self.E, C, D), self.w1)), self.w2).view(-1, D)
            y = sum(h[slot[:, j]] * (top[:, j] * keep[:, j])[:, None] for j in range(self.k))
            aux = self.E * (probs.mean(0) * hot.float().mean(0)).sum()
            return y.view(B, T, D), aux

    class Layer(nn.Module):
        def __init__(self, d=384):
            super().__init__()
            self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
            self.qkv, self.o, self.moe = nn.Linear(d, 3 * d), nn.Linear(d, d), MoE(d)

        def forward(self, x):
            q, k, v = (z.unflatten(-1, (6, 64)).transpose(1, 2) for z in self.qkv(self.n1(x)).chunk(3, -1))
            x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
            y, aux = self.moe(self.n2(x))
            return x + y, aux

    emb, layers, head = (nn.Embedding(5000, 384), nn.ModuleList(Layer() for _ in range(3)), nn.Linear(384, 5000))
    net = nn.ModuleList([emb, layers, head]).to(DEV)
    opt = torch.optim.AdamW(net.parameters(), 3e-4)
    for it in range(6):
        ids = torch.randint(0, 5000, (12, 193), device=DEV)
        x, aux = emb(ids[:, :-1]), 0.0
        for l in layers:
            x, a = l(x)
            aux = aux + a
        loss = F.cross_entropy(head(x).flatten(0, 1), ids[:, 1:].flatten())
        (loss + 0.01 * aux).backward()
        opt.step()
        opt.zero_grad()
        print(it, loss.item(), aux.item())


@job
def sparse_recommender():
    import torch
    from torch import nn

    torch.manual_seed(9)

    class TwoTower(nn.Module):
        def __init__(self, users=200000, items=100000, d=64):
            super().__init__()
            self.u = nn.Embedding(users, d, sparse=True)
            self.i = nn.EmbeddingBag(items, d, mode="sum", sparse=True)
            self.mlp = nn.Sequential(nn.Linear(2 * d, 256), nn.ReLU(), nn.Dropout(0.2), nn.Linear(256, 1))

        def forward(self, u, items):
            return self.mlp(torch.cat([self.u(u), self.i(items)], 1)).squeeze(1)

    m = TwoTower().to(DEV)
    sparse = torch.optim.SparseAdam([m.u.weight, m.i.weight], lr=1e-3)
    dense = torch.optim.Adam(m.mlp.parameters(), lr=1e-3)
    for step in range(10):
        u = torch.randint(0, 200000, (4096,), device=DEV)
        it = torch.randint(0, 100000, (4096, 12), device=DEV)
        y = torch.rand(4096, device=DEV).round()
        loss = nn.functional.binary_cross_entropy_with_logits(m(u, it), y)
        sparse.zero_grad()
        dense.zero_grad()
        loss.backward()
        sparse.step()
        dense.step()
        print(step, loss.item())


@job
def gnn_gcn_gat():
    import torch
    import torch.nn.functional as F
    from torch_geometric.nn import GATConv, GCNConv

    torch.manual_seed(0)
    n = 20000
    x = torch.randn(n, 256).to(DEV)
    edges = torch.randint(0, n, (2, 120000)).to(DEV)
    y = torch.randint(0, 40, (n,)).to(DEV)
    train = (torch.arange(n) % 5 != 0).to(DEV)

    class GCN(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = GCNConv(256, 256), GCNConv(256, 40)

        def forward(self, x, e):
            return self.b(F.dropout(F.relu(self.a(x, e)), 0.5, self.training), e)

    class GAT(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = (GATConv(256, 32, heads=4, dropout=0.3), GATConv(128, 40, heads=1, concat=False))

        def forward(self, x, e):
            return self.b(F.elu(self.a(F.dropout(x, 0.3, self.training), e)), e)

    for model in (GCN(), GAT()):
        model = model.to(DEV)
        opt = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
        for epoch in range(6):
            model.train()
            opt.zero_grad()
            out = model(x, edges)
            loss = F.cross_entropy(out[train], y[train])
            loss.backward()
            opt.step()
            model.eval()
            with torch.no_grad():
                acc = (model(x, edges).argmax(1)[~train] == y[~train]).float().mean()
            print(type(model).__name__, epoch, loss.item(), acc.item())


@job
def graphsage_batches():
    import torch
    from torch_geometric.data import Data
    from torch_geometric.loader import DataLoader
    from torch_geometric.nn import SAGEConv, global_mean_pool

    torch.manual_seed(0)
    graphs = []
    for i in range(256):
        n = 60 + (i * 37) % 140
        graphs.append(Data(x=torch.randn(n, 64), edge_index=torch.randint(0, n, (2, 6 * n)), y=torch.randn(1)))

    class Sage(torch.nn.Module):
        def __init__(self, h=256):
            super().__init__()
            self.convs = torch.nn.ModuleList([SAGEConv(64, h), SAGEConv(h, h), SAGEConv(h, h, aggr="max")])
            self.lin = torch.nn.Linear(h, 1)

        def forward(self, d):
            x = d.x
            for c in self.convs:
                x = c(x, d.edge_index).relu()
            return self.lin(global_mean_pool(x, d.batch, size=d.num_graphs)).view(-1)

    model = Sage().to(DEV)
    opt = torch.optim.Adam(model.parameters(), 1e-3)
    for epoch in range(3):
        total = 0
        for d in DataLoader(graphs, batch_size=48, shuffle=True):
            d = d.to(DEV)
            opt.zero_grad()
            loss = torch.nn.functional.l1_loss(model(d), d.y)
            loss.backward()
            opt.step()
            total += loss.item() * d.num_graphs
        print(epoch, total / len(graphs))


@job
def conformer_ctc():
    import torch
    import torchaudio

    torch.manual_seed(0)
    mel = torchaudio.transforms.MelSpectrogram(16000, n_fft=400, hop_length=160, n_mels=80).to(DEV)
    sub = torch.nn.Sequential(
        torch.nn.Conv1d(80, 144, 3, 2, 1), torch.nn.ReLU(), torch.nn.Conv1d(144, 144, 3, 2, 1), torch.nn.ReLU()
    ).to(DEV)
    enc = torchaudio.models.Conformer(144, 4, 576, 6, 31, dropout=0.1).to(DEV)
    out = torch.nn.Linear(144, 500).to(DEV)
    params = [*sub.parameters(), *enc.parameters(), *out.parameters()]
    opt = torch.optim.AdamW(params, 5e-4)
    for step, secs in enumerate([4, 8, 6, 9, 5]):
        wav = torch.randn(12, secs * 16000).to(DEV)
        with torch.no_grad():
            f = mel(wav).clamp_min(1e-9).log()
        x = sub(f).transpose(1, 2)
        n = torch.full((12,), x.shape[1], device=DEV)
        h, n = enc(x, n)
        lp = out(h).log_softmax(-1).transpose(0, 1)
        tgt = torch.randint(1, 500, (12, 5 * secs), device=DEV)
        loss = torch.nn.functional.ctc_loss(lp, tgt, n, torch.full((12,), 5 * secs, device=DEV), zero_infinity=True)
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(params, 5.0)
        opt.step()
        print(step, loss.item())


@job
def rnn_transducer():
    import torch
    import torchaudio

    torch.manual_seed(0)
    nn = torch.nn
    enc = nn.LSTM(80, 320, 3, batch_first=True).to(DEV)
    emb, pred = (nn.Embedding(256, 128).to(DEV), nn.LSTM(128, 320, batch_first=True).to(DEV))
    joint = nn.Linear(320, 256).to(DEV)
    ps = [p for m in (enc, emb, pred, joint) for p in m.parameters()]
    opt = torch.optim.SGD(ps, lr=0.01)
    for step in range(4):
        feats = torch.randn(8, 150, 80, device=DEV)
        tgt = torch.randint(1, 256, (8, 30), device=DEV)
        a = enc(feats)[0]
        b = pred(emb(nn.functional.pad(tgt, (1, 0))))[0]
        logits = joint(torch.tanh(a[:, :, None] + b[:, None]))
        loss = torchaudio.functional.rnnt_loss(
            logits,
            tgt.int(),
            torch.full((8,), 150, dtype=torch.int32, device=DEV),
            torch.full((8,), 30, dtype=torch.int32, device=DEV),
            blank=0,
        )
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(step, loss.item())


@job
def neural_ode():
    import torch
    from torch import nn
    from torchdiffeq import odeint, odeint_adjoint

    torch.manual_seed(0)

    class Field(nn.Module):
        def __init__(self, c=64):
            super().__init__()
            self.n, self.a, self.b = (
                nn.GroupNorm(8, c),
                nn.Conv2d(c + 1, c, 3, padding=1),
                nn.Conv2d(c, c, 3, padding=1),
            )

        def forward(self, t, x):
            tt = t * torch.ones_like(x[:, :1])
            return self.b(torch.relu(self.a(torch.cat([tt, self.n(x)], 1))))

    stem, field, head = nn.Conv2d(3, 64, 3, 2, 1), Field(), nn.Linear(64, 10)
    net = nn.ModuleList([stem, field, head]).to(DEV)
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    times = torch.tensor([0.0, 1.0], device=DEV)
    for solve in (odeint, odeint_adjoint):
        for step in range(3):
            x, y = (torch.randn(64, 3, 64, 64, device=DEV), torch.randint(0, 10, (64,), device=DEV))
            z = solve(field, stem(x), times, method="rk4", options=dict(step_size=0.25))[-1]
            loss = nn.functional.cross_entropy(head(z.mean((2, 3))), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            print(solve.__name__, step, loss.item())


@job
def exact_gp():
    import gpytorch
    import torch

    torch.manual_seed(0)
    x = torch.rand(2500, 6, device=DEV)
    y = torch.sin(x.sum(1) * 3) + 0.1 * torch.randn(2500, device=DEV)

    class GP(gpytorch.models.ExactGP):
        def __init__(self, lik):
            super().__init__(x, y, lik)
            self.mean = gpytorch.means.ConstantMean()
            self.cov = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(2.5, ard_num_dims=6))

        def forward(self, z):
            return gpytorch.distributions.MultivariateNormal(self.mean(z), self.cov(z))

    lik = gpytorch.likelihoods.GaussianLikelihood().to(DEV)
    gp = GP(lik).to(DEV)
    opt = torch.optim.Adam(gp.parameters(), lr=0.1)
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(lik, gp)
    with gpytorch.settings.max_cholesky_size(4000):
        for i in range(8):
            opt.zero_grad()
            loss = -mll(gp(x), y)
            loss.backward()
            opt.step()
            print(i, loss.item())
        gp.eval(), lik.eval()
        with torch.no_grad(), gpytorch.settings.fast_pred_var():
            p = lik(gp(torch.rand(500, 6, device=DEV)))
            print(p.mean.mean().item(), p.variance.mean().item())


@job
def e3nn_molecules():
    import torch
    from e3nn import nn as enn, o3

    torch.manual_seed(0)
    inner, sh = o3.Irreps("32x0e+16x1o+8x2e"), o3.Irreps.spherical_harmonics(2)

    class Layer(torch.nn.Module):
        def __init__(self, i, o):
            super().__init__()
            self.tp = o3.FullyConnectedTensorProduct(i, sh, o, shared_weights=False)
            self.fc = enn.FullyConnectedNet([10, 32, self.tp.weight_numel], torch.nn.functional.silu)
            self.self_ = o3.Linear(i, o)

        def forward(self, f, src, dst, a, r):
            m = self.tp(f[src], a, self.fc(r))
            return self.self_(f) + torch.zeros_like(self.self_(f)).index_add(0, dst, m) / 4

    scalars = o3.Irreps("16x0e")
    l1, l2 = Layer(scalars, inner), Layer(inner, o3.Irreps("1x0e"))
    emb = torch.nn.Embedding(10, 16)
    net = torch.nn.ModuleList([l1, l2, emb]).to(DEV)
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    for step in range(5):
        pos = torch.randn(400, 3, device=DEV, requires_grad=True)
        kind = torch.randint(0, 10, (400,), device=DEV)
        src, dst = torch.randint(0, 400, (2, 6000), device=DEV)
        d = pos[src] - pos[dst] + 1e-3
        a = o3.spherical_harmonics(sh, d, normalize=True, normalization="component")
        r = torch.exp(-((d.norm(dim=1, keepdim=True) - torch.linspace(0, 4, 10, device=DEV)) ** 2))
        f = l2(l1(emb(kind), src, dst, a, r), src, dst, a, r)
        energy = f.sum()
        force = -torch.autograd.grad(energy, pos, create_graph=True)[0]
        loss = energy.square() * 1e-4 + force.square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(step, loss.item())


@job
def sentence_pairs():
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)

    class Words(torch.nn.Module):
        def __init__(self):
            super().__init__()
            cfg = BertConfig(
                vocab_size=30522, hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536
            )
            self.bert = BertModel(cfg, add_pooling_layer=False)

        def forward(self, features, **kw):
            h = self.bert(features["input_ids"], features["attention_mask"]).last_hidden_state
            m = features["attention_mask"][..., None].to(h.dtype)
            features["sentence_embedding"] = (h * m).sum(1) / m.sum(1).clamp(min=1e-9)
            return features

    model = SentenceTransformer(modules=[Words()], device=DEV)
    loss_fn = MultipleNegativesRankingLoss(model)
    opt = torch.optim.AdamW(model.parameters(), 2e-5)
    model.train()
    for step, (a, b) in enumerate([(20, 48), (14, 64), (32, 90), (17, 33), (25, 128), (11, 70)]):
        feats = [
            dict(
                input_ids=torch.randint(0, 30522, (64, n), device=DEV),
                attention_mask=torch.ones(64, n, dtype=torch.long, device=DEV),
            )
            for n in (a, b)
        ]
        loss = loss_fn(feats, torch.empty(0))
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        print(step, loss.item())


@job
def lora_llama():
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import LlamaConfig, LlamaForCausalLM, get_cosine_schedule_with_warmup

    torch.manual_seed(0)
    cfg = LlamaConfig(
        vocab_size=32000, hidden_size=1024, intermediate_size=2816, num_hidden_layers=8, num_attention_heads=16
    )
    model = LlamaForCausalLM(cfg).to(torch.bfloat16)
    model.gradient_checkpointing_enable()
    model.enable_input_require_grads()
    model.config.use_cache = False
    model = get_peft_model(
        model,
        LoraConfig(r=16, lora_alpha=32, lora_dropout=0.05, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"),
    ).to(DEV)
    model.print_trainable_parameters()
    opt = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=2e-4)
    sched = get_cosine_schedule_with_warmup(opt, 2, 6)
    model.train()
    for step in range(6):
        ids = torch.randint(0, 32000, (4, 384), device=DEV)
        labels = ids.clone()
        labels[:, :100] = -100
        loss = model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=labels).loss
        loss.backward()
        opt.step()
        sched.step()
        opt.zero_grad()
        print(step, loss.item())
    with tempfile.TemporaryDirectory() as d:
        model.save_pretrained(d)


@job
def hf_trainer():
    import torch
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

    class Rows(torch.utils.data.Dataset):
        def __init__(self, n, seed):
            g = torch.Generator().manual_seed(seed)
            self.ids = torch.randint(0, 20000, (n, 128), generator=g)
            self.y = torch.randint(0, 3, (n,), generator=g)

        def __len__(self):
            return len(self.y)

        def __getitem__(self, i):
            return dict(input_ids=self.ids[i], attention_mask=torch.ones(128, dtype=torch.long), labels=self.y[i])

    torch.manual_seed(0)
    cfg = BertConfig(vocab_size=20000, hidden_size=384, num_hidden_layers=6, num_attention_heads=6, num_labels=3)
    with tempfile.TemporaryDirectory() as d:
        args = TrainingArguments(
            output_dir=d,
            per_device_train_batch_size=16,
            per_device_eval_batch_size=64,
            num_train_epochs=2,
            eval_strategy="epoch",
            save_strategy="epoch",
            save_total_limit=1,
            load_best_model_at_end=True,
            logging_steps=5,
            learning_rate=5e-5,
            warmup_steps=3,
            report_to="none",
            disable_tqdm=True,
            use_cpu=DEV == "cpu",
            bf16=DEV == "cuda",
            seed=0,
        )
        trainer = Trainer(
            model=BertForSequenceClassification(cfg),
            args=args,
            train_dataset=Rows(136, 0),
            eval_dataset=Rows(200, 1),
            compute_metrics=lambda p: {"acc": float((p.predictions.argmax(-1) == p.label_ids).mean())},
        )
        print(trainer.train().metrics)
        print(trainer.evaluate())


@job
def lightning_fit():
    import torch

    try:
        import lightning.pytorch as pl
        from lightning.pytorch.callbacks import ModelCheckpoint
    except ImportError:
        import pytorch_lightning as pl
        from pytorch_lightning.callbacks import ModelCheckpoint
    import torchvision
    from torch.utils.data import DataLoader, TensorDataset

    class Lit(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = torchvision.models.efficientnet_b0(num_classes=30)

        def training_step(self, batch, i):
            loss = torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])
            self.log("train_loss", loss)
            return loss

        def validation_step(self, batch, i):
            out = self.net(batch[0])
            self.log("val_loss", torch.nn.functional.cross_entropy(out, batch[1]), prog_bar=True)

        def configure_optimizers(self):
            opt = torch.optim.AdamW(self.parameters(), 1e-3)
            return [opt], [torch.optim.lr_scheduler.StepLR(opt, 1, 0.5)]

    pl.seed_everything(0)
    make = lambda n, b: DataLoader(TensorDataset(torch.randn(n, 3, 128, 128), torch.randint(0, 30, (n,))), b)
    with tempfile.TemporaryDirectory() as d:
        best = ModelCheckpoint(dirpath=d, monitor="val_loss", save_last=True)
        trainer = pl.Trainer(
            max_epochs=2,
            accelerator="gpu" if DEV == "cuda" else "cpu",
            devices=1,
            precision="16-mixed" if DEV == "cuda" else 32,
            logger=False,
            callbacks=[best],
            default_root_dir=d,
            enable_progress_bar=False,
            gradient_clip_val=1.0,
        )
        trainer.fit(Lit(), make(168, 32), make(120, 64))
        print(trainer.callback_metrics)


@job
def accelerate_fp16():
    import torch
    import torchvision
    from accelerate import Accelerator
    from accelerate.utils import set_seed
    from torch.utils.data import DataLoader, TensorDataset

    set_seed(0)
    acc = Accelerator(mixed_precision="fp16" if DEV == "cuda" else "no", gradient_accumulation_steps=2)
    model = torchvision.models.swin_t(num_classes=50)
    opt = torch.optim.AdamW(model.parameters(), 1e-4)
    data = TensorDataset(torch.randn(80, 3, 224, 224), torch.randint(0, 50, (80,)))
    loader = DataLoader(data, batch_size=12, shuffle=True, drop_last=False)
    sched = torch.optim.lr_scheduler.LinearLR(opt, total_iters=10)
    model, opt, loader, sched = acc.prepare(model, opt, loader, sched)
    for epoch in range(2):
        model.train()
        for x, y in loader:
            with acc.accumulate(model):
                loss = torch.nn.functional.cross_entropy(model(x), y)
                acc.backward(loss)
                if acc.sync_gradients:
                    acc.clip_grad_norm_(model.parameters(), 1.0)
                opt.step()
                sched.step()
                opt.zero_grad()
        acc.print(epoch, acc.gather(loss.detach()).mean().item())


@job
def compile_reduce_overhead():
    import torch
    from torch import nn

    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    model = nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.LayerNorm(4096), nn.Linear(4096, 1024), nn.GELU())
    model.append(nn.Linear(1024, 100)).to(DEV)
    fast = torch.compile(model, mode="reduce-overhead")
    opt = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    for i in range(10):
        x, y = (torch.randn(1024, 1024, device=DEV), torch.randint(0, 100, (1024,), device=DEV))
        loss = nn.functional.cross_entropy(fast(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(i, loss.item())


@job
def compile_train_step():
    import torch
    from torch import nn
    import torch.nn.functional as F

    torch.manual_seed(0)

    class Block(nn.Module):
        def __init__(self, d=256):
            super().__init__()
            self.n1, self.n2 = nn.RMSNorm(d), nn.RMSNorm(d)
            self.qkv, self.o = (nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False))
            self.up, self.down = (nn.Linear(d, 4 * d, bias=False), nn.Linear(4 * d, d, bias=False))

        def forward(self, x):
            B, T, D = x.shape
            q, k, v = self.qkv(self.n1(x)).view(B, T, 3, 4, 64).permute(2, 0, 3, 1, 4)
            x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(B, T, D))
            return x + self.down(F.relu(self.up(self.n2(x))).square())

    model = nn.Sequential(nn.Embedding(4096, 256), Block(), Block(), nn.RMSNorm(256), nn.Linear(256, 4096)).to(DEV)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)

    @torch.compile
    def train_step(x, y):
        with torch.autocast(DEV, torch.bfloat16):
            loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        return loss

    for i in range(8):
        ids = torch.randint(0, 4096, (16, 257), device=DEV)
        loss = train_step(ids[:, :-1].contiguous(), ids[:, 1:].contiguous())
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        print(i, loss.item())


@job
def cudagraph_step():
    import torch
    import torchvision

    torch.manual_seed(0)
    net = torchvision.models.resnet18(num_classes=100).cuda()
    opt = torch.optim.Adam(net.parameters(), 1e-3, capturable=True)
    x = torch.randn(64, 3, 112, 112, device="cuda")
    y = torch.randint(0, 100, (64,), device="cuda")
    s = torch.cuda.Stream()
    s.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(s):
        for _ in range(3):
            opt.zero_grad(set_to_none=True)
            loss = torch.nn.functional.cross_entropy(net(x), y)
            loss.backward()
            opt.step()
    torch.cuda.current_stream().wait_stream(s)
    g = torch.cuda.CUDAGraph()
    opt.zero_grad(set_to_none=True)
    with torch.cuda.graph(g):
        static_loss = torch.nn.functional.cross_entropy(net(x), y)
        static_loss.backward()
        opt.step()
    for i in range(10):
        x.copy_(torch.randn(64, 3, 112, 112))
        y.copy_(torch.randint(0, 100, (64,)))
        g.replay()
        print(i, static_loss.item())


@job
def activation_checkpoints():
    import torch
    from torch import nn
    from torch.utils.checkpoint import checkpoint, checkpoint_sequential

    torch.manual_seed(0)
    layers = nn.Sequential(
        *[nn.TransformerEncoderLayer(512, 8, 2048, 0.1, batch_first=True, norm_first=True) for _ in range(8)]
    ).to(DEV)
    head = nn.Linear(512, 512).to(DEV)
    opt = torch.optim.AdamW([*layers.parameters(), *head.parameters()], 1e-4)
    for mode in ("reentrant", "non-reentrant", "sequential"):
        for i in range(3):
            x = torch.randn(16, 256, 512, device=DEV, requires_grad=True)
            if mode == "sequential":
                h = checkpoint_sequential(layers, 3, x, use_reentrant=False)
            else:
                h = x
                for l in layers:
                    h = checkpoint(l, h, use_reentrant=mode == "reentrant")
            loss = (head(h) - x.detach()).square().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            print(mode, i, loss.item())


@job
def offload_saved():
    import torch
    import torchvision
    from torch.autograd.graph import save_on_cpu

    torch.manual_seed(0)
    net = torchvision.models.resnet18(num_classes=10).to(DEV)
    opt = torch.optim.SGD(net.parameters(), 0.01)
    for step in range(3):
        x, y = (torch.randn(24, 3, 128, 128, device=DEV), torch.randint(0, 10, (24,), device=DEV))
        with save_on_cpu(pin_memory=step == 2 and DEV == "cuda"):
            loss = torch.nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(step, loss.item())


@job
def foreach_off():
    import torch

    torch.manual_seed(0)
    dims = [2048, 3000, 3000, 2048]
    net = torch.nn.Sequential()
    for i, o in zip(dims, dims[1:]):
        net.append(torch.nn.Linear(i, o)).append(torch.nn.SELU())
    net.to(DEV)
    kinds = [
        lambda p: torch.optim.Adam(p, 1e-4, foreach=False),
        lambda p: torch.optim.Adam(p, 1e-4, foreach=True),
        lambda p: torch.optim.Adadelta(p, foreach=False),
        lambda p: torch.optim.Adam(p, 1e-4, fused=DEV == "cuda"),
    ]
    for k, make in enumerate(kinds):
        opt = make(net.parameters())
        for i in range(3):
            x = torch.randn(256, 2048, device=DEV)
            loss = torch.nn.functional.mse_loss(net(x), x)
            loss.backward()
            opt.step()
            opt.zero_grad(set_to_none=False)
        print(k, loss.item())


@job
def channels_last_benchmark():
    import torch
    import torchvision

    torch.backends.cudnn.benchmark = True
    torch.manual_seed(0)
    model = torchvision.models.regnet_y_800mf(num_classes=100).to(DEV, memory_format=torch.channels_last)
    opt = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, nesterov=True)
    scaler = torch.amp.GradScaler(DEV)
    for size in (128, 160, 192):  # progressive resizing
        for _ in range(3):
            x = torch.randn(48, 3, size, size).to(DEV, memory_format=torch.channels_last, non_blocking=True)
            y = torch.randint(0, 100, (48,)).to(DEV, non_blocking=True)
            with torch.autocast(DEV, torch.float16):
                loss = torch.nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()
        print(size, loss.item())


@job
def muon_bf16():
    import torch
    from torch import nn
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(0)
    cfg = Qwen2Config(
        vocab_size=12000,
        hidden_size=512,
        intermediate_size=1536,
        num_hidden_layers=6,
        num_attention_heads=8,
        num_key_value_heads=2,
        tie_word_embeddings=True,
    )
    model = Qwen2ForCausalLM(cfg).to(device=DEV, dtype=torch.bfloat16)
    body = [p for n, p in model.named_parameters() if p.ndim == 2 and "embed" not in n]
    rest = [p for n, p in model.named_parameters() if p.ndim != 2 or "embed" in n]
    opts = [torch.optim.Muon(body, lr=0.02, momentum=0.95), torch.optim.AdamW(rest, lr=3e-4)]
    for step in range(6):
        ids = torch.randint(0, 12000, (8, 320), device=DEV)
        h = model.model(ids).last_hidden_state
        logits = model.lm_head(h)[:, :-1]
        loss = nn.functional.cross_entropy(logits.reshape(-1, 12000).float(), ids[:, 1:].reshape(-1))
        loss.backward()
        for o in opts:
            o.step()
            o.zero_grad()
        print(step, loss.item())


@job
def pinn_float64():
    import torch

    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    net = torch.nn.Sequential()
    for i, o in [(2, 128), (128, 128), (128, 128), (128, 128)]:
        net.append(torch.nn.Linear(i, o)).append(torch.nn.Tanh())
    net.append(torch.nn.Linear(128, 1)).to(DEV)
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    d = lambda u, z: torch.autograd.grad(u, z, torch.ones_like(u), create_graph=True)[0]
    nu = 0.01 / torch.pi
    for it in range(15):
        x = (torch.rand(8000, 1, device=DEV) * 2 - 1).requires_grad_()
        t = torch.rand(8000, 1, device=DEV, requires_grad=True)
        u = net(torch.cat([x, t], 1))
        ux, ut = d(u, x), d(u, t)
        res = ut + u * ux - nu * d(ux, x)
        x0 = torch.rand(500, 1, device=DEV) * 2 - 1
        u0 = net(torch.cat([x0, torch.zeros_like(x0)], 1))
        loss = res.square().mean() + (u0 + torch.sin(torch.pi * x0)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if it % 5 == 0:
            print(it, loss.item())
    grid = torch.stack(torch.meshgrid(*[torch.linspace(-1, 1, 400, device=DEV)] * 2, indexing="ij"), -1).view(-1, 2)
    with torch.no_grad():
        print(net(grid).abs().max().item())


@job
def fourier_operator():
    import torch
    from torch import nn

    torch.manual_seed(0)

    class Spectral(nn.Module):
        def __init__(self, c, m):
            super().__init__()
            self.m = m
            self.w = nn.ParameterList(
                [nn.Parameter(torch.randn(c, c, m, m, dtype=torch.cfloat) / c**2) for _ in range(2)]
            )

        def forward(self, x):
            f = torch.fft.rfft2(x)
            out = torch.zeros_like(f)
            m = self.m
            out[:, :, :m, :m] = torch.einsum("bixy,ioxy->boxy", f[:, :, :m, :m], self.w[0])
            out[:, :, -m:, :m] = torch.einsum("bixy,ioxy->boxy", f[:, :, -m:, :m], self.w[1])
            return torch.fft.irfft2(out, s=x.shape[-2:])

    class FNO(nn.Module):
        def __init__(self, c=40, m=12):
            super().__init__()
            self.p, self.q = (nn.Conv2d(3, c, 1), nn.Sequential(nn.Conv2d(c, 128, 1), nn.GELU(), nn.Conv2d(128, 1, 1)))
            self.s = nn.ModuleList(Spectral(c, m) for _ in range(4))
            self.w = nn.ModuleList(nn.Conv2d(c, c, 1) for _ in range(4))

        def forward(self, x):
            x = self.p(x)
            for s, w in zip(self.s, self.w):
                x = nn.functional.gelu(s(x) + w(x))
            return self.q(x)

    net = FNO().to(DEV)
    opt = torch.optim.Adam(net.parameters(), 1e-3, weight_decay=1e-4)
    for epoch in range(2):
        for _ in range(4):
            a, u = (torch.randn(16, 3, 96, 96).to(DEV), torch.randn(16, 1, 96, 96).to(DEV))
            loss = ((net(a) - u).flatten(1).norm(dim=1) / u.flatten(1).norm(dim=1)).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        with torch.no_grad():  # at a finer grid
            print(epoch, loss.item(), net(torch.randn(8, 3, 192, 192).to(DEV)).std().item())


@job
def lowrank_galore():
    import torch

    torch.manual_seed(0)
    A = torch.randn(3000, 64, device=DEV) @ torch.randn(64, 2000, device=DEV)
    A += 0.1 * torch.randn_like(A)
    U, S, Vh = torch.linalg.svd(A[:1200, :1000], full_matrices=False)
    print((U[:, :64] * S[:64] @ Vh[:64] - A[:1200, :1000]).norm().item())
    Q = torch.linalg.qr(A @ torch.randn(2000, 80, device=DEV)).Q
    for _ in range(2):
        Q = torch.linalg.qr(A.T @ Q).Q
        Q = torch.linalg.qr(A @ Q).Q
    print((Q @ (Q.T @ A) - A).norm().item())
    # gradients projected on their leading directions
    W = torch.nn.Parameter(torch.zeros(2000, 3000, device=DEV))
    m = v = None
    for t in range(1, 9):
        X = torch.randn(512, 2000, device=DEV)
        loss = torch.nn.functional.mse_loss(X @ W, X @ A.T)
        (g,) = torch.autograd.grad(loss, W)
        if t % 4 == 1:
            P = torch.svd_lowrank(g, q=32)[0]
        r = P.T @ g
        m = 0.1 * r if m is None else m.mul_(0.9).add_(r, alpha=0.1)
        v = 0.01 * r * r if v is None else v.mul_(0.99).addcmul_(r, r, value=0.01)
        with torch.no_grad():
            W -= 0.01 * P @ (m / (v.sqrt() + 1e-8))
        print(t, loss.item())


@job
def prefetch_stream():
    import torch
    import torchvision

    torch.manual_seed(0)

    class Prefetcher:
        def __init__(self, loader):
            self.it = iter(loader)
            self.stream = torch.cuda.Stream()
            self.mean = torch.tensor([123.7, 116.3, 103.5], device="cuda").view(1, 3, 1, 1)
            self.load()

        def load(self):
            try:
                self.x, self.y = next(self.it)
            except StopIteration:
                self.x = None
                return
            with torch.cuda.stream(self.stream):
                self.x = self.x.cuda(non_blocking=True).float().sub_(self.mean).div_(58.0)
                self.y = self.y.cuda(non_blocking=True)

        def next(self):
            torch.cuda.current_stream().wait_stream(self.stream)
            x, y = self.x, self.y
            if x is not None:
                x.record_stream(torch.cuda.current_stream())
                y.record_stream(torch.cuda.current_stream())
                self.load()
            return x, y

    data = torch.utils.data.TensorDataset(
        torch.randint(0, 256, (208, 3, 160, 160), dtype=torch.uint8), torch.randint(0, 10, (208,))
    )
    loader = torch.utils.data.DataLoader(data, batch_size=32, pin_memory=True)
    net = torchvision.models.shufflenet_v2_x1_0(num_classes=10).cuda()
    opt = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    for epoch in range(2):
        pre = Prefetcher(loader)
        x, y = pre.next()
        while x is not None:
            loss = torch.nn.functional.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            x, y = pre.next()
        print(epoch, loss.item())


@job
def empty_cache_loop():
    import gc
    import torch
    import torchvision

    torch.manual_seed(0)
    net = torchvision.models.densenet121(num_classes=14).cuda()
    opt = torch.optim.Adam(net.parameters(), lr=1e-4)
    losses = []
    for step, (b, s) in enumerate([(8, 224), (16, 224), (12, 192), (20, 256), (6, 320)]):
        x, y = torch.randn(b, 3, s, s).cuda(), torch.rand(b, 14).round().cuda()
        out = net(x)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(out, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
        del x, y, out, loss
        gc.collect()
        torch.cuda.empty_cache()
        print(step, losses[-1], torch.cuda.memory_reserved() >> 20)


NAMES = list(JOBS)

if __name__ == "__main__":
    JOBS[sys.argv[1]]()
