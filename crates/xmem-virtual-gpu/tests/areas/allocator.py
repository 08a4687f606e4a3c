"""Memory: PyTorch's allocators, host memory, processes."""

import ctypes
import gc
import os
import shutil
import subprocess
import tempfile

from area import MODELED, REFUSED, WORKS, NotThere, area, refuses, run_python

MIB = 1 << 20
GIB = 1 << 30


@area("`torch.cuda.mem_get_info`", MODELED, "total is the device's memory; free is what its context and this process "
      "leave. Contexts grow on a GPU when kernels are loaded, and other processes take memory: neither does here")
def memory_info():
    import torch

    torch.zeros(1, device="cuda")
    free, total = torch.cuda.mem_get_info()
    assert total == torch.cuda.get_device_properties(0).total_memory
    block = torch.empty(GIB, dtype=torch.uint8, device="cuda")
    assert torch.cuda.mem_get_info()[0] == free - GIB
    del block
    torch.cuda.empty_cache()
    assert torch.cuda.mem_get_info()[0] >= free


@area("Out of memory", WORKS, "`torch.OutOfMemoryError` at the size at which the device is full, with PyTorch's text, "
      "after the cache was freed. `xmem profile` [records without this limit](virtual-gpu.md#with-xmem-profile)")
def out_of_memory():
    import torch

    total = torch.cuda.get_device_properties(0).total_memory
    kept = torch.empty(total // 2, dtype=torch.uint8, device="cuda")
    cached = torch.empty(total // 4, dtype=torch.uint8, device="cuda")
    del cached
    again = torch.empty(total // 3, dtype=torch.uint8, device="cuda")  # Needs what is cached.
    with refuses(torch.cuda.OutOfMemoryError, "CUDA out of memory. Tried to allocate ", "GPU 0 has a total capac",
                 " is free.", "allocated by PyTorch", "reserved by PyTorch but unallocated"):
        torch.empty(total // 2, dtype=torch.uint8, device="cuda")
    stats = torch.cuda.memory_stats()
    assert stats["num_ooms"] >= 1 and stats["num_alloc_retries"] >= 1
    del kept, again
    torch.zeros(4, device="cuda").add_(1)


@area("`set_per_process_memory_fraction`", WORKS, "the limit holds")
def fraction():
    import torch

    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(0.1)
    try:
        with refuses(torch.cuda.OutOfMemoryError, "CUDA out of memory"):
            torch.empty(total // 8, dtype=torch.uint8, device="cuda")
        torch.empty(total // 16, dtype=torch.uint8, device="cuda")
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


@area("Memory statistics", WORKS, "PyTorch's own: `memory_stats`, `memory_summary`, `max_memory_allocated`, and "
      "segments and history in snapshots; [`--snapshot`](../concepts/engines.md#the-virtual-gpu) writes one")
def statistics():
    import torch

    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.memory._record_memory_history(max_entries=1000)
    before = torch.cuda.memory_allocated()
    # A segment of its own: what earlier areas left of theirs is smaller, and may not be split.
    x = torch.empty(30 * MIB, dtype=torch.uint8, device="cuda")
    y = torch.empty(100, device="cuda")
    assert torch.cuda.memory_allocated() == before + 30 * MIB + 512
    stats = torch.cuda.memory_stats()
    assert stats["allocation.large_pool.current"] >= 1 and stats["reserved_bytes.small_pool.current"] >= 2 * MIB
    del x, y
    assert torch.cuda.max_memory_allocated() == before + 30 * MIB + 512
    assert "PyTorch CUDA memory summary" in torch.cuda.memory_summary()
    snapshot = torch.cuda.memory._snapshot()
    torch.cuda.memory._record_memory_history(enabled=None)
    assert {event["action"] for event in snapshot["device_traces"][0]} >= {"alloc", "free_requested", "free_completed"}


@area("`torch.cuda.MemPool`", WORKS, "the pool's blocks lie in separate segments", needs="cuda.MemPool")
def mem_pool():
    import torch

    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        x = torch.empty(4 * MIB, dtype=torch.uint8, device="cuda")
    inside = [s for s in torch.cuda.memory_snapshot() if tuple(s["segment_pool_id"]) == tuple(pool.id)]
    assert len(inside) == 1 and inside[0]["address"] <= x.data_ptr() < inside[0]["address"] + inside[0]["total_size"]


EXPANDABLE = "expandable_segments:True"


@area("Expandable segments", WORKS, "`PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`: pages are mapped and unmapped "
      "through the driver, and counted once", environment={"PYTORCH_CUDA_ALLOC_CONF": EXPANDABLE})
def expandable():
    import torch

    x = torch.empty(30 * MIB, dtype=torch.uint8, device="cuda")
    free = torch.cuda.mem_get_info()[0]
    # Pages of 20 MiB: x has two of them, of which y uses the rest.
    y = torch.empty(30 * MIB, dtype=torch.uint8, device="cuda")
    assert torch.cuda.mem_get_info()[0] == free - 20 * MIB
    segments = torch.cuda.memory_snapshot()
    assert len(segments) == 1 and segments[0]["is_expandable"] and segments[0]["total_size"] == 60 * MIB
    del y
    torch.cuda.empty_cache()
    assert torch.cuda.mem_get_info()[0] == free and torch.cuda.memory_reserved() == 40 * MIB
    with refuses(torch.cuda.OutOfMemoryError, "CUDA out of memory"):
        torch.empty(100 * GIB, dtype=torch.uint8, device="cuda")
    del x


@area("`cudaMallocAsync` backend", WORKS, "`backend:cudaMallocAsync`: pools that grow, keep memory, and are trimmed",
      environment={"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"})
def malloc_async():
    import torch

    assert torch.cuda.get_allocator_backend() == "cudaMallocAsync"
    layer = torch.nn.Linear(1024, 1024, device="cuda")
    layer(torch.zeros(64, 1024, device="cuda")).sum().backward()
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    assert before >= 8 * MIB and torch.cuda.memory_reserved() >= before
    del layer
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    assert torch.cuda.memory_allocated() <= before - 8 * MIB
    with refuses(torch.cuda.OutOfMemoryError, "Allocation on device"):
        torch.empty(100 * GIB, dtype=torch.uint8, device="cuda")


PLUGGABLE = """
#include <stddef.h>
#include <stdio.h>
int cudaMalloc(void **, size_t);
int cudaFree(void *);
static long allocations;
long count(void) { return allocations; }
void *take(long size, int device, void *stream) { void *at = NULL; allocations++; cudaMalloc(&at, size); return at; }
void give(void *at, long size, int device, void *stream) { cudaFree(at); }
"""


@area("`CUDAPluggableAllocator`", WORKS, "a library of the user's that calls CUDA's runtime; PyTorch counts nothing "
      "then, on a GPU as here", environment={})
def pluggable():
    import torch

    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise NotThere("no C compiler")
    with tempfile.TemporaryDirectory() as folder:
        source, library = os.path.join(folder, "a.c"), os.path.join(folder, "a.so")
        with open(source, "w") as file:
            file.write(PLUGGABLE)
        subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
        torch.cuda.memory.change_current_allocator(torch.cuda.memory.CUDAPluggableAllocator(library, "take", "give"))
        free = torch.cuda.mem_get_info()[0]
        x = torch.empty(GIB, dtype=torch.uint8, device="cuda")
        assert x.device.type == "cuda" and torch.cuda.mem_get_info()[0] == free - GIB
        assert ctypes.CDLL(library).count() == 1


@area("Pinned memory", MODELED, "ordinary memory of the host that is known as pinned; PyTorch's host cache counts it")
def pinned():
    import torch

    x = torch.arange(1000).pin_memory()
    assert x.is_pinned() and not torch.arange(3).is_pinned()
    assert x.to("cuda", non_blocking=True).tolist() == list(range(1000))
    assert torch.empty(3, pin_memory=True).is_pinned()
    loader = torch.utils.data.DataLoader(torch.zeros(8, 4), batch_size=4, pin_memory=True)
    assert all(batch.is_pinned() for batch in loader)


@area("Host registration", MODELED, "`cudaHostRegister` remembers the memory; registering it twice, or unregistering "
      "what is not registered, is an error")
def registration():
    import torch

    runtime = torch.cuda.cudart()
    x = torch.zeros(4096)
    assert int(runtime.cudaHostRegister(x.data_ptr(), x.nbytes, 0)) == 0 and x.is_pinned()
    assert int(runtime.cudaHostRegister(x.data_ptr(), x.nbytes, 0)) == 712
    assert int(runtime.cudaHostUnregister(x.data_ptr())) == 0 and not x.is_pinned()
    assert int(runtime.cudaHostUnregister(x.data_ptr())) == 713
    # PyTorch would report it after the next kernel, as on a GPU.
    assert ctypes.CDLL(None).cudaGetLastError() == 713


@area("Copies and values", MODELED, "copies up to 64 KiB are carried out, larger ones read as zeros; for what kernels "
      "write, see [values](virtual-gpu.md#values)")
def copies():
    import torch

    assert torch.arange(1000).cuda().clone().cpu().tolist() == list(range(1000))
    assert torch.ones(1 << 20).cuda().cpu().sum() == 0
    x = torch.zeros(2, device="cuda")
    assert torch.from_dlpack(x).data_ptr() == x.data_ptr() == x.__cuda_array_interface__["data"][0]


SENDER = """
import torch, torch.multiprocessing as mp
def child(queue): queue.get()
if __name__ == "__main__":
    mp.set_start_method("spawn")
    host = torch.zeros(4).share_memory_()
    assert host.is_shared()
    try:
        torch.zeros(4, device="cuda").untyped_storage()._share_cuda_()
    except RuntimeError as error:
        print(error)
"""


@area("IPC of CUDA memory", REFUSED, "`cudaErrorNotSupported` where a CUDA tensor is sent to another process; shared "
      "tensors of the host work", slow=True)
def ipc():
    assert "operation not supported" in run_python(SENDER)


FORK = """
import os, sys, torch
torch.zeros(1, device="cuda")
pid = os.fork()
if not pid:
    try:
        torch.zeros(1, device="cuda")
    except RuntimeError as error:
        print(error, flush=True)
    os._exit(0)
os.waitpid(pid, 0)
"""


@area("Processes", WORKS, "a forked process is refused with PyTorch's \"Cannot re-initialize CUDA\"; a spawned one has "
      "the same devices, each with all of its memory", slow=True)
def processes():
    import torch

    assert "Cannot re-initialize CUDA in forked subprocess" in run_python(FORK)
    block = torch.empty(50 * GIB, dtype=torch.uint8, device="cuda")
    other = run_python("import torch; x = torch.empty(60 << 30, dtype=torch.uint8, device='cuda'); print(x.device)")
    assert other.split() == ["cuda:0"]
    del block
