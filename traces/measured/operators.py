"""The allocations of single operators: operators.py OUT.jsonl [PATTERN].

One line for each case: its phases with the allocator's events, twice, as libraries may do more in a first call.
"""

import json, sys, re, time, warnings
import torch
from torch import nn
import torch.nn.functional as F

warnings.filterwarnings("ignore")
D = "cuda"
out = open(sys.argv[1], "w")
pattern = re.compile(sys.argv[2] if len(sys.argv) > 2 else ".")
M = torch.cuda.memory
CASES = []


def case(name, make):
    CASES.append((name, make))


def events():
    trace = M._snapshot()["device_traces"][0]
    return [(e["action"], e["size"]) for e in trace]


def start():
    M._record_memory_history(None)
    try:
        M._record_memory_history("all", context=None, clear_history=True)
    except TypeError:
        M._record_memory_history("all", context=None)


def run(name, make):
    torch.manual_seed(0)
    row = dict(case=name)
    try:
        phases = make()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        free0 = torch.cuda.mem_get_info()[0] + torch.cuda.memory_reserved()
        row["phases"] = []
        for phase, f in phases:
            start()
            torch.cuda.reset_peak_memory_stats()
            base = torch.cuda.memory_allocated()
            r = f()
            torch.cuda.synchronize()
            row["phases"].append(
                dict(
                    phase=phase,
                    events=[(a, s) for a, s in events() if not a.startswith("segment")],
                    peak=torch.cuda.max_memory_allocated() - base,
                )
            )
            del r
        row["libs"] = free0 - torch.cuda.mem_get_info()[0] - torch.cuda.memory_reserved()
    except Exception as e:
        row["error"] = repr(e)[:300]
    M._record_memory_history(None)
    out.write(json.dumps(row) + "\n")
    out.flush()


def fwd_bwd(build):
    """build() gives a function of no arguments that returns a tensor with grad."""

    def make():
        f = build()
        s = {}

        def fwd():
            s["y"] = f()

        def bwd():
            y = s.pop("y")
            g = torch.empty_like(y)
            y.backward(g)

        return [("forward", fwd), ("backward", bwd), ("forward again", fwd), ("backward again", bwd)]

    return make


def once(build):
    def make():
        f = build()
        return [("first", lambda: (f(), None)[1]), ("second", lambda: (f(), None)[1])]

    return make


def t(*s, dtype=torch.float32, grad=True):
    return torch.randn(*s, device=D, dtype=torch.float32).to(dtype).requires_grad_(grad)


H, B_ = torch.float16, torch.bfloat16
# --- batch norm
for shape in [
    (2, 8, 4, 4),
    (8, 64, 56, 56),
    (100, 64, 22, 22),
    (32, 256, 14, 14),
    (32, 2048, 4, 4),
    (200, 16, 43, 43),
    (16, 3, 224, 224),
    (1, 64, 128, 128),
    (64, 512, 1, 1),
]:
    for dt in (torch.float32, H):
        for cl in (False, True):

            def b(shape=shape, dt=dt, cl=cl):
                m = nn.BatchNorm2d(shape[1]).to(D)
                x = t(*shape, dtype=dt, grad=False)
                if cl:
                    x = x.contiguous(memory_format=torch.channels_last)
                x.requires_grad_(True)
                return lambda: m(x)

            case(f"bn2d {shape} {str(dt)[6:]} {'nhwc' if cl else 'nchw'}", fwd_bwd(b))
for shape in [(32, 64, 100), (8, 16, 1000), (16, 32)]:
    case(
        f"bn1d {shape}",
        fwd_bwd(lambda shape=shape: (lambda m, x: lambda: m(x))(nn.BatchNorm1d(shape[1]).to(D), t(*shape))),
    )
for shape in [(2, 16, 8, 32, 32), (4, 32, 16, 28, 28)]:
    case(
        f"bn3d {shape}",
        fwd_bwd(lambda shape=shape: (lambda m, x: lambda: m(x))(nn.BatchNorm3d(shape[1]).to(D), t(*shape))),
    )
case(
    "bn2d eval (8, 64, 56, 56)",
    fwd_bwd(lambda: (lambda m, x: lambda: m(x))(nn.BatchNorm2d(64).to(D).eval(), t(8, 64, 56, 56))),
)
case(
    "instance_norm (8, 64, 56, 56)",
    fwd_bwd(lambda: (lambda m, x: lambda: m(x))(nn.InstanceNorm2d(64, affine=True).to(D), t(8, 64, 56, 56))),
)


# --- recurrent
def rnn(
    kind,
    T,
    N,
    I,
    Hd,
    L=1,
    bi=False,
    drop=0.0,
    dt=torch.float32,
    train=True,
    proj=0,
    packed=False,
    amp=False,
    nonlin="tanh",
):
    kw = dict(num_layers=L, bidirectional=bi, dropout=drop)
    if proj:
        kw["proj_size"] = proj
    if kind == "RNN":
        kw["nonlinearity"] = nonlin
    m = getattr(nn, kind)(I, Hd, **kw).to(D).to(dt)
    m.train(train)
    x = t(T, N, I, dtype=dt)
    if packed:
        lengths = torch.linspace(T, max(1, T // 2), N).long()

        def f():
            p = nn.utils.rnn.pack_padded_sequence(x, lengths)
            return m(p)[0].data

        return f
    if amp:

        def f():
            with torch.autocast("cuda", B_ if amp == "bf16" else H):
                return m(x)[0]

        return f
    if not train:

        def f():
            with torch.no_grad():
                return m(x)[0]

        return f
    return lambda: m(x)[0]


R = []
for kind in ("LSTM", "GRU", "RNN"):
    for T, N, I, Hd in [
        (20, 64, 256, 256),
        (1, 1, 8, 8),
        (2, 1, 8, 8),
        (1, 2, 8, 8),
        (1, 1, 16, 8),
        (1, 1, 8, 16),
        (35, 20, 200, 200),
        (64, 32, 128, 512),
        (100, 16, 40, 100),
        (50, 128, 64, 1024),
        (7, 3, 10, 20),
        (128, 8, 300, 300),
        (10, 256, 512, 512),
    ]:
        R.append((kind, T, N, I, Hd, {}))
    for kw in (
        dict(L=2),
        dict(L=3),
        dict(bi=True),
        dict(L=2, bi=True),
        dict(L=2, drop=0.5),
        dict(L=2, bi=True, drop=0.3),
        dict(dt=H),
        dict(dt=B_),
        dict(dt=H, L=2),
        dict(L=2, train=False),
        dict(train=False),
        dict(packed=True),
        dict(packed=True, L=2, bi=True),
        dict(amp="bf16"),
        dict(amp="fp16", L=2, bi=True),
    ):
        R.append((kind, 20, 64, 256, 256, kw))
    for kw in (dict(L=2), dict(L=2, bi=True), dict(dt=H), dict(bi=True)):
        R.append((kind, 35, 20, 200, 200, kw))
        R.append((kind, 7, 3, 10, 20, kw))
R += [
    ("LSTM", 20, 64, 256, 256, dict(proj=128)),
    ("LSTM", 20, 64, 256, 256, dict(proj=64, L=2, bi=True)),
    ("RNN", 20, 64, 256, 256, dict(nonlin="relu")),
    ("LSTM", 512, 4, 512, 512, {}),
    ("LSTM", 512, 4, 512, 512, dict(L=2, bi=True)),
    ("GRU", 400, 16, 128, 256, dict(L=2)),
]
for kind, T, N, I, Hd, kw in R:
    name = f"rnn {kind} T{T} N{N} I{I} H{Hd} " + " ".join(f"{k}={str(v).replace('torch.', '')}" for k, v in kw.items())
    if kw.get("train", True):
        case(name, fwd_bwd(lambda a=(kind, T, N, I, Hd), kw=kw: rnn(*a, **kw)))
    else:
        case(name, once(lambda a=(kind, T, N, I, Hd), kw=kw: rnn(*a, **kw)))


def flat():
    return lambda: nn.LSTM(256, 256, 2, bidirectional=True).to(D)


case("rnn module to cuda LSTM", once(flat))
# --- CTC
for T, N, C, S in [(50, 16, 20, 30), (100, 8, 29, 40), (200, 32, 80, 20), (20, 4, 10, 5), (255, 2, 100, 100)]:

    def b(T=T, N=N, C=C, S=S):
        x = t(T, N, C)
        tg = torch.randint(1, C, (N * S,), dtype=torch.int32)
        il = torch.full((N,), T, dtype=torch.int32)
        tl = torch.full((N,), S, dtype=torch.int32)
        return lambda: F.ctc_loss(x.log_softmax(2), tg, il, tl)

    case(f"ctc cudnn T{T} N{N} C{C} S{S}", fwd_bwd(b))

    def b(T=T, N=N, C=C, S=S):
        x = t(T, N, C)
        tg = torch.randint(1, C, (N * S,), dtype=torch.int32, device=D)
        il = torch.full((N,), T, dtype=torch.int32, device=D)
        tl = torch.full((N,), S, dtype=torch.int32, device=D)
        return lambda: F.ctc_loss(x.log_softmax(2), tg, il, tl)

    case(f"ctc int32 T{T} N{N} C{C} S{S}", fwd_bwd(b))

    def b(T=T, N=N, C=C, S=S):
        x = t(T, N, C)
        tg = torch.randint(1, C, (N, S), device=D)
        il = torch.full((N,), T, device=D)
        tl = torch.full((N,), S, device=D)
        return lambda: F.ctc_loss(x.log_softmax(2), tg, il, tl)

    case(f"ctc native T{T} N{N} C{C} S{S}", fwd_bwd(b))
# --- convolutions
CONV = [
    ((8, 3, 224, 224), (64, 3, 7, 7), dict(stride=2, padding=3)),
    ((8, 64, 56, 56), (64, 64, 3, 3), dict(padding=1)),
    ((8, 64, 56, 56), (256, 64, 1, 1), {}),
    ((32, 256, 14, 14), (512, 256, 3, 3), dict(padding=1, stride=2)),
    ((100, 512, 3, 3), (512, 512, 3, 3), dict(padding=1)),
    ((16, 96, 56, 56), (96, 1, 3, 3), dict(padding=1, groups=96)),
    ((8, 128, 28, 28), (128, 4, 3, 3), dict(padding=1, groups=32)),
    ((4, 64, 64, 64), (64, 64, 3, 3), dict(padding=2, dilation=2)),
    ((64, 1, 28, 28), (32, 1, 3, 3), {}),
    ((2, 64, 128, 128), (128, 64, 5, 5), dict(padding=2)),
    ((32, 3, 86, 86), (128, 3, 4, 4), dict(stride=4)),
    ((32, 128, 21, 21), (128, 1, 7, 7), dict(padding=3, groups=128)),
]
for bench in (False, True):
    for x, w, kw in CONV:
        for dt in (torch.float32, H, B_):
            for cl in (False, True):
                if bench and dt == B_:
                    continue

                def b(x=x, w=w, kw=kw, dt=dt, cl=cl, bench=bench):
                    torch.backends.cudnn.benchmark = bench
                    X = t(*x, dtype=dt, grad=False)
                    W = t(*w, dtype=dt, grad=False)
                    if cl:
                        X, W = (
                            X.contiguous(memory_format=torch.channels_last),
                            W.contiguous(memory_format=torch.channels_last),
                        )
                    X.requires_grad_(True)
                    W.requires_grad_(True)
                    return lambda: F.conv2d(X, W, **kw)

                case(
                    f"conv2d{' benchmark' if bench else ''} {x} {w} {kw} {str(dt)[6:]} {'nhwc' if cl else 'nchw'}",
                    fwd_bwd(b),
                )


def off(f):
    def g():
        torch.backends.cudnn.benchmark = False
        return f()

    return g


for x, w, kw in [
    ((8, 64, 1000), (128, 64, 5), {}),
    ((16, 80, 3000), (384, 80, 3), dict(padding=1)),
    ((4, 1, 16000), (512, 1, 10), dict(stride=5)),
]:
    case(
        f"conv1d {x} {w} {kw}",
        fwd_bwd(off(lambda x=x, w=w, kw=kw: (lambda X, W: lambda: F.conv1d(X, W, **kw))(t(*x), t(*w)))),
    )
for x, w, kw in [
    ((2, 3, 8, 56, 56), (32, 3, 3, 3, 3), dict(padding=1)),
    ((1, 16, 32, 32, 32), (32, 16, 3, 3, 3), dict(padding=1)),
    ((2, 64, 4, 28, 28), (64, 64, 1, 3, 3), dict(padding=(0, 1, 1))),
]:
    case(
        f"conv3d {x} {w} {kw}",
        fwd_bwd(lambda x=x, w=w, kw=kw: (lambda X, W: lambda: F.conv3d(X, W, **kw))(t(*x), t(*w))),
    )
for x, w, kw in [
    ((8, 128, 14, 14), (128, 64, 2, 2), dict(stride=2)),
    ((8, 100, 1, 1), (100, 512, 4, 4), {}),
    ((4, 64, 32, 32), (64, 32, 4, 4), dict(stride=2, padding=1)),
]:
    case(
        f"conv_transpose2d {x} {w} {kw}",
        fwd_bwd(lambda x=x, w=w, kw=kw: (lambda X, W: lambda: F.conv_transpose2d(X, W, **kw))(t(*x), t(*w))),
    )
# --- attention
for dt in (torch.float32, B_, H):
    for (N, h, L, S, d), kw in [
        ((2, 8, 512, 512, 64), {}),
        ((2, 8, 512, 512, 64), dict(is_causal=True)),
        ((2, 8, 512, 512, 64), dict(dropout_p=0.1)),
        ((1, 12, 1024, 1024, 128), dict(is_causal=True)),
        ((2, 8, 100, 77, 40), {}),
        ((4, 4, 1, 300, 64), {}),
        ((2, 16, 2048, 2048, 80), dict(is_causal=True)),
        ((2, 8, 512, 512, 256), {}),
    ]:
        case(
            f"sdpa {str(dt)[6:]} {(N, h, L, S, d)} {kw}",
            fwd_bwd(
                lambda s=(N, h, L, S, d), kw=kw, dt=dt: (
                    lambda q, k, v: lambda: F.scaled_dot_product_attention(q, k, v, **kw)
                )(
                    t(s[0], s[1], s[2], s[4], dtype=dt),
                    t(s[0], s[1], s[3], s[4], dtype=dt),
                    t(s[0], s[1], s[3], s[4], dtype=dt),
                )
            ),
        )
    case(
        f"sdpa mask {str(dt)[6:]}",
        fwd_bwd(
            lambda dt=dt: (lambda q, k, v, m: lambda: F.scaled_dot_product_attention(q, k, v, attn_mask=m))(
                t(2, 8, 512, 64, dtype=dt),
                t(2, 8, 512, 64, dtype=dt),
                t(2, 8, 512, 64, dtype=dt),
                torch.ones(2, 1, 512, 512, device=D, dtype=torch.bool),
            )
        ),
    )
    case(
        f"sdpa gqa {str(dt)[6:]}",
        fwd_bwd(
            lambda dt=dt: (
                lambda q, k, v: lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
            )(t(2, 16, 512, 64, dtype=dt), t(2, 4, 512, 64, dtype=dt), t(2, 4, 512, 64, dtype=dt))
        ),
    )


# --- linear algebra
def spd(n, b=()):
    a = torch.randn(*b, n, n, device=D)
    return (a @ a.mT + n * torch.eye(n, device=D)).requires_grad_(True)


for n, b in [(64, ()), (512, ()), (2048, ()), (32, (16,)), (128, (8,))]:
    g = f"{b + (n, n)}"
    case(f"linalg cholesky {g}", fwd_bwd(lambda n=n, b=b: (lambda a: lambda: torch.linalg.cholesky(a))(spd(n, b))))
    case(f"linalg qr {g}", fwd_bwd(lambda n=n, b=b: (lambda a: lambda: torch.linalg.qr(a)[0])(t(*b, n, n))))
    case(f"linalg svd {g}", once(lambda n=n, b=b: (lambda a: lambda: torch.linalg.svd(a))(t(*b, n, n, grad=False))))
    case(
        f"linalg svdvals {g}",
        once(lambda n=n, b=b: (lambda a: lambda: torch.linalg.svdvals(a))(t(*b, n, n, grad=False))),
    )
    case(f"linalg eigh {g}", once(lambda n=n, b=b: (lambda a: lambda: torch.linalg.eigh(a))(spd(n, b).detach())))
    if n <= 512:
        case(f"linalg eig {g}", once(lambda n=n, b=b: (lambda a: lambda: torch.linalg.eig(a))(t(*b, n, n, grad=False))))
    case(f"linalg inv {g}", fwd_bwd(lambda n=n, b=b: (lambda a: lambda: torch.linalg.inv(a))(spd(n, b))))
    case(
        f"linalg solve {g}",
        fwd_bwd(lambda n=n, b=b: (lambda a, x: lambda: torch.linalg.solve(a, x))(spd(n, b), t(*b, n, 4))),
    )
    case(f"linalg slogdet {g}", fwd_bwd(lambda n=n, b=b: (lambda a: lambda: torch.linalg.slogdet(a)[1])(spd(n, b))))
    case(
        f"linalg lstsq {g}",
        once(
            lambda n=n, b=b: (lambda a, x: lambda: torch.linalg.lstsq(a, x))(
                t(*b, n, n, grad=False), t(*b, n, 4, grad=False)
            )
        ),
    )
    case(f"linalg pinv {g}", once(lambda n=n, b=b: (lambda a: lambda: torch.linalg.pinv(a))(t(*b, n, n, grad=False))))
    case(
        f"linalg lu {g}", once(lambda n=n, b=b: (lambda a: lambda: torch.linalg.lu_factor(a))(t(*b, n, n, grad=False)))
    )
    case(
        f"linalg matrix_exp {g}",
        once(lambda n=n, b=b: (lambda a: lambda: torch.matrix_exp(a))(t(*b, n, n, grad=False))),
    )
    case(
        f"linalg cholesky_solve {g}",
        once(
            lambda n=n, b=b: (lambda a, x: lambda: torch.cholesky_solve(x, a))(
                torch.linalg.cholesky(spd(n, b).detach()), t(*b, n, 4, grad=False)
            )
        ),
    )
    case(
        f"linalg norm2 {g}",
        once(lambda n=n, b=b: (lambda a: lambda: torch.linalg.matrix_norm(a, 2))(t(*b, n, n, grad=False))),
    )
# --- fft
for s in [
    (8, 1000),
    (8, 1024),
    (8, 1009),
    (64, 16000),
    (4, 3, 224, 224),
    (2, 64, 64, 64),
    (1, 1 << 20),
    (16, 48000),
    (3, 999983),
]:
    case(f"fft fft {s}", once(lambda s=s: (lambda a: lambda: torch.fft.fft(a))(t(*s, grad=False))))
    case(f"fft rfft {s}", fwd_bwd(lambda s=s: (lambda a: lambda: torch.fft.rfft(a))(t(*s))))
    case(f"fft irfft {s}", once(lambda s=s: (lambda a: lambda: torch.fft.irfft(a))(torch.fft.rfft(t(*s, grad=False)))))
    if len(s) > 2:
        case(f"fft fft2 {s}", once(lambda s=s: (lambda a: lambda: torch.fft.fft2(a))(t(*s, grad=False))))
        case(f"fft rfftn {s}", once(lambda s=s: (lambda a: lambda: torch.fft.rfftn(a))(t(*s, grad=False))))
case(
    "fft stft",
    fwd_bwd(
        lambda: (lambda a, w: lambda: torch.view_as_real(torch.stft(a, 1024, 256, window=w, return_complex=True)))(
            t(8, 48000), torch.hann_window(1024, device=D)
        )
    ),
)
case(
    "fft stft 400",
    once(
        lambda: (lambda a, w: lambda: torch.stft(a, 400, 160, window=w, return_complex=True))(
            t(4, 480000, grad=False), torch.hann_window(400, device=D)
        )
    ),
)


# --- sparse
def sparse(n, nnz, layout):
    i = torch.stack([torch.arange(nnz) % n, (torch.arange(nnz) * 7919) % n])
    c = torch.sparse_coo_tensor(i, torch.ones(nnz), (n, n)).coalesce().to(D)
    return c if layout == "coo" else c.to_sparse_csr()


for n, nnz, k in [(1000, 5000, 64), (20000, 200000, 128), (100, 50, 8)]:
    for lay in ("coo", "csr"):
        case(
            f"sparse mm {lay} {n} {nnz} {k}",
            once(
                lambda n=n, nnz=nnz, k=k, lay=lay: (lambda a, x: lambda: a @ x)(
                    sparse(n, nnz, lay), t(n, k, grad=False)
                )
            ),
        )
        case(
            f"sparse spmm grad {lay} {n} {nnz} {k}",
            fwd_bwd(
                lambda n=n, nnz=nnz, k=k, lay=lay: (lambda a, x: lambda: torch.sparse.mm(a, x))(
                    sparse(n, nnz, lay), t(n, k)
                )
            ),
        )
    case(f"sparse spgemm {n} {nnz}", once(lambda n=n, nnz=nnz: (lambda a: lambda: a @ a)(sparse(n, nnz, "csr"))))
    case(
        f"sparse coalesce {n} {nnz}",
        once(
            lambda n=n, nnz=nnz: (
                lambda a: lambda: torch.sparse_coo_tensor(a.indices(), a.values(), a.shape).coalesce()
            )(sparse(n, nnz, "coo"))
        ),
    )
    case(
        f"sparse to_csr {n} {nnz}",
        once(lambda n=n, nnz=nnz: (lambda a: lambda: a.to_sparse_csr())(sparse(n, nnz, "coo"))),
    )
case(
    "sparse sampled_addmm",
    once(
        lambda: (lambda a, x, y: lambda: torch.sparse.sampled_addmm(a, x, y))(
            sparse(1000, 5000, "csr"), t(1000, 64, grad=False), t(64, 1000, grad=False)
        )
    ),
)


def emb():
    m = nn.Embedding(10000, 64, sparse=True).to(D)
    i = torch.randint(0, 10000, (64, 50), device=D)
    return lambda: m(i)


case("sparse embedding", fwd_bwd(emb))
# --- sorting, selecting, counting
for n in (1000, 100000, 5000000):
    x = lambda n=n: t(n, grad=False)
    i = lambda n=n: torch.randint(0, 1000, (n,), device=D)
    for name, f, make in [
        ("sort", torch.sort, x),
        ("sort stable", lambda a: torch.sort(a, stable=True), x),
        ("argsort", torch.argsort, i),
        ("topk", lambda a: torch.topk(a, 100), x),
        ("unique", torch.unique, i),
        ("unique inverse counts", lambda a: torch.unique(a, return_inverse=True, return_counts=True), i),
        ("unique_consecutive", torch.unique_consecutive, i),
        ("nonzero", lambda a: torch.nonzero(a > 0), x),
        ("masked_select", lambda a: a[a > 0], x),
        ("cumsum", lambda a: torch.cumsum(a, 0), x),
        ("cumprod", lambda a: torch.cumprod(a, 0), x),
        ("cummax", lambda a: torch.cummax(a, 0), x),
        ("logcumsumexp", lambda a: torch.logcumsumexp(a, 0), x),
        ("bincount", torch.bincount, i),
        ("histc", lambda a: torch.histc(a, 50), x),
        ("median", torch.median, x),
        ("kthvalue", lambda a: torch.kthvalue(a, 10), x),
        ("mode", lambda a: torch.mode(a), i),
        ("quantile", lambda a: torch.quantile(a, 0.3), x),
        ("multinomial", lambda a: torch.multinomial(a.abs()[:100000], 100), x),
        ("randperm", lambda a: torch.randperm(a.numel(), device=D), x),
        ("searchsorted", lambda a: torch.searchsorted(a.sort()[0], a), x),
        (
            "index_put acc",
            lambda a: torch.zeros(1000, device=D).index_put_(
                (torch.arange(a.numel(), device=D) % 1000,), a, accumulate=True
            ),
            x,
        ),
        (
            "scatter_add",
            lambda a: torch.zeros(1000, device=D).scatter_add_(0, torch.arange(a.numel(), device=D) % 1000, a),
            x,
        ),
        (
            "index_add",
            lambda a: torch.zeros(1000, device=D).index_add_(0, torch.arange(a.numel(), device=D) % 1000, a),
            x,
        ),
        ("isin", lambda a: torch.isin(a, a[:50]), i),
        ("repeat_interleave", lambda a: torch.repeat_interleave(a, a % 3), i),
        ("any", lambda a: (a > 5).any().item(), x),
        ("isnan any", lambda a: torch.isnan(a).any().item(), x),
        ("sum", torch.sum, x),
        ("mean", torch.mean, x),
        ("var", torch.var, x),
        ("norm", torch.norm, x),
        ("max", torch.max, x),
        ("argmax", torch.argmax, x),
        ("aminmax", torch.aminmax, x),
        ("logsumexp", lambda a: torch.logsumexp(a, 0), x),
        ("std_mean", torch.std_mean, x),
    ]:
        if name in ("kthvalue", "mode", "quantile", "multinomial") and n > 1000000:
            continue
        case(f"select {name} {n}", once(lambda f=f, make=make: (lambda a: lambda: f(a))(make())))
for s, d in [
    ((4096, 1024), 0),
    ((4096, 1024), 1),
    ((64, 1000000), 1),
    ((1000000, 8), 0),
    ((32, 512, 28, 28), (0, 2, 3)),
    ((8, 3, 224, 224), (2, 3)),
    ((128, 50257), 1),
    ((50257, 128), 0),
    ((3, 5, 7, 11), 2),
]:
    for dt in (torch.float32, B_):
        for name in ("sum", "var", "amax", "argmax", "softmax", "prod", "all"):
            if name in ("argmax", "softmax", "prod") and not isinstance(d, int):
                continue
            case(
                f"reduce {name} {s} {d} {str(dt)[6:]}",
                once(
                    lambda s=s, d=d, name=name, dt=dt: (lambda a: lambda: getattr(torch, name)(a, d))(
                        t(*s, dtype=dt, grad=False)
                    )
                ),
            )
for s in [(64, 50), (8, 1024), (128, 512)]:
    for V, E in [(1000, 64), (50257, 768)]:

        def b(s=s, V=V, E=E):
            m = nn.Embedding(V, E).to(D)
            i = torch.randint(0, V, s, device=D)
            return lambda: m(i)

        case(f"embedding {s} {V} {E}", fwd_bwd(b))

        def b(s=s, V=V, E=E):
            m = nn.EmbeddingBag(V, E, mode="mean").to(D)
            i = torch.randint(0, V, s, device=D)
            return lambda: m(i)

        case(f"embedding_bag {s} {V} {E}", fwd_bwd(b))
# --- norms and losses
for s in [(8, 512, 768), (65536, 128), (4, 100, 64), (2, 2048, 4096)]:
    for dt in (torch.float32, B_):
        case(
            f"layer_norm {s} {str(dt)[6:]}",
            fwd_bwd(lambda s=s, dt=dt: (lambda m, x: lambda: m(x))(nn.LayerNorm(s[-1]).to(D, dt), t(*s, dtype=dt))),
        )
        case(
            f"rms_norm {s} {str(dt)[6:]}",
            fwd_bwd(lambda s=s, dt=dt: (lambda m, x: lambda: m(x))(nn.RMSNorm(s[-1]).to(D, dt), t(*s, dtype=dt))),
        )
for s in [(8, 64, 56, 56), (2, 320, 64, 64)]:
    case(f"group_norm {s}", fwd_bwd(lambda s=s: (lambda m, x: lambda: m(x))(nn.GroupNorm(32, s[1]).to(D), t(*s))))
case(
    "cross_entropy",
    fwd_bwd(
        lambda: (lambda x, y: lambda: F.cross_entropy(x, y, label_smoothing=0.1))(
            t(512, 50257), torch.randint(0, 50257, (512,), device=D)
        )
    ),
)
case(
    "interpolate bicubic",
    fwd_bwd(lambda: (lambda x: lambda: F.interpolate(x, scale_factor=2, mode="bicubic"))(t(2, 16, 64, 64))),
)
case("grid_sample", fwd_bwd(lambda: (lambda x, g: lambda: F.grid_sample(x, g))(t(2, 16, 64, 64), t(2, 64, 64, 2))))
case("max_pool2d", fwd_bwd(lambda: (lambda x: lambda: F.max_pool2d(x, 3, 2))(t(8, 64, 56, 56))))
case("adaptive_avg_pool2d", fwd_bwd(lambda: (lambda x: lambda: F.adaptive_avg_pool2d(x, 7))(t(8, 64, 56, 56))))
case("unfold", fwd_bwd(lambda: (lambda x: lambda: F.unfold(x, 3))(t(8, 16, 56, 56))))
case("cdist", fwd_bwd(lambda: (lambda x, y: lambda: torch.cdist(x, y))(t(500, 64), t(600, 64))))
case("cdist p1", fwd_bwd(lambda: (lambda x, y: lambda: torch.cdist(x, y, p=1))(t(500, 64), t(600, 64))))
case(
    "mha",
    fwd_bwd(
        lambda: (lambda m, x: lambda: m(x, x, x)[0])(
            nn.MultiheadAttention(256, 8, batch_first=True).to(D), t(8, 100, 256)
        )
    ),
)
case(
    "transformer layer",
    fwd_bwd(
        lambda: (lambda m, x: lambda: m(x))(nn.TransformerEncoderLayer(256, 8, batch_first=True).to(D), t(8, 100, 256))
    ),
)


# --- products
def scaled():
    a = torch.randn(256, 512, device=D).to(torch.float8_e4m3fn)
    b = torch.randn(256, 512, device=D).to(torch.float8_e4m3fn).t()
    s = torch.ones((), device=D)
    return lambda: torch._scaled_mm(a, b, scale_a=s, scale_b=s, out_dtype=B_)


case("mm scaled fp8", once(scaled))
case(
    "mm int8",
    once(
        lambda: (lambda a: lambda: torch._int_mm(a, a.t().contiguous()))(
            torch.ones(256, 256, device=D, dtype=torch.int8)
        )
    ),
)
case("mm fp64", once(lambda: (lambda a: lambda: a @ a)(torch.randn(512, 512, device=D, dtype=torch.float64))))
case("mm complex", once(lambda: (lambda a: lambda: a @ a)(torch.randn(512, 512, device=D, dtype=torch.complex64))))
case(
    "mm grouped",
    once(
        lambda: (lambda a, b, o: lambda: torch._grouped_mm(a, b, offs=o))(
            torch.randn(256, 128, device=D, dtype=B_),
            torch.randn(4, 128, 64, device=D, dtype=B_),
            torch.tensor([64, 128, 192, 256], device=D, dtype=torch.int32),
        )
    ),
)
for dt in (torch.float32, B_, H):
    case(
        f"linear {str(dt)[6:]}",
        fwd_bwd(lambda dt=dt: (lambda m, x: lambda: m(x))(nn.Linear(512, 2048).to(D, dt), t(64, 512, dtype=dt))),
    )
    case(
        f"bmm {str(dt)[6:]}",
        fwd_bwd(lambda dt=dt: (lambda x, y: lambda: x @ y)(t(16, 128, 64, dtype=dt), t(16, 64, 128, dtype=dt))),
    )
t0 = time.time()
torch.zeros(1, device=D)
for name, make in CASES:
    if pattern.search(name):
        run(name, make)
out.write(
    json.dumps(
        dict(
            case="about",
            gpu=torch.cuda.get_device_name(),
            torch=torch.__version__,
            cudnn=torch.backends.cudnn.version(),
            seconds=round(time.time() - t0, 1),
            cases=len(CASES),
        )
    )
    + "\n"
)
print("ops", len(CASES), round(time.time() - t0, 1), "s")
