"""What calls of PyTorch's CUDA build allocate beside their results: workspaces and reserves of NVIDIA's libraries.

    python workspaces.py

Prints a line for each call: sizes in bytes, with `kept` if the memory is still in use behind the call, for example by what
autograd saves.
"""

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)


def requests(call):
    """Sizes that a call requests in order, each with its address, and the addresses that are in use at the end."""
    torch.cuda.synchronize()
    torch.cuda.memory._record_memory_history(max_entries=100000)
    kept = call()
    addresses = {tensor.untyped_storage().data_ptr() for tensor in kept}
    events = torch.cuda.memory._snapshot()["device_traces"][0]
    torch.cuda.memory._record_memory_history(enabled=None)
    found, alive = [], {}
    for event in events:
        if event["action"] == "alloc":
            alive[event["addr"]] = len(found)
            found.append([event["size"], event["addr"]])
        elif event["action"] in ("free_completed", "free") and event["addr"] in alive:
            del alive[event["addr"]]
    del kept
    return [
        (size, "result" if at in addresses else "kept" if alive.get(at) == place else "freed")
        for place, (size, at) in enumerate(found)
    ]


def measure(name, call):
    try:
        found = [(size, life) for size, life in requests(call) if life != "result"]
        print(f"{name}: " + (", ".join(f"{size} {life}" for size, life in found) or "none"), flush=True)
    except Exception as error:
        print(f"{name}: {type(error).__name__}: {str(error).splitlines()[0][:120]}", flush=True)


def random(*shape, dtype=torch.float32, grad=False):
    return torch.randn(*shape, dtype=dtype).cuda().requires_grad_(grad)


print("release", torch.__version__, "cuDNN", torch.backends.cudnn.version(), "capability", torch.cuda.get_device_capability())
a, b = random(256, 256, dtype=torch.float16), random(256, 256, dtype=torch.float16)
measure("product", lambda: [a @ b])
measure("product again", lambda: [a @ b])
linear = nn.Linear(256, 256).half().cuda().requires_grad_(False)
measure("linear with bias", lambda: [linear(a)])
measure("linear with bias again", lambda: [linear(a)])

q, k, v = (random(2, 8, 512, 64, dtype=torch.bfloat16, grad=True) for _ in range(3))


def attention(backend):
    def call():
        from torch.nn.attention import SDPBackend, sdpa_kernel

        with sdpa_kernel(getattr(SDPBackend, backend)):
            out = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        grad = torch.ones_like(out)
        return [out, grad, *torch.autograd.grad(out, (q, k, v), grad)]

    return call


for backend in ("FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION"):
    measure(f"attention {backend}", attention(backend))

for name, kind in (("LSTM", nn.LSTM), ("GRU", nn.GRU)):
    layer = kind(64, 128, num_layers=2, batch_first=True).cuda()
    steps = random(16, 50, 64)

    def recurrent(layer=layer, steps=steps):
        out, last = layer(steps)
        return [out, *(last if isinstance(last, tuple) else (last,))]

    measure(f"{name} forward", recurrent)

log_probabilities = random(50, 4, 20).log_softmax(2).requires_grad_()
targets, lengths = torch.ones(4, 10, dtype=torch.int64).cuda(), (torch.full((4,), 50), torch.full((4,), 10))
measure("CTC loss", lambda: [functional.ctc_loss(log_probabilities, targets, *lengths)])

for name, layout in (("NCHW", torch.contiguous_format), ("NHWC", torch.channels_last)):
    norm = nn.BatchNorm2d(64).cuda()
    image = random(8, 64, 32, 32, dtype=torch.float16).to(memory_format=layout).requires_grad_()

    def batch_norm(norm=norm, image=image):
        out = norm(image)
        return [out]

    measure(f"batch norm {name}, float16", batch_norm)

square = random(128, 128)
measure("fft", lambda: [torch.fft.fft2(square)])
measure("cholesky", lambda: [torch.linalg.cholesky(square)])
measure("solve", lambda: [torch.linalg.solve(square, square)])
measure("eigh", lambda: list(torch.linalg.eigh(square)))
measure("svd", lambda: list(torch.linalg.svd(square)))
measure("sort", lambda: list(random(1 << 20).sort()))
measure("cumsum", lambda: [random(1 << 20).cumsum(0)])
