"""Collectives of a process that runs without the others of its job.

The others are taken to have the same data: a sum is the own value times the number of ranks, and what is gathered
is the own value from each. Process groups of the host get a backend that does nothing (torch/testing/_internal/
distributed/fake_pg.py), and tensors of the host the results. Those of the device go to NCCL, and to the virtual GPU
behind it.
"""

import functools
import inspect
import threading

from .. import errors, session
from ..patching import bound, replace, replace_in_torch
from ..virtual import known, library, written
from . import messages, reducer

# Backends for tensors of the host, which would connect with the other processes.
OF_HOST = ("gloo", "ucc", "mpi", "xccl")
DEVICES = ("cpu", "cuda")

_torch = None
_inside = threading.local()


def install(torch):
    """Replaces collectives of `torch.distributed`."""
    global _torch
    _torch = torch
    c10d = torch.distributed.distributed_c10d
    c10d._new_process_group_helper = _new_group(c10d._new_process_group_helper, c10d)
    if hasattr(c10d, "split_group"):
        replace_in_torch("split_group", c10d.split_group, _split_group(c10d.split_group))
    for name, result in {
        "all_gather_into_tensor": _all_gather_into_tensor,
        "all_reduce": _all_reduce,
        "all_to_all": _all_to_all,
        "all_to_all_single": _all_to_all_single,
        "broadcast": _broadcast,
        "gather": _gather,
        "gather_object": _gather_object,
        "all_gather_object": _all_gather_object,
        "monitored_barrier": _monitored_barrier,
        "reduce": _all_reduce,
        "reduce_scatter": _reduce_scatter,
        "reduce_scatter_tensor": _reduce_scatter_tensor,
        "scatter": _scatter,
        "scatter_object_list": _scatter_object_list,
        **messages.install(torch),
    }.items():
        original = getattr(c10d, name, None)
        if original is None:
            continue
        wrapper = functools.wraps(original)(result(original))
        setattr(c10d, name, wrapper)
        if hasattr(torch.distributed, name):
            setattr(torch.distributed, name, wrapper)
    for name, write in FUNCTIONAL.items():
        for namespace in ("_c10d_functional", "_c10d_functional_autograd"):
            written.follow(f"{namespace}::{name}", _without_gradients(write))
    # Lightning calls that of the group (lightning/fabric/utilities/distributed.py, `_InfiniteBarrier`).
    replace(torch.distributed.ProcessGroup, "monitored_barrier", _monitored_barrier)


def _new_group(original, c10d):
    """Gives groups a backend that does nothing in place of one of the host."""
    names = inspect.signature(original)

    @functools.wraps(original)
    def new_group(*args, **kwargs):
        given = names.bind(*args, **kwargs)
        backend = given.arguments["backend"]
        library.size_of_split(given.arguments["group_size"])
        instead = _backend_instead(c10d, backend)
        if instead is None:
            return original(*args, **kwargs)
        from torch.testing._internal.distributed import fake_pg  # noqa: F401

        given.arguments["backend"] = c10d.Backend(instead) if ":" not in instead else instead
        group, store = original(*given.args, **given.kwargs)
        if group in c10d._world.pg_map:
            # The script gets the backend that it asked for (`get_backend`).
            c10d._world.pg_map[group] = (backend, store)
            if hasattr(c10d._world, "pg_backend_config"):
                c10d._world.pg_backend_config[group] = str(c10d.BackendConfig(c10d.Backend(backend)))
        return group, store

    return new_group


def _split_group(original):
    """Tells NCCL's stand-in the size of the part of a group."""

    @functools.wraps(original)
    def split_group(parent_pg=None, split_ranks=None, *args, **kwargs):
        own = _torch.distributed.get_rank(parent_pg)
        library.size_of_split(next((len(part) for part in split_ranks or () if own in part), 0))
        return original(parent_pg, split_ranks, *args, **kwargs)

    return split_group


def _backend_instead(c10d, backend):
    """The backend without those of the host; None if it has none."""
    by_device = c10d.BackendConfig(c10d.Backend(backend)).get_device_backend_map()
    if not any(name in OF_HOST for name in by_device.values()):
        return None
    if all(name in OF_HOST for name in by_device.values()):
        return "fake"
    devices = [device for device in by_device if device in DEVICES]
    return ",".join(
        f"{device}:{'fake' if by_device[device] in OF_HOST else by_device[device]}" for device in devices
    )


# ---------------------------------------------------------------------------------------------
# Tensors
# ---------------------------------------------------------------------------------------------


def _size(arguments):
    return _torch.distributed.get_world_size(arguments.get("group"))


def _group_rank(arguments):
    return _torch.distributed.get_rank(arguments.get("group"))


def _is_of_host(tensor):
    return isinstance(tensor, _torch.Tensor) and tensor.device.type == "cpu"


def _with_result(write):
    """A wrapper that calls the collective and then writes the result: `write` gets the arguments by name."""

    def wrapper(original):
        names = inspect.signature(original)

        def collective(*args, **kwargs):
            if getattr(_inside, "value", False):
                return original(*args, **kwargs)
            # A mode may have it called again by its name (`handle_torch_function`).
            _inside.value = True
            try:
                work = original(*args, **kwargs)
            finally:
                _inside.value = False
            given = bound(names, args, kwargs)
            if _group_rank(given.arguments) < 0:
                return work
            try:
                with _torch._C.DisableTorchFunction(), _torch.no_grad():
                    known.unrecorded(write, given.arguments)
            except Exception as error:
                session.note(f"{original.__name__}: the result is not that of equal ranks: {errors.describe(error)}")
            if type(work).__name__ == "FakeWork" and "tensor" in given.arguments:
                return reducer.Work(work, given.arguments["tensor"])
            return work

        return collective

    return wrapper


def _is_sum(arguments):
    return arguments["op"] == _torch.distributed.ReduceOp.SUM


def _multiply(tensor, count):
    """Sums equal values."""
    if tensor.dtype is not _torch.bool:
        tensor.mul_(count)


@_with_result
def _all_reduce(arguments):
    tensor = arguments["tensor"]
    if not _is_sum(arguments):
        return
    if _is_of_host(tensor):
        _multiply(tensor, _size(arguments))
    elif tensor.is_cuda and known.is_small(tensor) and known.is_known(tensor):
        _multiply(known.alias(tensor), _size(arguments))


@_with_result
def _reduce_scatter(arguments):
    if _is_of_host(arguments["output"]):
        arguments["output"].copy_(arguments["input_list"][_group_rank(arguments)])
        if _is_sum(arguments):
            _multiply(arguments["output"], _size(arguments))


@_with_result
def _reduce_scatter_tensor(arguments):
    output = arguments["output"]
    if _is_of_host(output):
        parts = arguments["input"].reshape(_size(arguments), -1)
        output.copy_(parts[_group_rank(arguments)].view_as(output))
        if _is_sum(arguments):
            _multiply(output, _size(arguments))


@_with_result
def _all_to_all(arguments):
    own = arguments["input_tensor_list"][_group_rank(arguments)]
    for output in arguments["output_tensor_list"]:
        if _is_of_host(output) and output.shape == own.shape:
            output.copy_(own)


@_with_result
def _all_to_all_single(arguments):
    if not arguments["input_split_sizes"] and not arguments["output_split_sizes"]:
        _exchange(arguments["output"], arguments["input"], _size(arguments), _group_rank(arguments))


@_with_result
def _all_gather_into_tensor(arguments):
    output, own = arguments["output_tensor"], arguments["input_tensor"]
    if not _is_of_host(output):
        _repeat(output, own, own, _size(arguments))


def _exchange(output, own, size, rank):
    """Each rank sends this one the part that this one would send itself; returns whether that was written."""
    return bool(own.shape) and own.shape[0] % size == 0 and _repeat(output, own, own.chunk(size)[rank], size)


def _repeat(output, own, part, size):
    """Writes a part of the own tensor for each rank, if its values are known; returns whether they are."""
    if _is_of_host(output):
        output.view(size, -1).copy_(part.reshape(1, -1))
        return True
    if not output.is_cuda or output.nbytes > known.looked_at[output.dtype] or known.state(own) < known.COUNTED:
        return False
    known.alias(output).view(size, -1).copy_(known.alias(part).reshape(1, -1))
    known.keep(output, known.state(own))
    return True


def _functional_all_to_all(output, own, output_sizes, input_sizes, group):
    are_equal = len({*output_sizes, *input_sizes}) == 1
    return are_equal and _exchange(output, own, len(input_sizes), _named_rank(group))


def _functional_all_gather(output, own, size, _group):
    return _repeat(output, own, own, size)


def _functional_wait(_output, _own):
    """The result is the tensor itself."""
    return True


def _without_gradients(write):
    def call(*args):
        with _torch._C.DisableTorchFunction(), _torch.no_grad():
            return write(*args)

    return call


def _named_rank(name):
    c10d = _torch.distributed.distributed_c10d
    return _torch.distributed.get_rank(c10d._resolve_process_group(name))


# What writes the results of operators of `torch.distributed._functional_collectives`, by their names: functions of the
# result and the arguments.
FUNCTIONAL = {
    "all_gather_into_tensor": _functional_all_gather,
    "all_to_all_single": _functional_all_to_all,
    "wait_tensor": _functional_wait,
}


@_with_result
def _broadcast(arguments):
    """What another rank sends is taken for what this one has, but for few integers."""
    tensor = arguments["tensor"]
    if tensor.is_cuda and not tensor.is_floating_point() and known.is_small(tensor):
        messages.broadcast_integers(tensor, messages.global_rank(arguments, "src"), arguments["group"])


@_with_result
def _gather(arguments):
    for output in arguments["gather_list"] or ():
        if _is_of_host(output):
            output.copy_(arguments["tensor"])


@_with_result
def _scatter(arguments):
    if arguments["scatter_list"] and _is_of_host(arguments["tensor"]):
        arguments["tensor"].copy_(arguments["scatter_list"][_group_rank(arguments)])


def _monitored_barrier(_original):
    def monitored_barrier(*_args, **_kwargs):
        return None

    return monitored_barrier


# ---------------------------------------------------------------------------------------------
# Objects
# ---------------------------------------------------------------------------------------------


def _is_root(arguments, name):
    """Returns whether this process is the one that sends or receives the objects."""
    of_group = arguments.get(f"group_{name}")
    if of_group is not None:
        return of_group == _group_rank(arguments)
    return (arguments.get(name) or 0) == _torch.distributed.get_rank()


def _all_gather_object(original):
    def all_gather_object(object_list, obj, *args, **kwargs):
        try:
            original(object_list, obj, *args, **kwargs)
        except Exception:
            # Objects above 64 KiB are not kept on the device.
            object_list[:] = [obj] * len(object_list)

    return all_gather_object


def _gather_object(original):
    names = inspect.signature(original)

    def gather_object(*args, **kwargs):
        given = bound(names, args, kwargs)
        arguments = given.arguments
        if _group_rank(arguments) >= 0 and _is_root(arguments, "dst"):
            gathered = arguments["object_gather_list"]
            _torch.distributed.all_gather_object(gathered, arguments["obj"], group=arguments["group"])
            return None
        return original(*args, **kwargs)

    return gather_object


def _scatter_object_list(original):
    names = inspect.signature(original)

    def scatter_object_list(*args, **kwargs):
        given = bound(names, args, kwargs)
        arguments = given.arguments
        place = _group_rank(arguments)
        if place >= 0:
            objects = arguments["scatter_object_input_list"]
            arguments["scatter_object_output_list"][0] = objects[place] if objects else None

    return scatter_object_list
