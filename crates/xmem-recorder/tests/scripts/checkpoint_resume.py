"""A checkpoint is saved after each step, and the job continues from one loaded onto the device."""
# /// xmem
# iterations = 3
# stdout = ["resumed from step 7 on cuda:0", "saved 3 tensors of cuda:0"]
# stdout-without = ["done"]
# ///
import torch
from torch import nn

model = nn.Linear(512, 512).cuda()
optimizer = torch.optim.AdamW(model.parameters())
torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": 7}, "last.pt")

saved = torch.load("last.pt", map_location="cuda")
print("resumed from step", saved["step"], "on", saved["model"]["weight"].device, flush=True)
model.load_state_dict(saved["model"])
optimizer.load_state_dict(saved["optimizer"])
torch.load("last.pt", map_location=torch.device("cuda:0"))
torch.load("last.pt", map_location=lambda storage, location: storage.cuda())
for step in range(20):
    optimizer.zero_grad()
    model(torch.randn(32, 512, device="cuda")).square().mean().backward()
    torch.save({"model": model.state_dict(), "step": step}, "last.pt")
    kept = [*model.state_dict().values(), torch.zeros(1, device="cuda")]
    print("saved", len(kept), "tensors of", kept[0].device, flush=True)
    optimizer.step()
print("done")
