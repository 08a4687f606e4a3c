"""The place of the process among those of its job, and its process groups."""

import contextlib
import os
import sys

from .. import errors, session
from ..cpu import redirected
from ..virtual import library


def facts(torch):
    """The place of this process among those of its job, and its groups; None if it is alone or cannot say."""
    distributed = sys.modules.get("torch.distributed")
    try:
        if distributed is None or not distributed.is_available() or not distributed.is_initialized():
            return None
        size = distributed.get_world_size()
        requested = redirected.has(redirected.NCCL)
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
