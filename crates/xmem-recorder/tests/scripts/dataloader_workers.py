"""A convolutional network fed by a DataLoader with worker processes and pinned memory."""
# /// xmem
# iterations = 3
# stdout-without = ["done"]
# [inspect]
# "/job/optimizers" = ["SGD"]
# [recording]
# "/tensors" = { contains = { name = "1.running_mean", kind = "buffer" } }
# "/optimizers/0/arguments/momentum" = 0.9
# "/optimizers/0/state" = { contains = { name = "momentum_buffer" } }
# "/batch/size" = 32
# [replay]
# "/by_role/buffer" = { at-least = 1 }
# ///
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Pictures(Dataset):
    def __len__(self):
        return 4096

    def __getitem__(self, index):
        return torch.full((3, 32, 32), index / 4096), index % 10


def main():
    device = torch.device("cuda")
    loader = DataLoader(
        Pictures(), batch_size=32, shuffle=True, num_workers=2, pin_memory=True, drop_last=True,
        persistent_workers=True,
    )
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(64, 10),
    ).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    for _ in range(10):
        for pictures, labels in loader:
            pictures = pictures.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            loss = nn.functional.cross_entropy(model(pictures), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scheduler.step()
    print("done")


if __name__ == "__main__":
    main()
