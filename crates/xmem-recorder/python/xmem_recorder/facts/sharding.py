"""How a job divides its parameters among its processes: the groups of FSDP, and the replicas of DDP."""

import math
import sys

from .. import errors, session


def facts(models, optimizers):
    """The groups of parameters that are sharded or copied together; None if there are none, or they cannot be told."""
    groups = {}
    try:
        for model in models:
            for module in model.modules():
                for holder, group in _of_module(module):
                    groups.setdefault(id(holder), group)
    except Exception as error:
        session.note(f"the trace does not say how parameters are sharded: {errors.describe(error)}")
        return None
    if not groups:
        return None
    return {"groups": list(groups.values()), "partitioned_state": _partitions_state(optimizers)}


def _of_module(module):
    """Pairs of what holds a group, and its facts."""
    copied = data_parallel(module)
    if copied is not None:
        return [(copied, {"kind": "replicated", "ranks": 1, "replicas": copied.process_group.size()})]
    handle = module.__dict__.get("_handle") or next(iter(module.__dict__.get("_handles") or ()), None)
    if hasattr(handle, "flat_param"):
        return [(handle, _flat(handle, module))]
    state = _fully_shard_state(module)
    groups = getattr(state, "_fsdp_param_groups", None) or [getattr(state, "_fsdp_param_group", None)]
    return [(group, _fully_shard(group)) for group in groups if getattr(group, "fsdp_params", None)]


def data_parallel(module):
    """The `DistributedDataParallel` that a module is, or that `replicate` made for it, which is not among its modules
    (torch/distributed/_composable/replicate.py, `_ReplicateState.init`); None if there is none."""
    distributed = sys.modules.get("torch.nn.parallel.distributed")
    if distributed is None:
        return None
    known = (module, *(getattr(state, "_ddp", None) for state in _composed(module)))
    return next((one for one in known if isinstance(one, distributed.DistributedDataParallel)), None)


def _composed(module):
    """The states of the functions that were applied to a module (torch/distributed/_composable/contract.py,
    `contract`)."""
    contracts = sys.modules.get("torch.distributed._composable.contract")
    states = module.__dict__.get(getattr(contracts, "STATE_KEY", None))
    return states.values() if isinstance(states, dict) else ()


def _fully_shard_state(module):
    """The state of `fully_shard`, or of another function of its kind (torch/distributed/_composable_state.py,
    `_get_module_state`)."""
    states = sys.modules.get("torch.distributed._composable_state")
    return states._get_module_state(module) if states is not None else None


def _fully_shard(group):
    """A group of `fully_shard` (torch/distributed/fsdp/_fully_shard/_fsdp_param.py, `FSDPParam`)."""
    mesh = group.mesh_info
    parameters = []
    types = set()
    for parameter in group.fsdp_params:
        shape = list(parameter._orig_size)
        dim = getattr(getattr(parameter, "fsdp_placement", None), "dim", 0)
        extent = shape[dim] if shape else 1
        rest = math.prod(size for at, size in enumerate(shape) if at != dim)
        parameters.append([extent, rest])
        types |= {parameter.orig_dtype, parameter.param_dtype, parameter.reduce_dtype}
    return {
        "kind": "fully_shard",
        "ranks": getattr(mesh, "shard_mesh_size", 1),
        "replicas": getattr(mesh, "replicate_mesh_size", 1) or 1,
        "parameters": parameters,
        "element_sizes": _element_sizes(types),
    }


def _flat(handle, module):
    """A flat parameter (torch/distributed/fsdp/_flat_param.py, `FlatParamHandle`)."""
    flat = handle.flat_param
    numels = list(getattr(flat, "_numels_with_padding", ())) or [flat._unpadded_unsharded_size.numel()]
    padding = getattr(flat, "_is_padding_mask", ())
    # The last padding is that to a multiple of the number of ranks.
    if padding and padding[-1]:
        numels.pop()
    types = {getattr(handle, name, None) for name in ("_orig_param_dtype", "_fwd_bwd_param_dtype", "_reduce_dtype")}
    ranks = handle.world_size if handle.uses_sharded_strategy else 1
    between = getattr(module, "_inter_node_pg", None)
    return {
        "kind": "flat",
        "ranks": ranks,
        "replicas": handle.world_size // ranks if between is None else between.size(),
        "parameters": [[sum(numels), 1]],
        "element_sizes": _element_sizes(types | {flat.dtype}),
        "original_parameters": bool(getattr(handle, "_use_orig_params", False)),
    }


def _element_sizes(types):
    return sorted({dtype.itemsize for dtype in types if dtype is not None})


def _partitions_state(optimizers):
    """Whether an optimizer divides its state among the processes by a plan of its own
    (torch/distributed/optim/zero_redundancy_optimizer.py)."""
    return any(kind.__name__ == "ZeroRedundancyOptimizer" for known in optimizers for kind in type(known).__mro__)
