"""The libraries above CUDA: linear algebra, transforms, sparse matrices, neural networks, collectives."""

import ctypes
import os
import tempfile

from area import MODELED, REFUSED, NotThere, area, refuses

MIB = 1 << 20


@area("Random numbers", MODELED, "states, seeds and offsets advance as on a GPU; the numbers are not drawn")
def random():
    import torch

    torch.cuda.manual_seed(7)
    assert torch.cuda.initial_seed() == 7
    state = torch.cuda.get_rng_state()
    x = torch.randn(1000, device="cuda")
    assert not torch.equal(torch.cuda.get_rng_state(), state) and x.shape == (1000,)
    torch.cuda.set_rng_state(state)
    assert torch.equal(torch.cuda.get_rng_state(), state)
    generator = torch.Generator(device="cuda").manual_seed(3)
    torch.nn.functional.dropout(torch.rand(10, device="cuda", generator=generator), 0.5)
    torch.randperm(100, device="cuda")


@area("cuBLAS", MODELED, "PyTorch allocates its workspaces as on a GPU; products are not computed")
def blas():
    import torch

    a = torch.zeros(64, 64, device="cuda")
    torch._C._cuda_clearCublasWorkspaces()
    before = torch.cuda.memory_allocated()
    c = a @ a
    # CUDABlas.cpp, getChosenWorkspaceSize: 32 MiB on compute capability 9.0, 8320 KiB before PyTorch 2.1's table.
    # Not with 2.15, which was not looked into.
    if tuple(map(int, torch.__version__.split(".")[:2])) <= (2, 11):
        assert torch.cuda.memory_allocated() - before - 64 * 64 * 4 >= 8 * MIB
    for dtype in [torch.float64, torch.float16, torch.bfloat16, torch.complex64]:
        x = torch.zeros(4, 8, 8, dtype=dtype, device="cuda")
        assert torch.bmm(x, x).shape == x.shape and (x[0] @ x[0, 0]).shape == (8,)
    assert torch.dot(c[0], c[0]).shape == ()
    torch.mm(torch.zeros(32, 32, dtype=torch.bfloat16, device="cuda"), torch.zeros(32, 32, dtype=torch.bfloat16, device="cuda"))


@area("cuBLASLt", MODELED, "one algorithm without its own workspace; PyTorch allocates the one it asks with")
def blas_lt():
    import torch

    layer = torch.nn.Linear(256, 512, device="cuda", dtype=torch.bfloat16)
    out = torch._addmm_activation(layer.bias, torch.zeros(32, 256, device="cuda", dtype=torch.bfloat16), layer.weight.t())
    assert out.shape == layer(torch.zeros(32, 256, device="cuda", dtype=torch.bfloat16)).shape == (32, 512)
    a = torch.zeros(32, 32, dtype=torch.int8, device="cuda")
    assert torch._int_mm(a, a).dtype == torch.int32


@area("fp8", MODELED, "`torch._scaled_mm` on devices that have it (compute capability 8.9 and later)",
      needs="_scaled_mm")
def fp8():
    import torch

    if torch.cuda.get_device_capability() < (8, 9):
        raise NotThere("compute capability below 8.9")
    a = torch.zeros(32, 64, device="cuda").to(torch.float8_e4m3fn)
    b = torch.zeros(128, 64, device="cuda").to(torch.float8_e4m3fn).t()
    one = torch.ones((), device="cuda")
    if tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 5):
        out = torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
    else:
        out = torch._scaled_mm(a, b, out_dtype=torch.bfloat16, **({"scale_a": one, "scale_b": one} if tuple(
            map(int, torch.__version__.split(".")[:2])) >= (2, 4) else {}))
        out = out[0] if isinstance(out, tuple) else out
    assert out.shape == (32, 128) and out.dtype == torch.bfloat16


@area("cuSOLVER, MAGMA", MODELED, "`torch.linalg` factorizes nothing and reports success; workspaces of cuSOLVER as "
      "measured on an H100 with CUDA 13.0, which a recording for another device notes")
def solver():
    import torch

    a = torch.eye(8, device="cuda")
    torch.linalg.cholesky(a)
    # Memory that was written before: what says whether a factorization succeeded must not be what was there.
    used = torch.full((1 << 20,), 7, dtype=torch.int32).cuda()
    del used
    many = torch.eye(8).repeat(16, 1, 1).cuda()
    for _ in range(3):
        for f in [torch.linalg.cholesky_ex, torch.linalg.inv_ex, torch.linalg.lu_factor_ex]:
            assert not f(many).info.cpu().any(), f
        torch.linalg.inv(many), torch.linalg.qr(many), torch.linalg.eigh(many), torch.linalg.svd(many)
    torch.linalg.solve(a, a)
    torch.linalg.inv(a)
    torch.linalg.det(a)
    assert [part.shape for part in torch.linalg.qr(a)] == [(8, 8)] * 2
    assert torch.linalg.svd(a).S.shape == torch.linalg.eigh(a).eigenvalues.shape == (8,)
    assert torch.linalg.eigvals(a).dtype == torch.complex64
    assert torch.linalg.lstsq(a, a).solution.shape == (8, 8)
    for driver in ["gesvd", "gesvdj", "gesvda"]:
        torch.linalg.svd(torch.zeros(3, 16, 4, device="cuda"), full_matrices=False, driver=driver)
    torch.linalg.ldl_factor(a)


@area("cuFFT", MODELED, "transforms without an effect; the workspaces of plans as measured on an H100 with CUDA 13.0")
def fft():
    import torch

    x = torch.zeros(4, 64, device="cuda")
    assert torch.fft.rfft(x).shape == (4, 33) and torch.fft.irfft(torch.fft.rfft(x)).shape == x.shape
    assert torch.fft.fft2(x).dtype == torch.complex64
    assert torch.stft(torch.zeros(1, 4096, device="cuda"), 512, window=torch.ones(512, device="cuda"),
                      return_complex=True).shape[1] == 257


@area("cuSPARSE", MODELED, "products with sparse matrices, whose numbers of elements are those of the matrices given; "
      "workspaces are not known and not counted")
def sparse():
    import torch

    dense = torch.zeros(4, 4, device="cuda")
    rows, columns = torch.tensor([0, 1, 2, 3, 4]).cuda(), torch.tensor([0, 1, 2, 3]).cuda()
    matrix = torch.sparse_csr_tensor(rows, columns, torch.ones(4, device="cuda"), size=(4, 4), check_invariants=False)
    assert (matrix @ dense).shape == (4, 4) and (matrix @ dense[0]).shape == (4,)
    assert torch.sparse.sampled_addmm(matrix, dense, dense)._nnz() == 4
    coo = torch.sparse_coo_tensor(torch.zeros(2, 3, dtype=torch.long).cuda(), torch.ones(3).cuda(), (4, 4))
    assert torch.sparse.mm(coo, dense).shape == (4, 4)


@area("cuSPARSELt", REFUSED, "`CUSPARSE_STATUS_NOT_SUPPORTED` for 2:4 sparsity", needs="sparse.to_sparse_semi_structured")
def sparse_lt():
    import torch

    torch.sparse.SparseSemiStructuredTensor._FORCE_CUTLASS = False
    pattern = torch.tensor([0, 0, 1, 1], dtype=torch.float16).tile((128, 32)).cuda()
    if not torch.backends.cusparselt.is_available() if hasattr(torch.backends, "cusparselt") else True:
        from area import NotThere

        raise NotThere("built without cuSPARSELt")
    with refuses(RuntimeError):
        torch.sparse.to_sparse_semi_structured(pattern)


@area("cuDNN convolutions", MODELED, "plans and workspaces are the real library's for this device (cuDNN 9.8 and "
      "later); on compute capability 9, workspaces for all multiprocessors are worked out, as the library counts 18 "
      "(`convolution-splits`); with an older one, convolutions have no workspaces, and a note says so")
def convolutions():
    import torch

    assert torch.backends.cudnn.is_available() and torch.backends.cudnn.version() >= 8000
    layer = torch.nn.Conv2d(16, 32, 3, device="cuda")
    assert layer(torch.zeros(2, 16, 32, 32, device="cuda")).shape == (2, 32, 30, 30)
    for dimensions, x in [(1, (2, 4, 16)), (2, (2, 4, 16, 16)), (3, (2, 4, 8, 8, 8))]:
        for kind in ["Conv", "ConvTranspose"]:
            made = getattr(torch.nn, f"{kind}{dimensions}d")(4, 8, 3, device="cuda")
            made(torch.zeros(x, device="cuda", requires_grad=True)).sum().backward()
            assert made.weight.grad.shape == made.weight.shape
    torch.backends.cudnn.benchmark = True
    half = layer.half().to(memory_format=torch.channels_last)
    half(torch.zeros(2, 16, 32, 32, device="cuda", dtype=torch.half).to(memory_format=torch.channels_last)).sum().backward()
    torch.backends.cudnn.benchmark = False


@area("cuDNN recurrent networks", MODELED, "weights, outputs and reserve spaces as on a GPU; workspaces as measured on "
      "an H100 with cuDNN 9.19 (`estimated-workspaces`)")
def recurrent():
    import torch

    for kind in [torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN]:
        network = kind(16, 32, num_layers=2, bidirectional=True, dropout=0.1, batch_first=True).cuda()
        out, _ = network(torch.zeros(4, 10, 16, device="cuda", requires_grad=True))
        assert out.shape == (4, 10, 64)
        out.sum().backward()
    packed = torch.nn.utils.rnn.pack_padded_sequence(torch.zeros(2, 5, 16).cuda(), torch.tensor([5, 3]), batch_first=True)
    torch.nn.LSTM(16, 8, batch_first=True).cuda()(packed)


@area("Batch normalization", MODELED, "cuDNN's and PyTorch's own, in training and evaluation; workspaces with channels "
      "last as measured on an H100 with cuDNN 9.19; the reserve of cuDNN's fused one is not counted")
def normalization():
    import torch

    for shape, layer in [((8, 4, 16, 16), torch.nn.BatchNorm2d(4)), ((8, 4), torch.nn.BatchNorm1d(4))]:
        layer.cuda()
        layer(torch.zeros(shape, device="cuda", requires_grad=True)).sum().backward()
        layer.eval()(torch.zeros(shape, device="cuda"))
    last = torch.nn.BatchNorm2d(8).cuda().half()
    x = torch.zeros(4, 8, 16, 16, device="cuda", dtype=torch.half).to(memory_format=torch.channels_last)
    last.float()(x.requires_grad_()).sum().backward()


@area("CTC loss", MODELED, "with lengths on the host as on a GPU; lengths on the device are [values](virtual-gpu.md#values) that may not be "
      "known, and decide about sizes; cuDNN's workspace as measured on an H100 with cuDNN 9.19")
def ctc():
    import torch

    scores = torch.zeros(50, 4, 20, device="cuda", requires_grad=True)
    lengths, times = torch.full((4,), 10), torch.full((4,), 50)
    for targets in [torch.randint(1, 20, (40,)), torch.randint(1, 20, (4, 10))]:
        torch.nn.functional.ctc_loss(scores.log_softmax(2), targets.cuda(), times, lengths).backward()


@area("Scaled dot product attention", MODELED, "flash, memory-efficient, cuDNN and math: chosen by PyTorch as for the "
      "device, with their outputs, saved tensors and workspaces")
def attention():
    import torch
    import torch.nn.functional as F

    # Before Ampere, PyTorch's fused kernels are the memory-efficient ones, and not for bfloat16
    # (ATen/native/transformers/cuda/sdp_utils.cpp).
    is_older = torch.cuda.get_device_capability() < (8, 0)
    dtype = torch.float16 if is_older else torch.bfloat16
    q = torch.zeros(2, 4, 64, 32, device="cuda", dtype=dtype, requires_grad=True)
    kernels = ["EFFICIENT_ATTENTION", "MATH"] if is_older else ["FLASH_ATTENTION", "EFFICIENT_ATTENTION", "MATH"]
    try:
        from torch.nn.attention import SDPBackend, sdpa_kernel
    except ImportError:
        for chosen in range(is_older, 3):
            flags = {name: i == chosen for i, name in enumerate(["enable_flash", "enable_mem_efficient", "enable_math"])}
            with torch.backends.cuda.sdp_kernel(**flags):
                F.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()
        return
    release = tuple(map(int, torch.__version__.split(".")[:2]))
    if release >= (2, 8) and not is_older:
        kernels.append("CUDNN_ATTENTION")
    for kernel in kernels:
        with sdpa_kernel(getattr(SDPBackend, kernel)):
            F.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()


@area("NCCL, one process", MODELED, "communicators exist and collectives complete immediately; the other ranks are taken "
      "to have the data of this one")
def nccl():
    import torch
    import torch.distributed as dist

    with tempfile.TemporaryDirectory() as folder:
        dist.init_process_group("nccl", init_method=f"file://{folder}/meet", rank=0, world_size=1)
        try:
            x = torch.arange(8).cuda()
            dist.all_reduce(x)
            dist.broadcast(x, 0)
            dist.barrier()
            parts = [torch.empty_like(x)]
            dist.all_gather(parts, x)
            assert x.tolist() == parts[0].tolist() == list(range(8))
            out = torch.empty_like(x)
            dist.reduce_scatter(out, [x])
            dist.all_to_all_single(out, x)
            wrapped = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8, device="cuda"), device_ids=[0])
            wrapped(torch.zeros(2, 8, device="cuda")).sum().backward()
            assert torch.cuda.nccl.version() > (2, 0)
        finally:
            dist.destroy_process_group()
    # A negative color, which is a hash of ranks, had no communicator: only -1 has none.
    library, whole = ctypes.CDLL("libnccl.so.2"), ctypes.c_void_p()
    assert library.ncclCommInitAll(ctypes.byref(whole), 1, None) == 0 and whole.value
    for color, exists in [(7, True), (-934961569, True), (-1, False)]:
        part = ctypes.c_void_p()
        assert library.ncclCommSplit(whole, color, 0, ctypes.byref(part), None) == 0
        assert bool(part.value) == exists, color


@area("Sorting, reductions, scans (CUB)", MODELED, "temporary storage is what the compiled code asks for; a size that "
      "depends on the results is [a guess](../guide/values.md)")
def cub():
    import torch

    x = torch.zeros(100_000, device="cuda")
    assert x.sort()[0].shape == x.cumsum(0).shape == x.shape and x.topk(5).values.shape == (5,)
    assert x.sum().shape == x.argmax().shape == ()
    torch.unique(x[:1000])
    torch.nn.EmbeddingBag(100, 8).cuda()(torch.zeros(5000, dtype=torch.long).cuda().view(50, 100)).sum().backward()
    torch.histc(x, 10, 0, 1)
    torch.randperm(100_000, device="cuda")
    # Sorted by Thrust and CUB above 3072 indices (ATen/native/cuda/Embedding.cu).
    indices = torch.zeros(4, 1024, dtype=torch.long, device="cuda")
    torch.nn.Embedding(50_000, 64, device="cuda")(indices).sum().backward()
    torch.zeros(1000, 8, device="cuda").index_put_((indices[0],), torch.ones(1024, 8, device="cuda"), accumulate=True)
    assert x.nonzero().shape[1] == 1 and torch.multinomial(x[:100] + 1, 10).shape == (10,)


@area("Optimizers and `GradScaler`", MODELED, "for-loop, foreach and fused; gradients are never infinite, so that no step is "
      "skipped")
def optimizers():
    import torch

    layer = torch.nn.Linear(64, 64).cuda()
    scaler = (torch.amp.GradScaler("cuda") if hasattr(torch.amp, "GradScaler") else torch.cuda.amp.GradScaler())
    for options in [{"foreach": False}, {"foreach": True}, {"fused": True}, {"capturable": True}]:
        optimizer = torch.optim.AdamW(layer.parameters(), **options)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = layer(torch.zeros(4, 64, device="cuda")).sum()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        assert len(optimizer.state) == 2


@area("GPUDirect Storage", REFUSED, "`CU_FILE_PLATFORM_NOT_SUPPORTED` from cuFile", needs="cuda.gds.GdsFile")
def files():
    import torch

    with tempfile.TemporaryDirectory() as folder:
        with refuses(RuntimeError, "uFile"):
            file = torch.cuda.gds.GdsFile(os.path.join(folder, "x"), os.O_CREAT | os.O_RDWR)
            file.save_storage(torch.zeros(1024, device="cuda").untyped_storage())
