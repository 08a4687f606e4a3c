"""Weights that are not initialized on the host move the random numbers on as an initialization would have."""
# /// xmem
# skip-on-cpu = "weights are initialized on the CPU"
# iterations = 1
# options = ["--steps", "1"]
# stdout = [
#   "normal_ torch.float32: True",
#   "normal_ torch.float64: True",
#   "normal_ torch.bfloat16: True",
#   "uniform_ torch.float32: True",
#   "uniform_ torch.float64: True",
#   "uniform_ torch.bfloat16: True",
#   "a generator: True True",
# ]
# ///
import torch
from torch import nn

SIZES = (1 << 20, (1 << 20) + 5, 1_500_000)
FACTORIES = {"normal_": torch.randn, "uniform_": torch.rand}


def numbers_after(drawing, generator=None):
    """What is drawn after functions were called."""
    if generator is None:
        torch.manual_seed(7)
    else:
        generator.manual_seed(7)
    # The numbers are made many at a time: not at the beginning of those.
    torch.rand(10, generator=generator)
    for draw in drawing:
        draw()
    return torch.rand(3, generator=generator).tolist() + torch.randn(3, generator=generator).tolist()


def initializations(method, dtype, generator=None):
    parameters = [nn.Parameter(torch.empty(size, dtype=dtype)) for size in SIZES]
    return [lambda p=parameter: getattr(nn.init, method)(p, generator=generator) for parameter in parameters]


for method, factory in FACTORIES.items():
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        draws = [lambda s=size: factory(s, dtype=dtype) for size in SIZES]
        print(f"{method} {dtype}:", numbers_after(initializations(method, dtype)) == numbers_after(draws))

generator = torch.Generator()
before = torch.get_rng_state()
after = numbers_after(initializations("normal_", torch.float32, generator), generator)
print("a generator:", torch.equal(before, torch.get_rng_state()),
      after == numbers_after(initializations("normal_", torch.float32)))

model = nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.rand(4, 512, device="cuda")).sum().backward()
optimizer.step()
