"""The metadata of a trace as a whole: `xmem_recording`, schema `xmem.recording.1`."""

import json
import os
import re
import sys

from .. import engine, session
from ..cpu import autocast, autocast_lists, eager, places, redirected
from ..virtual import compilation
from . import (
    cudnn,
    job,
    memory_fraction,
    model_facts,
    optimizer_facts,
    precision,
    sharding,
    storages,
    strategies,
)
from .plain import plain

ENVIRONMENT = (
    "CUBLAS_WORKSPACE_CONFIG",
    "CUBLASLT_WORKSPACE_SIZE",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MODULE_LOADING",
    "CUDA_VISIBLE_DEVICES",
    "NCCL_BUFFSIZE",
    "NCCL_CUMEM_ENABLE",
    "NCCL_LL128_BUFFSIZE",
    "NCCL_LL_BUFFSIZE",
    "NCCL_MAX_CTAS",
    "NCCL_MAX_NCHANNELS",
    "NCCL_MIN_CTAS",
    "NCCL_MIN_NCHANNELS",
    "NCCL_NVLS_ENABLE",
    "NCCL_P2P_DISABLE",
    "NCCL_RUNTIME_CONNECT",
    "NVIDIA_TF32_OVERRIDE",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "TORCH_CUDNN_V8_API_DISABLED",
    "TORCH_CUDNN_V8_API_LRU_CACHE_LIMIT",
)

# Numbers, names and lists of them, as `max_split_size_mb:128,expandable_segments:True` and `:4096:8`: no address, and
# no UUID of a GPU.
SETTING = re.compile(r"(?!GPU-|MIG-)[\w.,:;|\[\]<>+ -]{0,1000}")


def collect(torch, models, optimizers, iterations, batch, ended, course):
    """Returns the metadata as JSON. Makes no tensor.

    `optimizers` are pairs of an optimizer and the number of its steps, `batch` the shapes of what a model was called
    with, `iterations`, `ended` and `course` what the metadata say about them and about the script.
    """
    known = [optimizer for optimizer, _ in optimizers]
    place = job.facts(torch)
    # Adds a note, which comes below.
    compiled = eager.ran(models)
    on_virtual_gpu = None
    if engine.is_virtual():
        # Recordings on the CPU do without its modules.
        from ..virtual import device_facts

        # Adds notes, which come below.
        on_virtual_gpu = device_facts.collect(torch)
        allocator_history = device_facts.allocator_history()
    facts = {
        "schema": "xmem.recording.1",
        "recorder": session.settings().get("recorder"),
        "torch": str(torch.__version__),
        "python": "{}.{}.{}".format(*sys.version_info[:3]),
        "stacks": session.settings()["stacks"] and not compilation.began(),
        "engine": engine.chosen(),
        "reported_device": session.settings()["device"]["key"],
        "environment": _environment(),
        "backends": _backends(torch),
        "cudnn_benchmark_limit": cudnn.benchmark_limit(torch),
        "cudnn": cudnn.library(torch),
        "compiled_eagerly": compiled,
        "memory_fraction": memory_fraction.value(),
        "ended": ended,
        "iterations": iterations,
        **course,
        "uses_gpu": places.used(),
        "models": [model_facts.describe(model) for model in models],
        "tensors": model_facts.tensors(models, known),
        "optimizers": [optimizer_facts.describe(torch, *optimizer) for optimizer in optimizers],
        "autocast": [
            {"dtype": storages.dtype_name(dtype), "cache": cache} for dtype, cache in precision.autocast()
        ],
        "autocast_lists": "cuda" if on_virtual_gpu or autocast_lists.are_those_of_cuda() else "cpu",
        "float16_as": "bfloat16" if autocast.is_bfloat16() else None,
        "grad_scaler": precision.has_scaler(),
        "batch": _batch(batch),
        "redirected": redirected.facts(),
        "distributed": place,
        "sharding": None if place is None else sharding.facts(models, known),
        "strategies": None if place is None else strategies.facts(models, known),
        "measures": session.measures(),
        "notes": session.notes(),
    }
    if on_virtual_gpu is not None:
        facts["virtual_gpu"] = on_virtual_gpu
        facts["uses_gpu"] = on_virtual_gpu["peaks"].get("allocated", 0) > 0
    facts = plain(facts)
    if on_virtual_gpu is not None and allocator_history is not None:
        settings = plain(allocator_history["settings"])
        # The rest is long lists of numbers.
        facts["allocator_history"] = {**allocator_history, "settings": settings}
    return json.dumps(facts, ensure_ascii=False, separators=(",", ":"))


def _environment():
    """The variables that change what PyTorch and CUDA's libraries do, where their values have the form of a setting."""
    found = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    return {name: value for name, value in found.items() if SETTING.fullmatch(value)}


def _backends(torch):
    flags = {}
    for name, module, attribute in (
        ("cudnn.enabled", torch.backends.cudnn, "enabled"),
        ("cudnn.benchmark", torch.backends.cudnn, "benchmark"),
        ("cudnn.deterministic", torch.backends.cudnn, "deterministic"),
        ("cudnn.allow_tf32", torch.backends.cudnn, "allow_tf32"),
        ("matmul.allow_tf32", torch.backends.cuda.matmul, "allow_tf32"),
        ("flash_sdp", torch.backends.cuda, "flash_sdp_enabled"),
        ("mem_efficient_sdp", torch.backends.cuda, "mem_efficient_sdp_enabled"),
        ("math_sdp", torch.backends.cuda, "math_sdp_enabled"),
        ("cudnn_sdp", torch.backends.cuda, "cudnn_sdp_enabled"),
    ):
        try:
            value = getattr(module, attribute)
            flags[name] = bool(value() if callable(value) else value)
        except Exception:
            continue
    if "cudnn.benchmark" in flags:
        flags["cudnn.benchmark"] = cudnn.benchmarks(torch)
    return flags


def _batch(shapes):
    if not shapes:
        return None
    first = next((shape for shape in shapes if shape), None)
    return {"size": first[0] if first else None, "shapes": shapes}
