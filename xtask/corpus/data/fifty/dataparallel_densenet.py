# Old habits: nn.DataParallel around a torchvision model, with a validation pass that keeps the best weights
import argparse
import torch
import torch.nn as nn
import torchvision
from torch.utils.data import DataLoader

ap = argparse.ArgumentParser()
ap.add_argument("--bs", type=int, default=32)
ap.add_argument("--epochs", type=int, default=2)
opt = ap.parse_args()
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
transform = torchvision.transforms.Compose(
    [
        torchvision.transforms.RandomHorizontalFlip(),
        torchvision.transforms.ToTensor(),
        torchvision.transforms.Normalize((0.5,) * 3, (0.5,) * 3),
    ]
)
train = torchvision.datasets.FakeData(100, (3, 64, 64), 20, transform)
val = torchvision.datasets.FakeData(50, (3, 64, 64), 20, torchvision.transforms.ToTensor(), random_offset=1000)
model = torchvision.models.densenet121(weights=None, num_classes=20, memory_efficient=False)
model = nn.DataParallel(model).to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
best_acc = 0.0
for epoch in range(opt.epochs):
    model.train()
    running = 0.0
    for inputs, labels in DataLoader(train, opt.bs, shuffle=True, num_workers=0):
        inputs, labels = inputs.to(device), labels.to(device)
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()
        running += loss.item() * inputs.size(0)
    model.eval()
    correct = 0
    with torch.no_grad():
        for inputs, labels in DataLoader(val, opt.bs):
            correct += (model(inputs.to(device)).max(1)[1] == labels.to(device)).sum().item()
    scheduler.step(running)
    if correct >= best_acc:
        best_acc = correct
        torch.save(model.module.state_dict(), "best.pth")
    print(f"Epoch {epoch} loss {running / len(train):.4f} acc {correct / len(val):.3f}")
model.module.load_state_dict(torch.load("best.pth"))
