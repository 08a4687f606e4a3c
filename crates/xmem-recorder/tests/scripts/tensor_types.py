"""Tensors made by `torch.cuda.FloatTensor` and the like, from sizes, numbers, arrays and tensors."""
# /// xmem
# iterations = 3
# stdout = ["types: 10"]
# stdout-without = ["done"]
# ///
import numpy
import torch
from torch import nn
from torch.autograd import Variable

names = ["BFloat16", "Bool", "Byte", "Char", "Double", "Float", "Half", "Int", "Long", "Short"]
types = [getattr(torch.cuda, f"{name}Tensor") for name in names]
for kind, name in zip(types, names):
    made = kind(2, 3)
    assert made.device.type == "cuda" and made.dtype == kind.dtype, kind
    assert made.type() == f"torch.cuda.{name}Tensor", made.type()
    assert isinstance(made, kind), kind
    assert isinstance(made, torch.Tensor) and not isinstance(torch.ones(2), kind), kind
    assert torch.ones(2, 3).type(kind).type() == torch.ones(2, 3).type(made.type()).type(), kind
print("types:", len(types))

FloatTensor, LongTensor = torch.cuda.FloatTensor, torch.cuda.LongTensor
assert FloatTensor([1, 2, 3]).sum().item() == 6.0
embedding, model = nn.Embedding(10, 64).cuda(), nn.Linear(64, 1).cuda()
optimizer = torch.optim.Adam([*embedding.parameters(), *model.parameters()])
for step in range(20):
    labels = Variable(LongTensor(numpy.random.randint(0, 10, 4096)))
    noise = Variable(FloatTensor(numpy.random.normal(0, 1, (4096, 64))))
    valid = Variable(FloatTensor(4096, 1).fill_(1.0), requires_grad=False)
    seen = torch.randn(4096, 64).type(FloatTensor)
    optimizer.zero_grad()
    loss = nn.functional.binary_cross_entropy_with_logits(model(embedding(labels) + noise + seen), valid)
    loss.backward()
    optimizer.step()
print("done")
