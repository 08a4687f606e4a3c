"""The strategies by which a job is distributed, each with the options that change its memory and that are not PyTorch's
default: DDP, FSDP, `fully_shard`, tensor parallelism, pipelines, and optimizers and engines that divide their state."""

import gc
import sys

from .. import errors, session
from . import sharding

# What FSDP1 has by default (torch/distributed/fsdp/fully_sharded_data_parallel.py, `FullyShardedDataParallel.__init__`).
_FSDP1_DEFAULTS = {
    "sharding_strategy": "FULL_SHARD",
    "limit_all_gathers": True,
    "backward_prefetch": "BACKWARD_PRE",
    "forward_prefetch": False,
    "use_orig_params": False,
}


# An option that the script left to PyTorch, which chooses for each module.
_AUTOMATIC = object()


class _Found:
    """Strategies by name, in the order of their discovery; each option with the values that it has, and how often."""

    def __init__(self):
        self.by_name = {}

    def add(self, name, **options):
        """Notes a use of a strategy. Options that are None or False have their default."""
        noted = self.by_name.setdefault(name, {})
        for option, value in options.items():
            if value is not _AUTOMATIC:
                default = value is None or value is False
                text = None if default else str(value).replace("torch.", "")
                counts = noted.setdefault(option, {})
                counts[text] = counts.get(text, 0) + 1

    def facts(self):
        """The strategies with the options that are not the default everywhere."""
        return [
            {
                "name": name,
                "options": {
                    option: _text(counts) for option, counts in options.items() if set(counts) != {None}
                },
            }
            for name, options in self.by_name.items()
        ]


def _text(counts):
    """The value of an option; where modules differ, the number of those that have it."""
    if len(counts) == 1:
        return next(iter(counts))
    total = sum(counts.values())
    return ", ".join(f"{text} in {count} of {total}" for text, count in counts.items() if text is not None)


def facts(models, optimizers):
    """The strategies; None if there are none, or they cannot be told."""
    found = _Found()
    try:
        for model in models:
            for module in model.modules():
                _of_module(module, found)
            _tensor_parallel(model, found)
        for optimizer in optimizers:
            _of_optimizer(optimizer, found)
        _pipelines(found)
    except Exception as error:
        session.note(f"the trace does not name the strategy of the job: {errors.describe(error)}")
        return None
    return found.facts() or None


def _names(thing):
    return {kind.__name__ for kind in type(thing).__mro__}


def _of_module(module, found):
    copied = sharding.data_parallel(module)
    if copied is not None:
        _data_parallel(copied, found)
    elif "FullyShardedDataParallel" in _names(module) and getattr(module, "_handle", None) is not None:
        _fsdp1(module, found)
    elif "DeepSpeedEngine" in _names(module):
        _deepspeed(module, found)
    states = sys.modules.get("torch.distributed._composable_state")
    state = states._get_module_state(module) if states is not None else None
    groups = getattr(state, "_fsdp_param_groups", None) or [getattr(state, "_fsdp_param_group", None)]
    for group in groups:
        if getattr(group, "fsdp_params", None):
            _fsdp2(state, group, found)


def _data_parallel(module, found):
    """DDP (torch/nn/parallel/distributed.py, `DistributedDataParallel.__init__`)."""
    buckets = None if getattr(module, "bucket_bytes_cap_default", True) else module.bucket_bytes_cap >> 20
    hooks = [hook for hook, _ in getattr(module, "_comm_hooks", ()) if not hook.__module__.startswith("xmem_recorder.")]
    found.add(
        "DDP",
        gradient_as_bucket_view=module.gradient_as_bucket_view,
        static_graph=module.static_graph,
        find_unused_parameters=module.find_unused_parameters,
        bucket_cap_mb=buckets,
        mixed_precision=getattr(getattr(module, "mixed_precision", None), "param_dtype", None),
        comm_hook=hooks[0].__name__ if hooks else None,
    )


def _fsdp1(module, found):
    """FSDP1 (torch/distributed/fsdp/_init_utils.py, `_init_core_state`, `_init_prefetching_state`)."""
    precision = module.mixed_precision
    values = {
        "sharding_strategy": module.sharding_strategy.name,
        "limit_all_gathers": module.limit_all_gathers,
        "backward_prefetch": getattr(module.backward_prefetch, "name", "None"),
        "forward_prefetch": module.forward_prefetch,
        "use_orig_params": module._use_orig_params,
    }
    found.add(
        "FSDP1",
        **{option: str(value) for option, value in values.items() if value != _FSDP1_DEFAULTS[option]},
        param_dtype=precision.param_dtype,
        reduce_dtype=precision.reduce_dtype,
        buffer_dtype=precision.buffer_dtype,
        cpu_offload=module.cpu_offload.offload_params,
    )


def _fsdp2(state, group, found):
    """A group of `fully_shard` (torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py, `FSDPParamGroup`)."""
    precision = state._mp_policy
    offload = group.offload_policy
    after = getattr(group.post_forward_mesh_info, "shard_mesh_size", False)
    # The group of the root is not resharded, unless the script says so (_fsdp_state.py, `_lazy_init`).
    of_root = getattr(state, "_is_root", False) and getattr(state, "_auto_reshard_after_forward", True)
    if of_root:
        after = _AUTOMATIC
    elif after == getattr(group.mesh_info, "shard_mesh_size", 1):
        after = None
    elif after is False:
        after = "False"
    replicas = getattr(group.mesh_info, "replicate_mesh_size", 1) or 1
    found.add(
        "FSDP2",
        reshard_after_forward=after,
        param_dtype=precision.param_dtype,
        reduce_dtype=precision.reduce_dtype,
        output_dtype=precision.output_dtype,
        offload_policy=type(offload).__name__ if hasattr(offload, "pin_memory") else None,
        replicas=replicas if replicas > 1 else None,
    )


def _tensor_parallel(model, found):
    """Parameters that are cut by `parallelize_module`: DTensors that are not those of `fully_shard`, or that were
    before it (torch/distributed/fsdp/_fully_shard/_fsdp_param.py, `FSDPParam._init_sharded_param`)."""
    tensors = sys.modules.get("torch.distributed.tensor")
    if tensors is None or not hasattr(tensors, "DTensor"):
        return
    of_fsdp = {}
    states = sys.modules.get("torch.distributed._composable_state")
    for module in model.modules():
        state = states._get_module_state(module) if states is not None else None
        groups = getattr(state, "_fsdp_param_groups", None) or [getattr(state, "_fsdp_param_group", None)]
        for group in groups:
            for parameter in getattr(group, "fsdp_params", None) or ():
                # Before and since 2.15.
                specs = (getattr(parameter, name, None) for name in ("_tp_spec", "_unsharded_dtensor_spec"))
                of_fsdp[id(parameter.sharded_param)] = next(filter(None, specs), None)
    for parameter in model.parameters():
        if not isinstance(parameter, tensors.DTensor):
            continue
        spec = of_fsdp.get(id(parameter), parameter._spec)
        for size, placement in zip(spec.mesh.shape, spec.placements) if spec is not None else ():
            if placement.is_shard() and size > 1:
                found.add("tensor parallel", ranks=size)


def _of_optimizer(optimizer, found):
    """`ZeroRedundancyOptimizer` (torch/distributed/optim/zero_redundancy_optimizer.py)."""
    if "ZeroRedundancyOptimizer" in _names(optimizer):
        found.add(
            "ZeroRedundancyOptimizer",
            parameters_as_bucket_view=getattr(optimizer, "parameters_as_bucket_view", None),
            overlap_with_ddp=getattr(optimizer, "_overlap_with_ddp", None),
        )


def _deepspeed(engine, found):
    """DeepSpeed's engine (deepspeed/runtime/engine.py, `DeepSpeedEngine`)."""
    config = engine._config.zero_config

    def device(offload):
        name = getattr(offload, "device", None)
        name = getattr(name, "value", name)
        return None if name == "none" else name

    types = [name for name in ("bfloat16", "fp16") if getattr(engine, f"{name}_enabled")()]
    found.add(
        "DeepSpeed ZeRO",
        stage=str(engine.zero_optimization_stage()),
        precision=types[0] if types else None,
        offload_optimizer=device(config.offload_optimizer),
        offload_param=device(config.offload_param),
    )


def _pipelines(found):
    """Schedules of pipelines (torch/distributed/pipelining/schedules.py, `_PipelineSchedule`), to which no model leads."""
    schedules = sys.modules.get("torch.distributed.pipelining.schedules")
    base = getattr(schedules, "_PipelineSchedule", None)
    if base is None:
        return
    for thing in gc.get_objects():
        if base in type(thing).__mro__:
            found.add(
                "pipeline",
                schedule=type(thing).__name__.removeprefix("Schedule"),
                stages=getattr(thing, "_num_stages", None),
                microbatches=thing._n_microbatches,
            )
