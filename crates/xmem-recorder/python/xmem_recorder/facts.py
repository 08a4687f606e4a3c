"""The metadata of a trace: `xmem_recording`, schema `xmem.recording.1`."""

import json
import os
import re
import sys

from . import (
    autocast,
    autocast_lists,
    cuda,
    cudnn,
    distributed,
    eager,
    engine,
    optimizers,
    placement,
    session,
    sharding,
    strategies,
)
from .virtual import compilation

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


def collect(state, reason, detail):
    """Returns the metadata as JSON. Makes no tensor."""
    torch = state.torch
    models = [root() for root in state.roots if root() is not None]
    known = [optimizer() for optimizer in state.optimizers if optimizer() is not None]
    place = distributed.facts(torch)
    # Adds a note, which comes below.
    compiled = eager.ran(models)
    on_virtual_gpu = None
    if engine.is_virtual():
        from .virtual import device_facts

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
        "told_device": session.settings()["device"]["key"],
        "environment": _environment(),
        "backends": _backends(torch),
        "cudnn_benchmark_limit": cudnn.benchmark_limit(torch),
        "cudnn": cudnn.library(torch),
        "compiled_eagerly": compiled,
        "memory_fraction": cuda.memory_fraction,
        "ended": {"reason": reason, "detail": detail},
        "iterations": {
            "by": state.rounds_by,
            "count": state.rounds,
            "backwards": state.backwards,
            "resident": state.resident,
        },
        "uses_gpu": placement.used(),
        "models": [_model(model) for model in models],
        "tensors": _tensors(models, known),
        "optimizers": [_optimizer(optimizer, state) for optimizer in known],
        "autocast": [
            {"dtype": _dtype(dtype), "cache": cache} for dtype, cache in autocast.requested
        ],
        "autocast_lists": "cuda" if on_virtual_gpu or autocast_lists.installed else "cpu",
        "float16_as": "bfloat16" if autocast.as_bfloat16 else None,
        "grad_scaler": autocast.scalers > 0,
        "batch": _batch(state.batch),
        "redirected": [
            {"what": what, "times": times} for what, times in session.redirected.items()
        ],
        "distributed": place,
        "sharding": None if place is None else sharding.facts(models, known),
        "strategies": None if place is None else strategies.facts(models, known),
        "notes": session.notes,
    }
    if on_virtual_gpu is not None:
        facts["virtual_gpu"] = on_virtual_gpu
        facts["uses_gpu"] = on_virtual_gpu["peaks"].get("allocated", 0) > 0
    facts = _plain(facts)
    if on_virtual_gpu is not None and allocator_history is not None:
        settings = _plain(allocator_history["settings"])
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


def _class(thing):
    kind = type(thing)
    return f"{kind.__module__}.{kind.__qualname__}"


def _model(model):
    modules = {name: type(module).__name__ for name, module in model.named_modules()}
    return {"class": _class(model), "training": model.training, "modules": modules}


def _tensors(models, known):
    """Parameters and buffers of the models, then parameters that only an optimizer has."""
    found, seen = [], set()
    for index, model in enumerate(models):
        for kind, named in (
            ("parameter", model.named_parameters()),
            ("buffer", model.named_buffers()),
        ):
            for name, tensor in named:
                if id(tensor) not in seen:
                    seen.add(id(tensor))
                    found.append(_tensor(tensor, name, index, kind))
    for index, optimizer in enumerate(known):
        for group in optimizer.param_groups:
            for position, tensor in enumerate(group["params"]):
                if id(tensor) not in seen:
                    seen.add(id(tensor))
                    name = f"optimizer {index}, parameter {position}"
                    found.append(_tensor(tensor, name, None, "parameter"))
    return found


def _tensor(tensor, name, model, kind):
    gradient = tensor.grad if tensor.is_leaf else None
    return {
        "name": name,
        "model": model,
        "kind": kind,
        "shape": list(placement.local(tensor).shape),
        "dtype": _dtype(tensor.dtype),
        "requires_grad": tensor.requires_grad,
        "storage": _storage(tensor),
        "gradient": None if gradient is None else _storage(gradient),
    }


def _bytes(tensor):
    return placement.local(tensor).numel() * tensor.element_size()


def _storage(tensor):
    """The memory of a tensor, as in the trace's events; None for a tensor without plain memory."""
    try:
        tensor = placement.local(tensor)
        storage = tensor.untyped_storage()
        offset = tensor.storage_offset() * tensor.element_size()
        return {"address": hex(storage.data_ptr()), "bytes": storage.nbytes(), "offset": offset}
    except Exception:
        return None


def _dtype(dtype):
    return None if dtype is None else str(dtype).replace("torch.", "")


def _optimizer(optimizer, state):
    defaults = {**optimizer.defaults, **optimizers.requested(optimizer)}
    arguments = {key: _plain(value) for key, value in defaults.items()}
    groups = []
    for group in optimizer.param_groups:
        own = {
            key: _plain(value)
            for key, value in group.items()
            if key != "params" and (key not in arguments or _plain(value) != arguments[key])
        }
        if "lr" in own and "lr" in arguments:
            # A schedule changes it with every step.
            del own["lr"]
        groups.append(
            {
                "tensors": len(group["params"]),
                "bytes": sum(_bytes(parameter) for parameter in group["params"]),
                "arguments": own,
            }
        )
    state_by_name, storages = _optimizer_state(optimizer, state.torch)
    return {
        "class": _class(optimizer),
        "arguments": arguments,
        "implementation": _implementation(defaults),
        "groups": groups,
        "steps": state.steps.get(id(optimizer), 0),
        "state": state_by_name,
        "state_storages": storages,
    }


def _implementation(arguments):
    """The requested implementation; "default" leaves the choice to PyTorch
    (torch/optim/optimizer.py, `_default_to_fused_or_foreach`)."""
    if arguments.get("fused"):
        return "fused"
    if arguments.get("foreach"):
        return "foreach"
    if arguments.get("foreach") is False:
        return "for-loop"
    return "default"


def _optimizer_state(optimizer, torch):
    sums, storages = {}, []
    for of_parameter in optimizer.state.values():
        if not isinstance(of_parameter, dict):
            continue
        for name, value in of_parameter.items():
            if not isinstance(value, torch.Tensor):
                continue
            storage = _storage(value)
            if storage is None:
                continue
            entry = sums.setdefault(str(name), {"name": str(name), "tensors": 0, "bytes": 0})
            entry["tensors"] += 1
            entry["bytes"] += _bytes(value)
            storages.append(
                {"name": str(name), "address": storage["address"], "bytes": storage["bytes"]}
            )
    return list(sums.values()), storages


# Kineto refuses backslashes (libkineto, `sanitizeStrForJSON`), so that no character can be escaped.
_ESCAPED = {ord('"'): "'", ord("\\"): "/", **{code: " " for code in [*range(32), 127]}}


def _plain(value):
    """A value as JSON can say it without escapes."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8").translate(_ESCAPED)
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, dict):
        return {_plain(str(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "item") and getattr(value, "numel", lambda: 0)() == 1:
        return _plain(value.item())
    return str(value)


def _batch(shapes):
    if not shapes:
        return None
    first = next((shape for shape in shapes if shape), None)
    return {"size": first[0] if first else None, "shapes": shapes}
