"""Weights and results are written in the ways of several libraries, read again, and reach no file of the user."""
# /// xmem
# iterations = 3
# stdout = ["resumed at 2 with 1048576 weights", "read again: 5 of 5", "last words"]
# stderr = ["note: kept out of your files: 7 files that the script wrote (…, 3 checkpoints)…"]
# ///
import os
import sqlite3

import numpy
import torch
from safetensors.torch import load_file, save_file
from torch import nn

model = nn.Linear(1024, 1024).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
try:
    for step in range(20):
        optimizer.zero_grad()
        model(torch.randn(32, 1024, device="cuda")).square().mean().backward()
        state = {"model": model.state_dict(), "step": step, "rng": torch.get_rng_state(), "lr": torch.tensor([0.25])}
        torch.save(state, "last.pt.part")
        os.replace("last.pt.part", "last.pt")
        saved = torch.load("last.pt", map_location="cpu")
        assert torch.equal(saved["rng"], state["rng"]) and saved["lr"].item() == 0.25
        model.load_state_dict(saved["model"])
        print("resumed at", saved["step"], "with", saved["model"]["weight"].numel(), "weights", flush=True)

        save_file(model.state_dict(), "model.safetensors", metadata={"format": "pt"})
        found = [load_file("model.safetensors")["weight"].shape == model.weight.shape]
        numpy.save("losses.npy", numpy.arange(3))
        found.append(numpy.load("losses.npy").sum() == 3)
        numpy.memmap("table.dat", dtype="float32", mode="w+", shape=(10,))[:] = 2
        found.append(numpy.fromfile("table.dat", dtype="float32").sum() == 20)
        connection = sqlite3.connect("runs.db")
        connection.execute("create table if not exists runs (step)")
        connection.execute("insert into runs values (1)")
        connection.commit()
        found.append(connection.execute("select count(*) from runs").fetchone() == (step + 1,))
        connection.close()
        torch.jit.save(torch.jit.script(nn.Linear(2, 2)), "script.jit")
        found.append(os.path.getsize("script.jit") > 100)
        print("read again:", sum(found), "of", len(found), flush=True)
        optimizer.step()
finally:
    torch.save(model.state_dict(), "best.pt")
    print("last words", flush=True)
