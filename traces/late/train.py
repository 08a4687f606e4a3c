"""Six iterations of training; on the CPU, the last three of five recorded by a scheduled profiler.

    train.py cpu TRACE.json
    train.py cuda
"""

import sys

import torch
from torch.nn.functional import cross_entropy
from torch.profiler import ProfilerActivity, profile, schedule


def resnet18(device):
    import torchvision

    model = torchvision.models.resnet18().to(device)

    def loss():
        images, labels = torch.randn(8, 3, 128, 128), torch.randint(0, 1000, (8,))
        return cross_entropy(model(images.to(device)), labels.to(device))

    return loss, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def main(device, trace=None):
    torch.manual_seed(0)
    loss, optimizer = resnet18(device)

    def step():
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    if trace is None:
        for _ in range(6):
            step()
        return
    with profile(
        activities=[ProfilerActivity.CPU],
        profile_memory=True,
        record_shapes=True,
        schedule=schedule(wait=1, warmup=1, active=3),
        on_trace_ready=lambda profiler: profiler.export_chrome_trace(trace),
    ) as profiler:
        for _ in range(5):
            step()
            profiler.step()


if __name__ == "__main__":
    main(*sys.argv[1:])
