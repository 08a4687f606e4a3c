"""Workspaces that CUDA's libraries ask for: libraries.py OUT.jsonl [PATTERN]

Calls cuSOLVER's `…_bufferSize` and makes plans of cuFFT, over many sizes, and runs operators of PyTorch whose workspaces
cuDNN decides (batch norm with channels last, CTC, recurrent layers). One line for each size; each function runs in a process
of its own. cuSOLVER's older functions count elements, those of its 64-bit interface (cusolverDnX…) bytes on the device and
on the host.
"""

import ctypes, glob, itertools, json, os, re, subprocess, sys, time

C = ctypes
N = [
    int(n)
    for n in """
1 2 3 4 7 8 15 16 17 24 31 32 33 40 48 63 64 65 80 96 100 127 128 129 150 160 192 200 255 256 257 288 300 320 384
400 448 500 511 512 513 576 600 640 700 768 800 896 1000 1023 1024 1025 1152 1280 1500 1536 1792 2000 2047 2048 2049
2560 3000 3072 4000 4096 4097 5000 6144 8192 10000
""".split()
]
RECTANGLES = [(n, n) for n in N] + [
    (m, n)
    for m, n in itertools.product([4, 16, 31, 64, 100, 128, 257, 512, 768, 1000, 2048, 3000, 4096], repeat=2)
    if m != n
]
FEW = [n for n in N if n <= 1024]
TYPES = dict(S=(0, 0), D=(1, 1), C=(4, 0), Z=(5, 1))  # of the matrix, of its real values


def library(name):
    for folder in sys.path:
        for f in glob.glob(f"{folder}/nvidia/*/lib/{name}*"):
            return C.CDLL(f, mode=C.RTLD_GLOBAL)
    return C.CDLL(name, mode=C.RTLD_GLOBAL)


def solver(function, say):
    import torch

    torch.zeros(1, device="cuda")
    lib = library("libcusolver.so.12")
    handle, params, syevj, gesvdj = (C.c_void_p() for _ in range(4))
    lib.cusolverDnCreate(C.byref(handle))
    lib.cusolverDnCreateParams(C.byref(params))
    lib.cusolverDnCreateSyevjInfo(C.byref(syevj))
    lib.cusolverDnCreateGesvdjInfo(C.byref(gesvdj))
    p, i, l = C.c_void_p(0), C.c_int, C.c_longlong
    count, device, host = C.c_int(-1), C.c_size_t(0), C.c_size_t(0)
    out, outs = C.byref(count), (C.byref(device), C.byref(host))

    def old(name, size, *args):
        f = getattr(lib, f"cusolverDn{name}_bufferSize")
        f.restype = C.c_int
        count.value = -1
        status = f(handle, *args)
        say(dict(function=name, size=size, status=status, elements=count.value))

    def new(name, kind, size, *args):
        f = getattr(lib, f"cusolverDn{name}_bufferSize")
        f.restype = C.c_int
        device.value = host.value = 0
        status = f(handle, *args)
        say(dict(function=name, type=kind, size=size, status=status, device=device.value, host=host.value))

    for k, (a, w) in TYPES.items():
        sy, or_ = ("sy", "or") if k in "SD" else ("he", "un")
        a, w = i(a), i(w)
        if function == "factors":
            for n in N:
                old(k + "potrf", [n], i(0), i(n), p, i(n), out)
                old(k + "sytrf", [n], i(n), p, i(n), out)
                new("Xpotrf", k, [n], params, i(0), l(n), a, p, l(n), a, *outs)
                for nrhs in (1, 16, n):
                    new("Xsytrs", k, [n, nrhs], i(0), l(n), l(nrhs), a, p, l(n), p, a, p, l(n), *outs)
            for m, n in RECTANGLES:
                old(k + "getrf", [m, n], i(m), i(n), p, i(m), out)
        if function == "qr":
            for m, n in RECTANGLES:
                r = min(m, n)
                old(k + "geqrf", [m, n], i(m), i(n), p, i(m), out)
                new("Xgeqrf", k, [m, n], params, l(m), l(n), a, p, l(m), a, p, a, *outs)
                old(f"{k}{or_}gqr", [m, r, r], i(m), i(r), i(r), p, i(m), p, out)
                if m > n:
                    old(f"{k}{or_}gqr", [m, m, n], i(m), i(m), i(n), p, i(m), p, out)
                for columns in (1, 4, 64, n):
                    old(f"{k}{or_}mqr", [m, columns, r], i(0), i(1), i(m), i(columns), i(r), p, i(m), p, p, i(m), out)
        if function == "eigen":
            for n, jobz in itertools.product(N, (0, 1)):
                old(f"{k}{sy}evd", [n, jobz], i(jobz), i(0), i(n), p, i(n), p, out)
                old(f"{k}{sy}evj", [n, jobz], i(jobz), i(0), i(n), p, i(n), p, out, syevj)
                new("Xsyevd", k, [n, jobz], params, i(jobz), i(0), l(n), a, p, l(n), w, p, a, *outs)
                for batch in (1, 2, 8, 16, 64, 1000):
                    if n <= 512:
                        old(
                            f"{k}{sy}evjBatched",
                            [n, jobz, batch],
                            i(jobz),
                            i(0),
                            i(n),
                            p,
                            i(n),
                            p,
                            out,
                            syevj,
                            i(batch),
                        )
                    if n <= 1024:
                        arguments = (params, i(jobz), i(0), l(n), a, p, l(n), w, p, a, *outs, l(batch))
                        new("XsyevBatched", k, [n, jobz, batch], *arguments)
        if function == "general":
            complex_ = i(4 if w.value == 0 else 5)
            for n, jobz in itertools.product(N, (0, 1)):
                if n <= 4096:
                    arguments = (params, i(0), i(jobz), l(n), a, p, l(n), complex_, p, a, p, l(n), a, p, l(n), a, *outs)
                    new("Xgeev", k, [n, jobz], *arguments)
        if function == "singular":
            for m, n in RECTANGLES:
                if m >= n:
                    old(k + "gesvd", [m, n], i(m), i(n), out)
                for jobz, econ in ((0, 0), (0, 1), (1, 0), (1, 1)):
                    arguments = (i(jobz), i(econ), i(m), i(n), p, i(m), p, p, i(m), p, i(n), out, gesvdj)
                    old(k + "gesvdj", [m, n, jobz, econ], *arguments)
            for m, n, batch in itertools.product((2, 8, 16, 31, 32), (2, 8, 16, 31, 32), (1, 2, 8, 64, 1000)):
                for jobz in (0, 1):
                    arguments = (i(jobz), i(m), i(n), p, i(m), p, p, i(m), p, i(n), out, gesvdj, i(batch))
                    old(k + "gesvdjBatched", [m, n, jobz, batch], *arguments)
            for (m, n), batch, jobz in itertools.product(RECTANGLES, (1, 2, 8, 64), (0, 1)):
                if m >= n and m * n <= 1 << 20:
                    r = min(m, n)
                    strides = (p, i(m), l(m * n), p, l(r), p, i(m), l(m * r), p, i(n), l(n * r))
                    arguments = (i(jobz), i(r), i(m), i(n), *strides, out, i(batch))
                    old(k + "gesvdaStridedBatched", [m, n, jobz, batch], *arguments)


FFT = [
    int(n)
    for n in """
2 3 4 5 7 8 11 12 13 16 17 20 25 27 31 32 37 49 50 64 81 97 100 101 121 125 127 128 129 131 150 160 169 180 192 200
224 243 250 251 256 257 289 300 320 343 360 384 400 441 480 500 509 512 513 600 625 640 720 768 800 900 960 1000
1009 1021 1024 1080 1200 1280 1331 1440 1500 1600 1920 2000 2039 2048 2187 2197 2401 2500 3000 3125 3600 4000 4093
4096 4913 5000 6000 6561 7200 8000 8191 8192 9000 10000 10007 12000 14641 15625 16000 16384 16807 19683 20000 22050
24000 28561 30000 32000 32768 40000 44100 48000 50000 59049 65536 65537 78125 80000 88200 96000 100000 100003 117649
120000 131072 160000 161051 177147 200000 220500 240000 250000 262144 300000 320000 371293 441000 480000 500000
524287 524288 600000 1000000 1048573 1048576 1500000 2000000 2097152 4194304
""".split()
]
PLANES = [
    7,
    8,
    14,
    16,
    28,
    30,
    32,
    56,
    61,
    64,
    85,
    96,
    100,
    101,
    112,
    128,
    160,
    200,
    224,
    256,
    320,
    360,
    384,
    421,
    500,
    512,
    720,
    1000,
    1024,
    2048,
]


def fft(function, say):
    import torch

    torch.zeros(1, device="cuda")
    lib = library("libcufft.so.12")
    lib.cufftXtMakePlanMany.restype = C.c_int
    started = time.time()

    def plan(shape, kind, double, batch):
        if time.time() - started > float(os.environ.get("FFT_SECONDS", 60)):
            return
        real, complex_ = (1, 5) if double == 1 else (2, 6) if double == 2 else (0, 4)
        source, target = dict(c2c=(complex_, complex_), r2c=(real, complex_), c2r=(complex_, real))[kind]
        half = [*shape[:-1], shape[-1] // 2 + 1]
        rows = {s: (C.c_longlong * len(shape))(*s) for s in (tuple(shape), tuple(half))}
        before, after = (rows[tuple(half if kind == "c2r" else shape)], rows[tuple(half if kind == "r2c" else shape)])
        product = lambda a: __import__("math").prod(list(a))
        handle, size = C.c_int(), C.c_size_t()
        lib.cufftCreate(C.byref(handle))
        lib.cufftSetAutoAllocation(handle, 0)
        free = torch.cuda.mem_get_info()[0]
        ll, i = C.c_longlong, C.c_int
        status = lib.cufftXtMakePlanMany(
            handle, i(len(shape)), rows[tuple(shape)], before, ll(1), ll(product(before)), i(source),
            after, ll(1), ll(product(after)), i(target), ll(batch), C.byref(size), i(complex_),
        )  # fmt: skip
        own = free - torch.cuda.mem_get_info()[0]
        row = dict(
            function="cufft", kind=kind, type=["single", "double", "half"][double], size=list(shape), batch=batch
        )
        say(row | dict(status=status, device=size.value, outside=own))
        lib.cufftDestroy(handle)

    if function == "lines":
        for n, kind, batch in itertools.product(FFT, ("c2c", "r2c", "c2r"), (1, 8, 100)):
            if n * batch <= 1 << 26:
                plan([n], kind, 0, batch)
    if function == "lines-double":
        for n, kind, batch in itertools.product(FFT, ("c2c", "r2c", "c2r"), (1, 16)):
            plan([n], kind, 1, batch)
        for n in (2**k for k in range(1, 20)):
            for kind in ("c2c", "r2c", "c2r"):
                plan([n], kind, 2, 8)
    if function == "planes":
        for m, kind, batch in itertools.product(PLANES, ("c2c", "r2c", "c2r"), (1, 16)):
            for n in (m, 64, 100, 257):
                if m * n * batch <= 1 << 25:
                    plan([m, n], kind, 0, batch)
    if function == "cubes":
        for m, kind, batch in itertools.product(
            (8, 16, 20, 31, 32, 48, 64, 81, 96, 100, 128), ("c2c", "r2c", "c2r"), (1, 4)
        ):
            for n in (m, 32):
                plan([n, m, m], kind, 0, batch)


def workspaces(function, say):
    """The allocations of a call of PyTorch, forward and backward."""
    import torch
    from torch import nn
    import torch.nn.functional as F

    history = torch.cuda.memory._record_memory_history

    def run(row, f):
        torch.cuda.synchronize()
        try:
            kept = []
            for phase in ("forward", "backward"):
                history(None)
                history("all", context=None, clear_history=True)
                if phase == "forward":
                    kept.append(f())
                else:
                    kept[0].sum().backward()
                torch.cuda.synchronize()
                trace = torch.cuda.memory._snapshot()["device_traces"][0]
                row[phase] = [e["size"] for e in trace if e["action"] == "alloc"]
        except Exception as e:
            row["error"] = repr(e)[:200]
        history(None)
        say(row)

    if function == "batch-norm":
        shapes = [
            (n, c, h, h)
            for n, c, h in itertools.product((1, 2, 8, 32, 64, 256), (3, 8, 16, 48, 64, 100, 128, 256, 512, 1000, 2048), (2, 4, 7, 8, 14, 16, 28, 56, 112, 224))
            if 64 <= n * c * h * h <= 1 << 26
        ]  # fmt: skip
        for shape in shapes:
            for kind in (torch.float32, torch.bfloat16, torch.float16)[:: 1 if shape[0] == 8 else 2]:
                m = nn.BatchNorm2d(shape[1]).cuda()
                x = torch.randn(*shape, device="cuda").to(kind).contiguous(memory_format=torch.channels_last)
                x.requires_grad_()
                run(dict(function="batch_norm", type=str(kind)[6:], size=shape), lambda: m(x))
    if function == "ctc":
        for T, n, c, s in itertools.product(
            (20, 50, 100, 200, 255, 400, 1000), (1, 2, 8, 16, 32, 64), (20, 29, 80, 100, 256), (5, 20, 40, 100)
        ):
            if s * 2 + 1 > T or n * T * c > 1 << 23:
                continue
            x = torch.randn(T, n, c, device="cuda", requires_grad=True)
            targets = torch.randint(1, c, (n * s,), dtype=torch.int32)
            lengths = (torch.full((n,), T, dtype=torch.int32), torch.full((n,), s, dtype=torch.int32))
            where = "cuda" if torch.version.cuda and "13" in torch.version.cuda else "cpu"
            a = (targets.to(where), *(l.to(where) for l in lengths))
            run(dict(function="ctc", size=[T, n, c, s]), lambda: F.ctc_loss(x.log_softmax(2), *a))
    if function == "recurrent":
        for kind, T, n, i, h, layers in itertools.product(
            ("LSTM", "GRU", "RNN"), (10, 50, 128), (1, 16, 64), (32, 256), (64, 256, 1024), (1, 2)
        ):
            for both in (False, True):
                m = getattr(nn, kind)(i, h, layers, bidirectional=both).cuda()
                x = torch.randn(T, n, i, device="cuda", requires_grad=True)
                run(dict(function=kind, size=[T, n, i, h, layers], both=both), lambda: m(x)[0])
    if function == "eigh":  # which function PyTorch takes
        for n, batch in itertools.product((2, 8, 16, 31, 32, 33, 64, 128, 256, 500, 512, 513, 1024), (0, 1, 2, 8, 16)):
            shape = (*([batch] if batch else []), n, n)
            for name in (
                "eigh",
                "eigvalsh",
                "svd",
                "svdvals",
                "qr",
                "cholesky",
                "inv",
                "lu_factor",
                "eig",
                "pinv",
                "ldl_factor",
            ):
                if n * n * max(batch, 1) > 1 << 21 or name == "eig" and n > 256:
                    continue
                a = torch.randn(*shape, device="cuda")
                a = a @ a.mT + n * torch.eye(n, device="cuda")
                f = getattr(torch.linalg, name)
                run(
                    dict(function="linalg." + name, size=shape),
                    lambda: (lambda r: (r if torch.is_tensor(r) else r[0]).abs().float().requires_grad_())(f(a)),
                )


PARTS = dict(
    solver=(solver, ["factors", "qr", "eigen", "general", "singular"]),
    fft=(fft, ["lines", "lines-double", "planes", "cubes"]),
    workspaces=(workspaces, ["batch-norm", "ctc", "recurrent", "eigh"]),
)

if __name__ == "__main__":
    if sys.argv[1] == "--part":
        _, _, part, function, path = sys.argv
        with open(path, "w") as out:

            def say(row):
                out.write(json.dumps(row) + "\n")

            PARTS[part][0](function, say)
        sys.exit()
    wanted = re.compile(sys.argv[2] if len(sys.argv) > 2 else ".")
    running = []
    for part, (_, functions) in PARTS.items():
        for function in functions:
            if wanted.search(f"{part}.{function}"):
                path = f"{sys.argv[1]}.{part}.{function}"
                argv = [sys.executable, __file__, "--part", part, function, path]
                running.append((subprocess.Popen(argv), f"{part}.{function}", path))
    with open(sys.argv[1], "w") as out:
        for process, name, path in running:
            code = process.wait()
            rows = open(path).read() if os.path.exists(path) else ""
            out.write(rows)
            print(name, "exit", code, rows.count("\n"), "rows", flush=True)
            if os.path.exists(path):
                os.remove(path)
