"""Distributed training: gloo replaces NCCL, and one GPU those of data parallelism."""

import contextlib

from .. import session
from ..patching import answer, called_by_torch, replace, replace_everywhere
from ..ranks import place
from . import devices, placement, redirected


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
    redirected.count(redirected.NCCL)
    return "gloo"


# Names of groups for which the script asked for a backend of the host.
_of_host = set()


def _get_backend(original):
    def get_backend(group=None):
        backend = original(group)
        requested = redirected.has(redirected.NCCL) and _name(group) not in _of_host
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
            redirected.count("DistributedDataParallel(device_ids=...)")
        # The buckets of gradients belong to the reducer (torch/csrc/distributed/c10d/reducer.cpp, `initialize_buckets`).
        with placement.all_on_device():
            original(self, module, None, None, *args, **kwargs)

    return init


def _install_data_parallel(torch):
    """On one GPU, `DataParallel` calls its module (torch/nn/parallel/data_parallel.py)."""
    kind = torch.nn.DataParallel

    def init(self, module, device_ids=None, output_device=None, dim=0):
        torch.nn.Module.__init__(self)
        redirected.count("DataParallel")
        if device_ids is not None and len(device_ids) > 1:
            for device in device_ids:
                devices.is_cuda(device, torch)
        self.module = module
        self.device_ids = [0]
        self.output_device = 0
        self.dim = dim

    kind.__init__ = init
    kind.forward = lambda self, *inputs, **kwargs: self.module(*inputs, **kwargs)
