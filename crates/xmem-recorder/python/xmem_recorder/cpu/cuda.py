"""`torch.cuda`: facts about the GPU, and calls that control it."""

import contextlib
import time

from .. import session
from ..facts import memory_fraction
from ..patching import answer
from ..ranks import place
from ..recording import allocators
from . import counters, devices, streams


class DeviceProperties:
    """The result of `torch.cuda.get_device_properties`; unknown facts are 0."""

    def __init__(self, device):
        major, minor = device["capability"]
        self.name = device["name"]
        self.major = major
        self.minor = minor
        self.total_memory = device["total_memory"]
        self.multi_processor_count = device.get("multi_processor_count") or 0
        self.max_threads_per_multi_processor = device.get("max_threads_per_multi_processor") or 0
        self.warp_size = device.get("warp_size") or 32
        self.regs_per_multiprocessor = device.get("regs_per_multiprocessor") or 65536
        self.L2_cache_size = device.get("l2_cache_size") or 0
        self.shared_memory_per_block = device.get("shared_memory_per_block") or 49152
        self.shared_memory_per_block_optin = device.get("shared_memory_per_block_optin") or 0
        self.shared_memory_per_multiprocessor = (
            device.get("shared_memory_per_multiprocessor") or 0
        )
        self.is_integrated = 0
        self.is_multi_gpu_board = 0
        self.gcnArchName = self.name

    def __repr__(self):
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory // 2**20}MB, "
            f"multi_processor_count={self.multi_processor_count})"
        )


class Stream:
    """A stream: all work is synchronous, and memory that is made on it is marked as its own."""

    cuda_stream = 0
    device_index = 0
    device_type = 1
    priority = 0

    def __init__(self, device=None, priority=0, **_others):
        self.priority = priority
        self.stream_id = streams.number(priority)

    def __eq__(self, other):
        return getattr(other, "stream_id", None) == self.stream_id

    def __hash__(self):
        return hash(self.stream_id)

    def wait_event(self, event):
        """Returns at once: all work is synchronous."""

    def wait_stream(self, stream):
        """As `wait_event`."""

    def record_event(self, event=None):
        event = event or Event()
        event.record(self)
        return event

    def query(self):
        return True

    def is_capturing(self):
        return False

    def synchronize(self):
        """As `wait_event`."""

    def __enter__(self):
        self.outer = streams.current()
        streams.select(self.stream_id)
        return self

    def __exit__(self, *_exception):
        streams.select(self.outer)


def _stream(number):
    stream = Stream.__new__(Stream)
    stream.stream_id = number
    return stream


def current_stream(device=None):
    """Returns the stream that is selected on this thread."""
    return _stream(streams.current())


def set_stream(stream):
    """Selects a stream on this thread."""
    if stream is not None:
        streams.select(stream.stream_id)


class _StreamContext(contextlib.ContextDecorator):
    """`with torch.cuda.stream(s):`"""

    def __init__(self, stream=None):
        self.stream = stream

    def __enter__(self):
        self.outer = streams.current()
        set_stream(self.stream)
        return self

    def __exit__(self, *_exception):
        streams.select(self.outer)
        return False


class Event:
    """A time stamp, taken when it is recorded."""

    def __init__(self, enable_timing=False, blocking=False, interprocess=False, **_others):
        self.time = None

    def record(self, stream=None):
        self.time = time.perf_counter()

    def wait(self, stream=None):
        """Returns at once."""

    def query(self):
        return True

    def synchronize(self):
        """Returns at once."""

    def elapsed_time(self, end_event):
        """Milliseconds between two events, measured on the CPU."""
        return (end_event.time - self.time) * 1000.0


class CUDAGraph:
    """A captured graph runs at once, on the CPU; a replay does nothing."""

    def __new__(cls, *_args, **_kwargs):
        session.note("CUDA graphs: a captured graph runs once, and replay() does nothing")
        return super().__new__(cls)

    def capture_begin(self, *_args, **_kwargs):
        """Does nothing."""

    def capture_end(self):
        """Does nothing."""

    def replay(self):
        """Does nothing."""

    def reset(self):
        """Does nothing."""

    def pool(self):
        return (0, 0)


class graph(contextlib.AbstractContextManager):
    """`with torch.cuda.graph(g):` runs its body."""

    default_capture_stream = None

    def __init__(self, cuda_graph, *_args, **_kwargs):
        pass

    def __exit__(self, *_exception):
        return None


class MemPool:
    """A private pool: the CPU has none."""

    id = (0, 0)
    allocator = None

    def __init__(self, *_args, **_kwargs):
        pass

    def use_count(self):
        return 1

    def snapshot(self):
        return []


class _Selected:
    """`with torch.cuda.device(0):`"""

    def __init__(self, *_args, **_kwargs):
        self.idx = 0
        self.prev_idx = 0

    def __enter__(self):
        return self

    def __exit__(self, *_exception):
        return False

    def __call__(self, function):
        return function


def nothing(*_args, **_kwargs):
    """Does nothing."""


def install(torch):
    """Replaces the functions of `torch.cuda`, with facts from the device profile."""
    device = session.settings()["device"]
    cuda = torch.cuda
    fixed = {
        "is_available": True,
        "device_count": session.settings().get("gpus", 1),
        "_device_count_nvml": session.settings().get("gpus", 1),
        "_raw_device_count_nvml": session.settings().get("gpus", 1),
        "current_device": place.device(),
        "get_device_name": device["name"],
        "get_device_capability": tuple(device["capability"]),
        "get_device_properties": lambda *_args, **_kwargs: DeviceProperties(device),
        "mem_get_info": (device["free_memory"], device["total_memory"]),
        "get_arch_list": [f"sm_{device['capability'][0]}{device['capability'][1]}"],
        "get_gencode_flags": "",
        "is_bf16_supported": device["capability"][0] >= 8,
        "is_tf32_supported": device["capability"][0] >= 8,
        "is_current_stream_capturing": False,
        "can_device_access_peer": False,
        "utilization": 0,
        "temperature": 0,
        "power_draw": 0,
        "clock_rate": 0,
        "memory_usage": 0,
        "get_allocator_backend": "native",
        "get_sync_debug_mode": 0,
        "get_per_process_memory_fraction": lambda device=None: memory_fraction.value() or 1.0,
        "list_gpu_processes": "",
        "memory_summary": "",
        "memory_snapshot": lambda *_args, **_kwargs: [],
        "_snapshot": lambda *_args, **_kwargs: {"segments": [], "device_traces": []},
        "use_mem_pool": lambda *_args, **_kwargs: contextlib.nullcontext(),
        "memory_stats": counters.statistics,
        "host_memory_stats": counters.statistics,
        "memory_stats_as_nested_dict": lambda device=None: {},
        "initial_seed": torch.initial_seed,
        "current_blas_handle": 0,
        "current_stream": current_stream,
        "default_stream": lambda device=None: _stream(0),
        "set_stream": lambda stream: set_stream(stream),
        "graph_pool_handle": (0, 0),
        "_is_in_bad_fork": False,
        "_is_compiled": True,
        "_get_device_index": 0,
    }
    memory = (
        "memory_allocated",
        "max_memory_allocated",
        "memory_reserved",
        "max_memory_reserved",
        "memory_cached",
        "max_memory_cached",
        "device_memory_used",
    )
    silent = (
        "init",
        "_lazy_init",
        "_lazy_call",
        "set_device",
        "synchronize",
        "empty_cache",
        "ipc_collect",
        "manual_seed",
        "manual_seed_all",
        "seed",
        "seed_all",
        "set_rng_state",
        "set_rng_state_all",
        "set_sync_debug_mode",
        "reset_peak_memory_stats",
        "reset_accumulated_memory_stats",
        "reset_max_memory_allocated",
        "reset_max_memory_cached",
        "caching_allocator_delete",
        "_record_memory_history",
        "_dump_snapshot",
        "check_error",
        "_sleep",
    )
    for name, value in fixed.items():
        _everywhere(cuda, name, value)
    for name in memory:
        _everywhere(cuda, name, counters.memory)
    for name in silent:
        _everywhere(cuda, name, nothing)
    _everywhere(cuda, "is_initialized", True)
    _everywhere(cuda, "set_per_process_memory_fraction", memory_fraction.set_value)
    _everywhere(cuda, "make_graphed_callables", _make_graphed_callables)
    allocators.leave_out(torch)
    allocators.make_up(torch)
    _install_classes(cuda)
    _install_random(torch)
    for name in ("range_push", "range_pop", "range_start", "range_end", "mark"):
        answer([cuda.nvtx], name, nothing)
    _install_backends(torch, device)


def _make_graphed_callables(callables, *_args, **_kwargs):
    session.note("make_graphed_callables: recorded without CUDA graphs")
    return callables


def _everywhere(cuda, name, value):
    """Replaces a function in `torch.cuda` and in the module that defines it."""
    answer((cuda, cuda.memory, cuda.random, cuda.graphs, cuda.streams), name, value)


def _join_the_bases():
    """Counts the classes among those of PyTorch, which 2.3 to 2.5 check (`torch/_dynamo/device_interface.py`)."""
    try:
        from torch import _streambase
    except ImportError:
        return
    for name, kind in {"_StreamBase": Stream, "_EventBase": Event}.items():
        base = getattr(_streambase, name, None)
        if hasattr(base, "register"):
            base.register(kind)


def _install_classes(cuda):
    _join_the_bases()
    for name, kind in {
        "Stream": Stream,
        "ExternalStream": Stream,
        "Event": Event,
        "CUDAGraph": CUDAGraph,
        "graph": graph,
        "device": _Selected,
        "device_of": _Selected,
        "_DeviceGuard": _Selected,
        "stream": _StreamContext,
        "StreamContext": _StreamContext,
    }.items():
        for module in (cuda, cuda.streams, cuda.graphs):
            if hasattr(module, name):
                setattr(module, name, kind)
    for module in (cuda, cuda.memory):
        if hasattr(module, "MemPool"):
            module.MemPool = MemPool


def _install_random(torch):
    """Makes generators for CUDA on the CPU."""

    def state(device="cuda"):
        # The size of CUDA's: a seed and an offset (aten/src/ATen/cuda/CUDAGeneratorImpl.cpp).
        return torch.zeros(16, dtype=torch.uint8)

    _everywhere(torch.cuda, "get_rng_state", state)
    _everywhere(torch.cuda, "get_rng_state_all", lambda: [state()])
    original = torch.Generator

    class Kind(type(original)):
        """Counts generators of torch's own class as instances."""

        def __instancecheck__(cls, value):
            return isinstance(value, original)

    class Generator(original, metaclass=Kind):
        def __new__(cls, device="cpu"):
            return original.__new__(cls, "cpu" if devices.is_cuda(device, torch) else device)

    Generator.__module__, Generator.__qualname__ = "torch", "Generator"
    torch.Generator = Generator
    torch.cuda.default_generators = (torch.default_generator,)


def _install_backends(torch, device):
    answer([torch.backends.cuda], "is_built", True)
    answer([torch.backends.cudnn], "is_available", True)
    version = torch.backends.cudnn.__dict__.get("version")
    if version is not None:
        try:
            known = version()
        except RuntimeError:
            known = None
        torch.backends.cudnn.version = lambda: known or 91900
    if torch.version.cuda is None:
        # A build for the CPU. Scripts parse this value, or test that it is not None.
        torch.version.cuda = "13.0"
