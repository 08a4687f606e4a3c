"""Programs for a GPU that are compiled while the job runs, and tools that watch it."""

import ctypes
import os
import shutil
import sys
import tempfile

from area import MODELED, WORKS, NotThere, area, refuses


def needs_compiler():
    if not (shutil.which("cc") or shutil.which("gcc")):
        raise NotThere("no C compiler")


def needs_triton():
    needs_compiler()
    try:
        import triton
    except ImportError:
        raise NotThere("no package triton")
    # It looks for libcuda.so in the list of ldconfig alone; 2.2 and later have TRITON_LIBCUDA_PATH.
    if tuple(map(int, triton.__version__.split(".")[:2])) < (2, 2):
        raise NotThere(f"Triton {triton.__version__} needs an installed driver")


@area("NVRTC", WORKS, "the real library compiles for the device's architecture")
def nvrtc():
    import torch

    torch.cuda.init()
    path = nvrtc_path()
    if path is None:
        raise NotThere("no libnvrtc")
    library = ctypes.CDLL(path)
    program = ctypes.c_void_p()
    source = b'extern "C" __global__ void f(float *x) { x[threadIdx.x] = 1; }'
    assert library.nvrtcCreateProgram(ctypes.byref(program), source, b"f.cu", 0, None, None) == 0
    options = (ctypes.c_char_p * 1)(b"--gpu-architecture=sm_90")
    assert library.nvrtcCompileProgram(program, 1, options) == 0
    size = ctypes.c_size_t()
    assert library.nvrtcGetCUBINSize(program, ctypes.byref(size)) == 0 and size.value > 100


def nvrtc_path():
    """The library of NVIDIA's package, of any release of CUDA."""
    for folder in sys.path:
        for at in [os.path.join(folder, "nvidia", name, "lib") for name in ["cu13", "cuda_nvrtc"]]:
            names = sorted(os.listdir(at)) if os.path.isdir(at) else []
            for name in names:
                if name.startswith("libnvrtc.so"):
                    return os.path.join(at, name)
    return None


@area("Jiterator", MODELED, "compiled by NVRTC, loaded, and launched without an effect", slow=True)
def jiterator():
    import torch

    twice = torch.cuda.jiterator._create_jit_fn("template <typename T> T twice(T x) { return 2 * x; }")
    assert twice(torch.zeros(8, device="cuda")).shape == (8,)
    # Some operators of complex numbers are compiled so, too.
    torch.sinc(torch.zeros(4, dtype=torch.complex64, device="cuda"))
    torch.special.bessel_j0(torch.zeros(4, device="cuda"))


TRITON = """
import torch, triton, triton.language as tl

@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask) + tl.load(y + at, mask), mask)

x = torch.zeros(1000, device="cuda")
out = torch.empty_like(x)
add[(triton.cdiv(1000, 256),)](x, x, out, 1000, BLOCK=256)
torch.cuda.synchronize()
print(out.shape[0], triton.runtime.driver.active.get_current_target() if hasattr(triton.runtime.driver, "active") else "")
"""


@area("Triton kernels", MODELED, "compiled for the device, with a C compiler for the launcher, loaded, and launched without "
      "an effect; of configurations that `triton.autotune` would measure, the first one that fits is taken; nothing is put into "
      "the caches of real runs", slow=True)
def triton():
    needs_triton()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernel.py")
        with open(path, "w") as file:
            file.write(TRITON)
        from area import run_python

        assert run_python(f"import runpy; runpy.run_path({path!r}, run_name='__main__')").startswith("1000")


@area("`torch.compile`", MODELED, "Inductor compiles with Triton, forward and backward, with an empty cache; autotuning "
      "measures nothing, so that its choice among kernels may be another than on a GPU", slow=True)
def compiled():
    import torch

    needs_triton()
    layer = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.GELU()).cuda()
    run = torch.compile(layer)
    run(torch.zeros(4, 16, device="cuda")).sum().backward()
    assert layer[0].weight.grad is not None


@area("C++ extensions", MODELED, "compiled extensions are loaded and their kernels launched without an effect; to compile "
      "CUDA sources needs a CUDA toolkit, as on a GPU")
def extensions():
    import torch
    from torch.utils import cpp_extension

    needs_compiler()
    if cpp_extension.CUDA_HOME is None:
        with refuses(OSError, "CUDA_HOME"):
            cpp_extension.load_inline("x", cpp_sources="", cuda_sources="__global__ void f() {}", with_cuda=True) \
                if shutil.which("ninja") else cpp_extension._join_cuda_home("bin")
    assert torch.ops is not None


@area("`torch.profiler`", MODELED, "operators and memory events of the GPU are recorded; there are no kernels in the trace, "
      "and no times of a GPU")
def profiler():
    import torch
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], profile_memory=True) as recorded:
        x = torch.zeros(1 << 20, device="cuda")
        (x @ x).item()
    names = {event.name for event in recorded.events()}
    assert "aten::zeros" in names and "[memory]" in names
    assert any(getattr(event, "device_memory_usage", getattr(event, "cuda_memory_usage", 0)) > 0 for event in recorded.events())
    assert not any("kernel" in event.name for event in recorded.events())
