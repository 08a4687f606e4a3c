"""What lies outside the allocator: memory of the context and of each library at its first use, the device's granularity and capacity, and addresses. outside.py OUT.json [libraries|capacity]"""

import json, os, subprocess, sys, time
import torch
import torch.nn.functional as F

part = sys.argv[2] if len(sys.argv) > 2 else "libraries"
rows = []


def used():
    free, total = torch.cuda.mem_get_info()
    return total - free


def smi():
    try:
        return subprocess.check_output(
            [
                "nvidia-smi",
                "--query-gpu=memory.used,memory.total,memory.reserved,driver_version,clocks.max.sm,clocks.max.mem",
                "--format=csv,noheader,nounits",
            ],
            text=True,
        ).strip()
    except Exception as e:
        return repr(e)


def outside():
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    return used() - torch.cuda.memory_reserved()


def note(name, f=None):
    try:
        if f:
            f()
        rows.append(dict(step=name, outside=outside(), used=used(), reserved=torch.cuda.memory_reserved()))
    except Exception as e:
        rows.append(dict(step=name, error=repr(e)[:200]))
    print(rows[-1], flush=True)


before = smi()
r = lambda *s, dt=torch.float32: torch.randn(*s, device="cuda").to(dt)
if part == "libraries":
    torch.cuda.init()
    torch.cuda.current_stream()
    note("init", lambda: torch.cuda.mem_get_info())
    note("zeros", lambda: torch.zeros(1, device="cuda"))
    note("randn", lambda: r(64, 64))
    note("elementwise", lambda: (r(64).relu().exp() + 1).sum())
    note("mm fp32", lambda: r(512, 512) @ r(512, 512))
    note("mm bf16", lambda: r(512, 512, dt=torch.bfloat16) @ r(512, 512, dt=torch.bfloat16))
    note("mm fp16", lambda: r(512, 512, dt=torch.float16) @ r(512, 512, dt=torch.float16))
    note("linear bias", lambda: F.linear(r(64, 512), r(512, 512), r(512)))
    note("bmm", lambda: r(4, 64, 64) @ r(4, 64, 64))
    note("mm big", lambda: r(8192, 8192, dt=torch.bfloat16) @ r(8192, 8192, dt=torch.bfloat16))
    note("conv2d", lambda: F.conv2d(r(8, 64, 56, 56), r(64, 64, 3, 3), padding=1))
    note(
        "conv2d fp16",
        lambda: F.conv2d(r(8, 64, 56, 56, dt=torch.float16), r(64, 64, 3, 3, dt=torch.float16), padding=1),
    )
    note("conv2d 1x1", lambda: F.conv2d(r(8, 64, 56, 56), r(64, 64, 1, 1)))
    note("conv2d 7x7", lambda: F.conv2d(r(8, 3, 224, 224), r(64, 3, 7, 7), stride=2))
    note("batch_norm", lambda: torch.nn.BatchNorm2d(64).cuda()(r(8, 64, 56, 56)))
    note(
        "sdpa flash",
        lambda: (
            torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION).__enter__()
            or F.scaled_dot_product_attention(*[r(2, 8, 128, 64, dt=torch.bfloat16) for _ in range(3)])
        ),
    )
    note("sdpa efficient", lambda: F.scaled_dot_product_attention(*[r(2, 8, 128, 64) for _ in range(3)]))
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.CUDNN_ATTENTION):
        note(
            "sdpa cudnn",
            lambda: F.scaled_dot_product_attention(*[r(2, 8, 128, 64, dt=torch.bfloat16) for _ in range(3)]),
        )
    note("lstm", lambda: torch.nn.LSTM(64, 64).cuda()(r(10, 4, 64)))
    note("fft", lambda: torch.fft.fft(r(8, 1024)))
    note("cholesky", lambda: torch.linalg.cholesky(torch.eye(64, device="cuda")))
    note("svd", lambda: torch.linalg.svd(r(64, 64)))
    note("sparse", lambda: torch.eye(100, device="cuda").to_sparse_csr() @ r(100, 8))
    note("sort", lambda: r(100000).sort())
    note("topk", lambda: r(100000).topk(10))
    note("dropout", lambda: F.dropout(r(1000)))
    note("layer_norm", lambda: F.layer_norm(r(64, 512), (512,)))
    note("softmax", lambda: r(64, 512).softmax(-1))
    note("cross_entropy", lambda: F.cross_entropy(r(64, 1000), torch.zeros(64, device="cuda", dtype=torch.long)))

    def train():
        m = torch.nn.TransformerEncoderLayer(128, 4).cuda()
        o = torch.optim.AdamW(m.parameters())
        m(r(10, 4, 128)).sum().backward()
        o.step()
        o.zero_grad()

    note("train step", train)
    note("train again", train)

    def graph():
        g = torch.cuda.CUDAGraph()
        x = r(64, 64)
        torch.cuda.synchronize()
        with torch.cuda.graph(g):
            y = x * 2 + 1
        g.replay()
        torch.cuda.synchronize()
        globals()["keep"] = (g, x, y)

    note("cuda graph", graph)
    note("streams", lambda: globals().__setitem__("st", [torch.cuda.Stream() for _ in range(8)]))

    def nccl():
        import torch.distributed as dist

        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29555")
        dist.init_process_group("nccl", rank=0, world_size=1)
        x = r(1 << 20)
        dist.all_reduce(x)
        torch.cuda.synchronize()

    note("nccl", nccl)

    def triton():
        f = torch.compile(lambda x: (x * 2 + 1).relu().sum())
        f(r(1000))

    note("compile", triton)
elif part == "capacity":
    torch.zeros(1, device="cuda")
    torch.cuda.empty_cache()
    base = outside()
    rows.append(dict(step="base", outside=base, used=used(), info=torch.cuda.mem_get_info()))
    A = torch.cuda.caching_allocator_alloc
    for size, count in [
        (512, 1),
        (2 << 20, 64),
        (20 << 20, 16),
        (22 << 20, 8),
        (50 << 20, 8),
        (1 << 30, 2),
        ((1 << 30) + (2 << 20), 2),
        (3 << 20, 16),
        (12 << 20, 16),
        (30 << 20, 4),
        (33 << 20, 4),
    ]:
        torch.cuda.empty_cache()
        u0, r0 = used(), torch.cuda.memory_reserved()
        steps = []
        ps = []
        for _ in range(count):
            ps.append(A(size))
            steps.append([used() - u0, torch.cuda.memory_reserved() - r0])
        addresses = [hex(s["address"]) for s in torch.cuda.memory_snapshot()]
        for p in ps:
            torch.cuda.caching_allocator_delete(p)
        torch.cuda.empty_cache()
        rows.append(
            dict(
                step=f"granularity {size}",
                used_reserved=steps,
                after=[used() - u0, torch.cuda.memory_reserved() - r0],
                addresses=addresses,
            )
        )
    # how much fits: from large to small
    for sizes in ([1 << 30, 256 << 20, 20 << 20, 2 << 20], [20 << 20, 2 << 20], [2 << 20]):
        torch.cuda.empty_cache()
        held = []
        t = time.time()
        for s in sizes:
            while time.time() - t < 7:
                try:
                    held.append(A(s if s > 2 << 20 else 1 << 20))
                except torch.OutOfMemoryError as e:
                    message = str(e)
                    break
        rows.append(
            dict(
                step=f"capacity {sizes}",
                reserved=torch.cuda.memory_reserved(),
                info=torch.cuda.mem_get_info(),
                message=message if "message" in dir() else None,
                smi=smi(),
                seconds=round(time.time() - t, 1),
            )
        )
        for p in held:
            torch.cuda.caching_allocator_delete(p)
    # cudaMalloc itself, without the caching allocator
    torch.cuda.empty_cache()
    import random

    random.seed(3)
    live, log = {}, []
    torch.cuda.memory._record_memory_history("all", context=None)
    for i in range(300):
        if live and random.random() < 0.45:
            torch.cuda.caching_allocator_delete(live.pop(random.choice(list(live))))
            torch.cuda.empty_cache()
        else:
            p = A(random.choice([1 << 20, 20 << 20, 21 << 20, 34 << 20, 64 << 20, 130 << 20, 300 << 20, 11 << 20]))
            live[i] = p
    rows.append(
        dict(
            step="addresses",
            events=[
                (e["action"], hex(e["addr"]), e["size"]) for e in torch.cuda.memory._snapshot()["device_traces"][0]
            ],
        )
    )
json.dump(
    dict(
        part=part,
        before=before,
        after=smi(),
        properties=str(torch.cuda.get_device_properties(0)),
        torch=torch.__version__,
        cuda=torch.version.cuda,
        cudnn=torch.backends.cudnn.version(),
        conf=os.environ.get("PYTORCH_ALLOC_CONF", ""),
        module_loading=os.environ.get("CUDA_MODULE_LOADING", ""),
        rows=rows,
    ),
    open(sys.argv[1], "w"),
)
