"""Small training jobs, as a user would write them: `python jobs.py MODEL LOOP` prints the loss of each step.

They know nothing of measures. Losses are printed in hexadecimal, with all their bits.
"""

import contextlib
import io
import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import clip_grad_norm_
from torch.utils.data import DataLoader, TensorDataset

STEPS = 20


class Block(nn.Module):
    """A block of a transformer."""

    def __init__(self, width, dropout):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 4, dropout=dropout, batch_first=True)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        y = self.norm1(x)
        x = x + self.dropout(self.attention(y, y, y, need_weights=False)[0])
        return x + self.dropout(self.mlp(self.norm2(x)))


class Transformer(nn.Module):
    """Classifies sequences."""

    def __init__(self, dropout=0.1):
        super().__init__()
        self.embedding = nn.Embedding(100, 32)
        self.blocks = nn.ModuleList([Block(32, dropout) for _ in range(4)])
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        x = self.embedding(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(1))


class BasicBlock(nn.Module):
    """A block of a ResNet."""

    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels, momentum=None)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(x + self.bn2(self.conv2(y)))


class ResNet(nn.Module):
    """Classifies images. The last loss is that of evaluation, which uses the running statistics."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.layer1 = nn.Sequential(BasicBlock(8), BasicBlock(8))
        self.down = nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.layer2 = nn.Sequential(BasicBlock(16), BasicBlock(16))
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        x = self.layer2(self.down(self.layer1(self.stem(x))))
        return self.head(x.mean((2, 3)))


class LanguageModel(nn.Module):
    """Predicts one of many tokens; the logits are (rows, classes)."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(4096, 16)
        self.head = nn.Linear(16, 4096)

    def forward(self, x):
        return self.head(self.embedding(x)).flatten(0, 1)


def llama(name):
    """A small Hugging Face model, which returns its loss."""
    import transformers

    config = transformers.LlamaConfig(
        vocab_size=4096, hidden_size=32, intermediate_size=64, num_hidden_layers=3, num_attention_heads=4,
        attn_implementation="sdpa" if name == "llama_sdpa" else "eager", use_cache=name != "llama_uncached",
        attention_dropout=0.1 if name == "llama_uncached" else 0.0,
    )
    return transformers.LlamaForCausalLM(config)


def build(name):
    """The model, its batches and the function of its loss."""
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)

    def integers(high, *shape):
        return torch.randint(high, shape, generator=generator)

    if name in ("transformer", "plain_transformer"):
        model = Transformer(0.1 if name == "transformer" else 0.0)
        x = integers(100, 8 * STEPS, 12)
        return model, x, x[:, 0] % 10, lambda model, x, y: F.cross_entropy(model(x), y)
    if name == "resnet":
        x = torch.randn(8 * STEPS, 3, 8, 8, generator=generator)
        return ResNet(), x, (x.mean((1, 2, 3)) > 0).long(), lambda model, x, y: F.cross_entropy(model(x), y)
    if name == "lm":
        x = integers(4096, 8 * STEPS, 128) // 64
        loss = nn.CrossEntropyLoss(ignore_index=3)
        return LanguageModel(), x, x + 1, lambda model, x, y: loss(model(x), y.flatten())
    if name.startswith("llama"):
        x = integers(4096, 8 * STEPS, 130) // 64
        return llama(name), x, x, lambda model, x, y: model(input_ids=x, labels=y).loss
    if name == "linear":
        x = torch.randn(8 * STEPS, 16, generator=generator)
        model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1))
        return model, x, x.sum(1, keepdim=True), lambda model, x, y: F.mse_loss(model(x), y)
    raise ValueError(name)


def make_optimizer(loop, model):
    """The optimizer of a loop."""
    parameters = model.parameters()
    if loop == "sgd":
        return torch.optim.SGD(parameters, lr=0.02, momentum=0.9)
    if loop == "adagrad":
        return torch.optim.Adagrad(parameters, lr=0.01)
    if loop == "adam":
        return torch.optim.Adam([{"params": parameters, "lr": 0.002}], weight_decay=0.01)
    if loop == "fused":
        return torch.optim.AdamW(parameters, lr=0.003, fused=True)
    if loop == "groups":
        # Made anew, and kept by the script, as in nanoGPT.
        named = {name: p for name, p in model.named_parameters() if p.requires_grad}
        decayed = [p for p in named.values() if p.dim() >= 2]
        others = [p for p in named.values() if p.dim() < 2]
        groups = [{"params": decayed, "weight_decay": 0.1, "lr": 0.001}, {"params": others, "weight_decay": 0.0}]
        return torch.optim.AdamW(groups, lr=0.003)
    if loop == "lbfgs":
        return torch.optim.LBFGS(parameters, lr=0.05, max_iter=3)
    return torch.optim.AdamW(parameters, lr=0.003)


def train(loop, model, x, y, loss_of):
    """Loops as they are found in scripts."""
    optimizer = make_optimizer(loop, model)
    kept = list(model.parameters())
    model.train()
    if loop == "loader":
        return loop_of_loader(model, optimizer, x, y, loss_of)
    batches = list(zip(x.split(8), y.split(8)))
    if loop in ("closure", "lbfgs"):
        return loop_of_closures(model, optimizer, batches, loss_of)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.003, STEPS) if loop == "scheduler" else None
    scaler = torch.amp.GradScaler("cpu", enabled=loop == "scaler_on") if loop.startswith("scaler") else None
    autocast = torch.autocast("cpu", torch.bfloat16) if loop == "autocast" else contextlib.nullcontext()
    for step, (x, y) in enumerate(batches):
        if loop == "early":
            optimizer.zero_grad()
        if loop == "sets_rate":
            optimizer.param_groups[0]["lr"] = 0.003 / (1 + step)
        with autocast:
            loss = loss_of(model, x, y)
        print(loss.item().hex())
        if loop == "keeps_zeros":
            optimizer.zero_grad(set_to_none=False)
        elif loop != "accumulate" or step % 4 == 0:
            optimizer.zero_grad()
        if scaler is not None:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            continue
        loss.backward()
        if loop == "clip":
            clip_grad_norm_(model.parameters(), 0.5)
        if loop == "groups":
            print(clip_grad_norm_(kept, 0.5).item().hex())
        if loop == "reads":
            print(sum(p.grad.norm() for p in model.parameters() if p.grad is not None).item().hex())
        if loop != "accumulate" or step % 4 == 3:
            optimizer.step()
        if loop == "reads_late":
            print(sum(p.grad.norm() for p in model.parameters() if p.grad is not None).item().hex())
            optimizer.zero_grad()
        if scheduler is not None:
            scheduler.step()
        if loop == "resumes" and step == STEPS // 2:
            optimizer = resume(model, optimizer)


def resume(model, optimizer):
    """Saves the states of a model and its optimizer, and loads them into others; returns the other optimizer."""
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    states = torch.load(file)
    print(sum(value.double().sum() for value in states["model"].values()).item().hex())
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    model.load_state_dict(states["model"])
    other = torch.optim.AdamW(model.parameters(), lr=0.003)
    other.load_state_dict(states["optimizer"])
    return other


def loop_of_loader(model, optimizer, x, y, loss_of):
    """Two epochs of shuffled batches of a DataLoader, with schedules by step and by epoch; the loss is that of samples
    after each epoch, as the batches may be in parts."""
    loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
    warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1, (step + 1) / 10))
    for _ in range(2):
        for x_batch, y_batch in loader:
            optimizer.zero_grad()
            loss_of(model, x_batch, y_batch).backward()
            clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            warmup.step()
        with torch.no_grad():
            print(loss_of(model, x, y).item().hex())
        print(float(optimizer.param_groups[0]["lr"]).hex())


def loop_of_closures(model, optimizer, batches, loss_of):
    """Steps with closures."""
    for x, y in batches:

        def closure():
            optimizer.zero_grad()
            loss = loss_of(model, x, y)
            loss.backward()
            return loss

        print(optimizer.step(closure).item().hex())


def train_gan(model, x):
    """Two models and optimizers; the discriminator gets gradients from the loss of the generator, too."""
    generator = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 16))
    optimizers = [torch.optim.Adam(module.parameters(), lr=0.003) for module in (model, generator)]
    for real in x.split(8):
        fake = generator(torch.randn(8, 4))
        optimizers[0].zero_grad()
        loss = F.softplus(-model(real)).mean() + F.softplus(model(fake.detach())).mean()
        loss.backward()
        optimizers[0].step()
        optimizers[1].zero_grad()
        loss_of_fake = F.softplus(-model(fake)).mean()
        loss_of_fake.backward()
        optimizers[1].step()
        print((loss + loss_of_fake).item().hex())


class Rows(torch.utils.data.Dataset):
    """Sequences for the Trainer."""

    def __init__(self, x):
        self.x = x

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return {"input_ids": self.x[index], "labels": self.x[index]}


def train_by_trainer(model, x, max_grad_norm):
    """The Trainer of transformers."""
    import tempfile

    import transformers

    class Losses(transformers.TrainerCallback):
        def on_log(self, args, state, control, logs=None, **kwargs):
            if "loss" in logs:
                print(float(logs["loss"]).hex())

    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            folder, per_device_train_batch_size=8, max_steps=STEPS, logging_steps=1, learning_rate=3e-3, use_cpu=True,
            report_to=[], save_strategy="no", max_grad_norm=max_grad_norm, disable_tqdm=True,
        )
        transformers.Trainer(model, arguments, train_dataset=Rows(x), callbacks=[Losses()]).train()


def train_by_lightning(x, y):
    """Lightning, whose training step calls submodules."""
    import logging

    import lightning

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.encoder = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Dropout(0.1))
            self.decoder = nn.Linear(32, 1)

        def training_step(self, batch, _):
            loss = F.mse_loss(self.decoder(self.encoder(batch[0])), batch[1])
            print(loss.item().hex())
            return loss

        def configure_optimizers(self):
            optimizer = torch.optim.AdamW(self.parameters(), lr=0.003)
            return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1)]

    trainer = lightning.Trainer(
        max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False,
    )
    torch.manual_seed(3)
    trainer.fit(Module(), DataLoader(TensorDataset(x[:80], y[:80]), batch_size=8))


def main(name, loop):
    """Trains."""
    torch.set_num_threads(1)
    model, x, y, loss_of = build(name)
    if loop == "trainer" or loop == "trainer_clip":
        return train_by_trainer(model, x, 1.0 if loop == "trainer_clip" else 0.0)
    if loop == "lightning":
        return train_by_lightning(x, y)
    if loop == "hooks":
        next(model.parameters()).register_hook(lambda gradient: gradient * 2)
    if loop == "distributed":
        torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    if loop == "gan":
        return train_gan(nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1)), x)
    train(loop, model, x, y, loss_of)
    model.eval()
    with torch.no_grad():
        print(loss_of(model, x[:8], y[:8]).item().hex())


if __name__ == "__main__":
    main(*sys.argv[1:])
