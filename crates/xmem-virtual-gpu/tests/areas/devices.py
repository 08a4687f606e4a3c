"""Devices, streams, events, graphs."""

import ctypes
import time

from area import MODELED, REFUSED, WORKS, NotThere, area, refuses, run_python

MIB = 1 << 20
# The device whose facts the areas know.
H100 = "NVIDIA H100 80GB HBM3"


def two_devices():
    import torch

    if torch.cuda.device_count() < 2:
        raise NotThere("one device")


@area("Device properties", WORKS, "name, memory, compute capability, multiprocessors and limits are the device's; "
      "L2 cache, clocks and bus are [assumed](virtual-gpu.md#assumed-facts)")
def properties():
    import torch

    p = torch.cuda.get_device_properties(0)
    assert p.name == torch.cuda.get_device_name() and (p.major, p.minor) == torch.cuda.get_device_capability(), p
    if p.name != H100:
        return
    assert (p.major, p.minor) == (9, 0) and p.multi_processor_count == 132 and 79 << 30 < p.total_memory < 80 << 30, p
    for name, value in {
        "max_threads_per_multi_processor": 2048, "regs_per_multiprocessor": 65536, "warp_size": 32,
        "L2_cache_size": 50 * MIB, "shared_memory_per_block": 49152, "shared_memory_per_block_optin": 232448,
        "shared_memory_per_multiprocessor": 233472, "is_integrated": 0, "is_multi_gpu_board": 0,
    }.items():
        # Older releases have fewer.
        assert getattr(p, name, value) == value, (name, getattr(p, name))
    assert "sm_90" in torch.cuda.get_arch_list() and torch.cuda.is_bf16_supported()


@area("Device count and selection", WORKS, "there is one device; with several ([the example](virtual-gpu.md#several-devices)), the "
      "program's `CUDA_VISIBLE_DEVICES` selects among them. An invalid ordinal is refused", slow=True)
def selection():
    import torch

    count = torch.cuda.device_count()
    assert torch.cuda.is_available() and count >= 1
    with refuses(RuntimeError, "invalid device ordinal"):
        torch.zeros(1, device=f"cuda:{count}")
    with torch.cuda.device(count - 1):
        assert torch.zeros(1, device="cuda").device.index == torch.cuda.current_device() == count - 1
    assert torch.cuda.current_device() == 0
    ask = "import torch; print(torch.cuda.is_available(), torch.cuda.device_count())"
    assert run_python(ask, CUDA_VISIBLE_DEVICES="").split() == ["False", "0"]
    assert run_python(ask, CUDA_VISIBLE_DEVICES="0").split() == ["True", "1"]


@area("Peer access", WORKS, "devices of a machine reach each other; copies between them carry small data")
def peers():
    import torch

    two_devices()
    assert torch.cuda.can_device_access_peer(0, 1)
    there = torch.arange(8).to("cuda:0").to("cuda:1")
    assert there.device.index == 1 and there.tolist() == list(range(8))
    parts = torch.nn.parallel.scatter(torch.zeros(8, 4), [0, 1])
    assert [part.shape[0] for part in parts] == [4, 4]


@area("Streams", MODELED, "work is complete when it is submitted, so that a query is always true. Memory follows the "
      "streams as on a GPU: a block that another stream uses is not given out (`record_stream`)")
def streams():
    import torch

    side = torch.cuda.Stream()
    assert side != torch.cuda.default_stream() and side.query()
    with torch.cuda.stream(side):
        assert torch.cuda.current_stream() == side
        a = torch.empty(4 * MIB, device="cuda")
    address = a.data_ptr()
    side.wait_stream(torch.cuda.current_stream())
    del a
    b = torch.empty(4 * MIB, device="cuda")
    assert b.data_ptr() != address, "a block of another stream"
    b.record_stream(side)
    side.synchronize()
    torch.cuda.synchronize()
    external = torch.cuda.ExternalStream(side.cuda_stream)
    with torch.cuda.stream(external):
        torch.zeros(1, device="cuda")


@area("Stream priorities", WORKS, "0 to −5, of which PyTorch uses 0 to −3")
def priorities():
    import torch

    # CUDAStream.cpp, max_compile_time_stream_priorities: four.
    assert [torch.cuda.Stream(priority=priority).priority for priority in [0, -1, -3, -5]] == [0, -1, -3, -3]
    assert torch.cuda.Stream.priority_range() == (0, -3)
    least, greatest = ctypes.c_int(), ctypes.c_int()
    ctypes.CDLL(None).cudaDeviceGetStreamPriorityRange(ctypes.byref(least), ctypes.byref(greatest))
    assert (least.value, greatest.value) == (0, -5)


@area("Events", MODELED, "`elapsed_time` is the time that the host needed, at least 1 ms: not a time of a GPU")
def events():
    import torch

    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    time.sleep(0.02)
    end.record()
    assert end.query()
    end.synchronize()
    assert start.elapsed_time(end) >= 20
    start.record()
    end.record()
    assert start.elapsed_time(end) >= 1


@area("CUDA graphs", MODELED, "captured memory lies in the graph's pool; a replay has no effect")
def graphs():
    import torch

    graph = torch.cuda.CUDAGraph()
    x = torch.zeros(64, 1024, device="cuda")
    layer = torch.nn.Linear(1024, 1024, device="cuda")
    layer(x)
    before = torch.cuda.memory_reserved()
    with torch.cuda.graph(graph):
        y = layer(x)
    assert torch.cuda.memory_reserved() > before and y.shape == x.shape
    graph.replay()
    del graph, y
    made = torch.cuda.make_graphed_callables(torch.nn.Linear(8, 8, device="cuda"), (torch.zeros(4, 8, device="cuda"),))
    made(torch.zeros(4, 8, device="cuda")).sum().backward()


@area("Calls that a capture forbids", WORKS, "`cudaErrorStreamCaptureUnsupported`, and the capture is invalid",
      environment={})
def forbidden():
    import torch

    torch.zeros(1, device="cuda")
    with refuses(RuntimeError, "operation failed due to a previous error during capture"):
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            with refuses(RuntimeError, "operation not permitted when stream is capturing"):
                torch.cuda.synchronize()


@area("CUDA graphs on several devices", MODELED, "captures of two devices at once do not disturb each other")
def graphs_of_devices():
    import torch

    two_devices()
    captured = []
    for device in range(2):
        with torch.cuda.device(device):
            graph, x = torch.cuda.CUDAGraph(), torch.zeros(1024, device="cuda")
            with torch.cuda.graph(graph):
                y = x * 2
            captured.append((graph, y))
    for device, (graph, y) in enumerate(captured):
        assert y.device.index == device
        graph.replay()
    side = torch.cuda.Stream(device=1)
    with torch.cuda.device(0), torch.cuda.graph(torch.cuda.CUDAGraph(), capture_error_mode="thread_local"):
        inner = torch.zeros(1024, device="cuda:0")
        with torch.cuda.device(1), torch.cuda.stream(side):
            assert not torch.cuda.is_current_stream_capturing()
    assert inner.device.index == 0


@area("NVML", MODELED, "names, memory and clocks are the device's; utilization, temperature and power are 0; no "
      "processes are listed")
def nvml():
    import torch

    library = ctypes.CDLL("libnvidia-ml.so.1")
    assert library.nvmlInit_v2() == 0
    handle, count = ctypes.c_void_p(), ctypes.c_uint()
    assert library.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0 and count.value == torch.cuda.device_count()
    assert library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle)) == 0
    name = ctypes.create_string_buffer(96)
    assert library.nvmlDeviceGetName(handle, name, 96) == 0
    assert name.value.decode() == torch.cuda.get_device_name()
    memory = (ctypes.c_ulonglong * 3)()
    assert library.nvmlDeviceGetMemoryInfo(handle, memory) == 0
    assert memory[0] == torch.cuda.get_device_properties(0).total_memory == memory[1] + memory[2]
    value = ctypes.c_uint(99)
    assert library.nvmlDeviceGetTemperature(handle, 0, ctypes.byref(value)) == 0 and value.value == 0
    assert library.nvmlDeviceGetPowerUsage(handle, ctypes.byref(value)) == 0 and value.value == 0
    assert library.nvmlDeviceGetClockInfo(handle, 1, ctypes.byref(value)) == 0
    assert value.value == 1980 if name.value.decode() == H100 else value.value > 100
    assert library.nvmlDeviceGetUtilizationRates(handle, memory) == 0 and memory[0] == 0
    # Without the package nvidia-ml-py, torch says so.
    try:
        import pynvml  # noqa: F401
    except ImportError:
        with refuses(ModuleNotFoundError, "does not seem to be installed"):
            torch.cuda.utilization()
    else:
        assert torch.cuda.utilization() == torch.cuda.memory_usage() == 0


@area("NVTX", WORKS, "ranges and marks are accepted and go nowhere, as without a profiler")
def nvtx():
    import torch

    torch.cuda.nvtx.range_push("outer")
    torch.cuda.nvtx.mark("here")
    # NVTX_NO_PUSH_POP_TRACKING: no tool listens.
    assert torch.cuda.nvtx.range_pop() in (0, -2)
    with torch.autograd.profiler.emit_nvtx():
        (torch.zeros(8, device="cuda", requires_grad=True) * 2).sum().backward()


@area("`torch.cuda.cudart()`", WORKS, "the calls that PyTorch passes on; an error has CUDA's name and number")
def cudart():
    import torch

    runtime = torch.cuda.cudart()
    free, total = runtime.cudaMemGetInfo(0)
    assert total == torch.cuda.get_device_properties(0).total_memory and 0 < free < total
    assert runtime.cudaGetErrorString(runtime.cudaError.success) == "no error"
    torch.cuda.check_error(runtime.cudaProfilerStart())
    torch.cuda.check_error(runtime.cudaProfilerStop())
    with refuses(torch.cuda.CudaError, "out of memory (2)"):
        torch.cuda.check_error(2)


@area("Sync debug mode", WORKS, "`torch.cuda.set_sync_debug_mode(\"error\")` names calls that synchronize")
def sync_debug():
    import torch

    x = torch.zeros(4, device="cuda")
    torch.cuda.set_sync_debug_mode("error")
    try:
        with refuses(RuntimeError, "synchronizing CUDA operation"):
            x.nonzero()
    finally:
        torch.cuda.set_sync_debug_mode("default")


@area("Device-side assertions", MODELED, "kernels do not run: an index out of range is not noticed")
def assertions():
    import torch

    torch.nn.functional.embedding(torch.tensor([99], device="cuda"), torch.zeros(3, 4, device="cuda"))
    torch.cuda.synchronize()


@area("Driver interface", WORKS, "devices, contexts, memory and modules for programs that call `libcuda` themselves; a "
      "function that is not implemented returns `CUDA_ERROR_NOT_SUPPORTED`, and the recording names it")
def driver():
    library = ctypes.CDLL("libcuda.so.1")
    count, device, context, address = ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    assert library.cuInit(0) == 0 and library.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value >= 1
    assert library.cuDeviceGet(ctypes.byref(device), 0) == 0
    assert library.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0
    assert library.cuCtxSetCurrent(context) == 0
    assert library.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(1000)) == 0 and address.value
    assert library.cuMemFree_v2(address) == 0
    assert library.cuMemFree_v2(ctypes.c_void_p(1)) == 1
    text = ctypes.c_char_p()
    assert library.cuGetErrorName(2, ctypes.byref(text)) == 0 and text.value == b"CUDA_ERROR_OUT_OF_MEMORY"
    assert library.cuGraphicsMapResources(0, None, None) == 801


@area("Graphics, textures, arrays, external memory", REFUSED, "`cudaErrorNotSupported`")
def graphics():
    library = ctypes.CDLL(None)
    for function in ["cudaMallocArray", "cudaImportExternalMemory", "cudaGraphicsMapResources"]:
        assert getattr(library, function)(None, None, None) == 801, function
