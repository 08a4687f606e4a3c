"""Distributed training: on the CPU gloo replaces NCCL, on a virtual GPU collectives are complete at once."""

import contextlib
import os
import sys

from . import devices, errors, placement, session
from .patching import answer, called_by_torch, replace, replace_everywhere
from .ranks import place
from .virtual import library

def facts(torch):
    """The place of this process among those of its job, and its groups; None if it is alone or cannot say."""
    distributed = sys.modules.get("torch.distributed")
    try:
        if distributed is None or not distributed.is_available() or not distributed.is_initialized():
            return None
        size = distributed.get_world_size()
        requested = "process group of NCCL" in session.redirected
        return {
            "rank": distributed.get_rank(),
            "world_size": size,
            "nodes": _nodes(size),
            "backend": "nccl" if requested else str(distributed.get_backend()),
            "nccl_version": _nccl_version(torch),
            "groups": _groups(distributed.distributed_c10d._world, requested),
            "communicators": library.communicators(),
        }
    except Exception as error:
        session.note(f"the trace does not name the process among those of its job: {errors.describe(error)}")
        return None


def _nodes(size):
    """The number of machines: torchrun (torch/distributed/elastic) tells how many processes each has."""
    local = os.environ.get("LOCAL_WORLD_SIZE", "")
    return -(-size // int(local)) if local.isdecimal() and int(local) else None


def _nccl_version(torch):
    with contextlib.suppress(Exception):
        return ".".join(str(part) for part in torch.cuda.nccl.version())
    return None


def _groups(world, requested):
    """The sizes of the groups of this process whose backend is NCCL, or would be on a GPU."""
    found = []
    for group, (backend, _) in list(world.pg_map.items()):
        if requested or "nccl" in str(world.pg_backend_config.get(group, backend)):
            found.append(group.size())
    return found


def install(torch):
    """Wraps the constructors of process groups and of data parallelism."""
    _install_data_parallel(torch)
    distributed = torch.distributed
    if not distributed.is_available():
        return
    # `init_device_mesh` makes the first process group itself.
    with contextlib.suppress(ImportError):
        import torch.distributed.device_mesh  # noqa: F401
    replace_everywhere(distributed, "init_process_group", _init_process_group)
    replace(distributed, "new_group", _new_group)
    replace(distributed, "get_backend", _get_backend)
    answer([distributed], "is_nccl_available", True)
    replace(torch.nn.parallel.DistributedDataParallel, "__init__", _ddp)


def _host_backend(backend):
    """gloo instead of NCCL."""
    if backend is None or not isinstance(backend, str) or "nccl" not in backend.lower():
        return backend
    session.count("process group of NCCL")
    return "gloo"


# Names of groups for which the script asked for a backend of the host.
_of_host = set()


def _get_backend(original):
    def get_backend(group=None):
        backend = original(group)
        requested = "process group of NCCL" in session.redirected and _name(group) not in _of_host
        return "nccl" if requested and backend == "gloo" and not called_by_torch() else backend

    return get_backend


def _name(group):
    return getattr(group, "group_name", None)


def _init_process_group(original):
    def init(backend=None, *args, **kwargs):
        kwargs.pop("device_id", None)
        # Without a name, a group has NCCL for tensors of CUDA (torch/distributed/distributed_c10d.py).
        result = original(_host_backend(backend or "nccl"), *args, **kwargs)
        import torch.distributed

        size = torch.distributed.get_world_size()
        if size > 1 and place.wanted() is None:
            session.note(f"{size} processes train together; only rank 0 is recorded")
        return result

    return init


def _new_group(original):
    def new_group(*args, **kwargs):
        asked = kwargs.get("backend")
        if "backend" in kwargs:
            kwargs["backend"] = _host_backend(asked)
        kwargs.pop("device_id", None)
        group = original(*args, **kwargs)
        if asked is not None and kwargs["backend"] is asked:
            _of_host.add(_name(group))
        return group

    return new_group


def _ddp(original):
    def init(self, module, device_ids=None, output_device=None, *args, **kwargs):
        if device_ids is not None:
            session.count("DistributedDataParallel(device_ids=...)")
        # The buckets of gradients belong to the reducer (torch/csrc/distributed/c10d/reducer.cpp, `initialize_buckets`).
        with placement.all_on_device():
            original(self, module, None, None, *args, **kwargs)

    return init


def _install_data_parallel(torch):
    """On one GPU, `DataParallel` calls its module (torch/nn/parallel/data_parallel.py)."""
    kind = torch.nn.DataParallel

    def init(self, module, device_ids=None, output_device=None, dim=0):
        torch.nn.Module.__init__(self)
        session.count("DataParallel")
        if device_ids is not None and len(device_ids) > 1:
            for device in device_ids:
                devices.is_cuda(device, torch)
        self.module = module
        self.device_ids = [0]
        self.output_device = 0
        self.dim = dim

    kind.__init__ = init
    kind.forward = lambda self, *inputs, **kwargs: self.module(*inputs, **kwargs)
