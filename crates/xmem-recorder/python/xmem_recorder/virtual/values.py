"""Values on a virtual GPU, where no kernel computes.

Small tensors whose values follow from the host (indices, masks, positions, scales) keep their real values:
the same function is called on the host, on the same bytes, since the device's memory is ordinary memory.
All others hold zeros, what the function makes of zeros, or what the host copied there before a kernel wrote it. What the
script reads of those is counted, by its purpose.

Left to other modules: which values are known (`known`), what kernels write (`written`), sizes that follow from values (`sizes`)
and from integers that the script has read (`integers`).
"""

import contextlib
import sys

from .. import errors, scaling, session
from . import assumptions, backward, branches, choices, compilation, host_memory, integers, known, random_numbers, received, sizes, written

# Functions that make and compare masks, whose known values are kept up to this size: the script may ask whether
# a mask is causal.
OF_MASKS = ("all", "eq", "full", "tril", "tril_", "triu", "triu_", "__eq__")
MAX_MASK_BYTES = 1 << 24

# Tensors in a result that are looked at, and places in the script that are listed.
MAX_TENSORS = 8
MAX_PLACES = 64

# Functions by which the script reads a value, and the purpose that they tell.
READS = {
    "__bool__": "control flow",
    "__float__": "value",
    "__index__": "size",
    "__int__": "size",
    "item": "value",
    "numpy": "value",
    "tolist": "value",
}
# Functions that write nothing to the memory that they allocate.
UNWRITTEN = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}
# Functions that make zeros, and those whose result is zeros for zeros.
OF_ZEROS = {"new_zeros", "zeros", "zeros_like"}
FROM_ZEROS = {"bool", "clone", "contiguous", "float", "int", "long", "to", "type"}
# Functions of whose first argument only dtype, shape and device count.
OF_FORM = {"full_like", "new_full", "new_ones", "new_tensor", "new_zeros", "ones_like", "rand_like", "randint_like"}
OF_FORM |= {"randn_like", "zeros_like"}
# Functions that change what a tensor is, not its values.
NO_VALUES = {"detach_", "record_stream", "rename_", "requires_grad_", "resize_", "set_", "share_memory_"}
# Functions that do not use the values of their arguments.
UNUSED = NO_VALUES | {"__get__"}
# Functions whose result has the values of the tensor, which may come from the host.
MOVES = {"cuda", "to", "type"}
# Functions that write all of a tensor.
OVERWRITES = {"copy_", "fill_", "normal_", "random_", "uniform_", "zero_"}
# Results for unknown values: they are finite, and equal to nothing.
OF_UNKNOWN = {
    "__eq__": 0,
    "__ne__": 1,
    "eq": 0,
    "isfinite": 1,
    "isinf": 0,
    "isnan": 0,
    "isneginf": 0,
    "isposinf": 0,
    "ne": 1,
}

_torch = None
_mode = None
_reads = {}
# Functions whose integers are sizes or positions.
_lists = set()
# Large results of `isfinite`, of which `all` is true.
_finite = known.Marks()


def facts():
    """The reads of values that are not known: the purpose, the place, how often."""
    return [
        {"purpose": purpose, "place": place, "times": times}
        for (purpose, place), times in list(_reads.items())[:MAX_PLACES]
    ]


def install(torch):
    """Begins to keep values."""
    global _torch, _mode
    _torch = torch
    _finite.install()
    instead = host_memory.install(torch)
    known.install(torch)
    assumptions.install(torch)
    sizes.install(torch)
    instead.update(sizes.instead(torch))
    written.install()
    received.install(torch)
    _mode = _make_mode(torch, instead)
    _mode.__enter__()
    backward.install(torch, _mode)
    compilation.install(torch, _compilation_begins, _pause)


def _make_mode(torch, instead):
    reads = {getattr(torch.Tensor, name): purpose for name, purpose in READS.items()}
    _lists.update({torch.Tensor.__index__, torch.Tensor.tolist})
    tensors = (torch.Tensor, torch.nn.Parameter)
    most = known.looked_at
    strided = torch.strided
    set_item = torch.Tensor.__setitem__
    sequences = (tuple, list)
    choosing = choices.functions(torch)
    sized = sizes.functions(torch)
    finite = {torch.isfinite, torch.Tensor.isfinite}
    every = {torch.all, torch.Tensor.all}
    item = torch.Tensor.item
    counting = sizes.counting(torch)
    given_sizes = integers.install(torch, _compared)
    operators_by_name = written.types_of_operators(torch)
    owners = (torch, torch.Tensor)
    of_zeros = {getattr(owner, name) for owner in owners for name in OF_ZEROS | FROM_ZEROS if hasattr(owner, name)}
    of_masks = {getattr(owner, name) for owner in owners for name in OF_MASKS if hasattr(owner, name)}
    most_of_masks = MAX_MASK_BYTES

    class Values(torch.overrides.TorchFunctionMode):
        """Sees every call of a function of torch by Python code."""

        # Every call in here is an event of the trace: the usual case has none but that of `func`.
        def __torch_function__(self, func, types, args=(), kwargs=None):
            if kwargs is None:
                kwargs = {}
            if received.exist and getattr(func, "__name__", "") not in UNUSED:
                received.use(args, kwargs)
            if func in instead:
                result = instead[func](*args, **kwargs)
                if result is not None:
                    return result
            origin = _read(args[0], func, reads[func]) if func in reads else None
            if integers.exist and func in given_sizes:
                integers.check(func, given_sizes[func], args, kwargs)
            if func in sized:
                result = sizes.with_expected(sized[func], func, args, kwargs)
            elif type(func) in operators_by_name:
                result, has_written = _call_by_name(func, args, kwargs)
                if has_written:
                    return result
            else:
                result = func(*args, **kwargs)
            if origin is not None and func is item and type(result) is int:
                return integers.read(result, *origin)
            # The script has its result, whatever it is.
            try:
                if func in choosing and _has_written(choices.choose, torch, choosing[func], args, kwargs, result):
                    return result
                if func in counting and _has_written(sizes.count, func, args, kwargs, result):
                    return result
                if type(result) in tensors:
                    if result.layout is not strided:
                        return result
                    if func in of_zeros and result.is_cuda and _are_zeros(func, args, result):
                        return result
                    if result.is_cuda and result.nbytes <= most[result.dtype]:
                        if func in every and _is_finite(args):
                            _clear(result, 1)
                        else:
                            _follow(func, args, kwargs, [result])
                    elif func in finite:
                        _remember_finite(result)
                    elif func in of_masks and result.is_cuda and result.nbytes <= most_of_masks:
                        _follow(func, args, kwargs, [result], most_of_masks)
                elif result is None:
                    if func is set_item and args[0].is_cuda:
                        _follow(func, args, kwargs, [args[0]])
                elif type(result) in sequences or isinstance(result, tuple):
                    _follow_all(func, args, kwargs, result, tensors)
            except Exception as error:
                _not_kept(func, error)
            return result

    return Values()


def _not_kept(func, error):
    """Tells the user about an error of the recorder: it is not the script's."""
    name = getattr(func, "__name__", "a function")
    session.note(f"values of torch's `{name}` are not kept: {errors.describe(error)}")


def _raises_nothing(tensor, frame):
    """Writes the value with which the script raises no exception, if it tests one element for that; returns whether it
    does."""
    try:
        truth = branches.truth_without_exception(frame)
        if truth is None or tensor.numel() != 1:
            return False
        with _torch._C.DisableTorchFunction(), _torch.no_grad():
            known.unrecorded(lambda: known.alias(tensor).fill_(truth))
        return True
    except Exception:
        return False


def _has_written(write, *args):
    """Returns whether a function wrote the values of a result."""
    try:
        with _torch._C.DisableTorchFunction(), _torch.no_grad():
            return write(*args)
    except Exception:
        return False


def _call_by_name(func, args, kwargs):
    result, has_written, reader = written.by_operator(lambda: func(*args, **kwargs), func, args, kwargs)
    if reader is not None:
        _reads["size", reader] = _reads.get(("size", reader), 0) + 1
    return result, has_written


def _compared(place):
    """Counts a comparison of an integer that was not computed."""
    _reads["comparison", place] = _reads.get(("comparison", place), 0) + 1


def _are_zeros(func, args, result):
    """Notes that a large result is zeros; returns whether it is."""
    with _torch._C.DisableTorchFunction():
        if known.is_small(result) or func.__name__ not in OF_ZEROS and not (args and known.are_zeros(args[0])):
            return False
        known.keep_zeros(result)
        return True


def _remember_finite(result):
    with _torch._C.DisableTorchFunction():
        if result.is_cuda:
            _finite.keep(result)


def _is_finite(args):
    """Returns whether an argument is a large result of `isfinite`."""
    with _torch._C.DisableTorchFunction():
        tensor = args[0] if args else None
        if not isinstance(tensor, _torch.Tensor) or known.state(tensor) >= known.COUNTED:
            return False
        return _finite.of(tensor) is not None


def _clear(result, value):
    with _torch._C.DisableTorchFunction():
        known.clear(result, value)


def _compilation_begins():
    """Ends Python stacks: a compilation makes tens of millions of calls."""
    if session.settings()["stacks"]:
        sys.setprofile(None)
        session.note("torch.compile: no Python stacks are recorded from the first compilation on")


@contextlib.contextmanager
def _pause():
    """Keeps no values: removes the mode from below those of the script, and puts it back."""
    overrides = _torch.overrides
    if _mode not in overrides._get_current_function_mode_stack():
        yield
        return
    above = []
    while not above or above[-1] is not _mode:
        above.append(overrides._pop_mode())
    for mode in reversed(above[:-1]):
        overrides._push_mode(mode)
    try:
        yield
    finally:
        for _ in above[:-1]:
            overrides._pop_mode()
        for mode in reversed(above):
            overrides._push_mode(mode)


# ---------------------------------------------------------------------------------------------
# Values of results
# ---------------------------------------------------------------------------------------------


def _follow_all(func, args, kwargs, results, tensors):
    """As `_follow`, for a function with several results."""
    results = list(results)
    if 0 < len(results) <= MAX_TENSORS and all(type(result) in tensors for result in results):
        if all(result.is_cuda for result in results):
            _follow(func, args, kwargs, results)


def _follow(func, args, kwargs, results, most=None):
    """Computes small results on the host, and writes them to the device's memory; those up to `most` bytes from
    known arguments alone."""
    if _torch._C._get_tracing_state() is not None:
        # `torch.jit.trace` would record what is computed here.
        return
    known.unrecorded(_compute_small, func, args, kwargs, results, most)


def _compute_small(func, args, kwargs, results, most):
    try:
        if not all(result.nbytes <= (most or known.looked_at[result.dtype]) for result in results):
            return
        if not all(result.layout is _torch.strided for result in results):
            return
        name = getattr(func, "__name__", "")
        if name in NO_VALUES or name == "__get__":
            # The storage is that of an argument, and known as before.
            return
        with _torch._C.DisableTorchFunction(), _torch.no_grad():
            if name in UNWRITTEN or not _compute(func, name, args, kwargs, results, most):
                for result in results:
                    known.clear(result, OF_UNKNOWN.get(name, 0))
    except Exception:
        with contextlib.suppress(Exception):
            for result in results:
                known.clear(result)


def _compute(func, name, args, kwargs, results, most):
    """Returns whether the results were computed."""
    changed = _changed(name, args, kwargs)
    overwritten = changed if name in OVERWRITES or kwargs.get("out") is not None else None
    host_arguments = _Arguments(overwritten)
    if name in OF_FORM and args and args[0].is_cuda:
        form = (0,) if name.startswith("new_") else args[0].shape
        args = (_torch.empty(form, dtype=args[0].dtype, device="cpu"), *args[1:])
    host_args = host_arguments.of(args)
    host_kwargs = host_arguments.of({key: value for key, value in kwargs.items() if key != "pin_memory"})
    if kwargs.get("device") is not None:
        # A number names a device of CUDA.
        host_kwargs["device"] = "cpu"
    state = host_arguments.state
    if state == known.LARGE or state == known.SMALL and name in OF_UNKNOWN:
        return False
    is_large = not all(known.is_small(result) for result in results)
    if is_large and state not in known.ASSUMPTIONS and not (most and state == known.KNOWN):
        return False
    if host_arguments.results_share(results) and changed is None:
        # A view.
        return True
    if name in MOVES:
        # The function itself may make another tensor on the device.
        values = host_args[0].to(results[0].dtype)
    elif name == "_amp_update_scale_":
        values = scaling.update(*host_args, **host_kwargs)
    elif random_numbers.draws(name):
        values = random_numbers.for_gpu(_torch, lambda: func(*host_args, **host_kwargs))
    else:
        values = func(*host_args, **host_kwargs)
    if changed is not None:
        values = [known.alias(result) for result in results]
    elif isinstance(values, _torch.Tensor):
        values = [values]
    for result, value in zip(results, values):
        if value.shape != result.shape or value.dtype != result.dtype:
            return False
        alias = known.alias(result)
        if alias.data_ptr() != value.data_ptr():
            alias.copy_(value)
        if state >= known.COUNTED:
            known.keep(result, state)
        else:
            known.forget(result)
            if not _torch.isfinite(alias).all():
                known.clear(result)
    return True


def _changed(name, args, kwargs):
    """The tensor that a function changes in place."""
    if kwargs.get("out") is not None:
        return kwargs["out"]
    in_place = name == "__setitem__" or name.endswith("_") and not name.endswith("__")
    in_place = in_place or name in ("__iadd__", "__isub__", "__imul__", "__iand__", "__ior__")
    return args[0] if in_place and args else None


class _Arguments:
    """Arguments on the host: tensors of the device by views of the same memory."""

    def __init__(self, overwritten):
        self.overwritten = overwritten
        self.state = known.KNOWN
        self.addresses = set()

    def of(self, value):
        if isinstance(value, _torch.Tensor):
            return self._tensor(value)
        if isinstance(value, _torch.device):
            return _torch.device("cpu") if value.type == "cuda" else value
        if isinstance(value, str):
            return "cpu" if value.startswith("cuda") else value
        if isinstance(value, _torch.Generator):
            # What it draws is drawn beside the script's own numbers.
            return None if value.device.type == "cuda" else value
        if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
            return type(value)([self.of(item) for item in value])
        if isinstance(value, dict):
            return {key: self.of(item) for key, item in value.items()}
        return value

    def _tensor(self, tensor):
        if not tensor.is_cuda:
            return tensor
        state = known.state(tensor)
        if tensor is self.overwritten and tensor.is_contiguous() and known.is_small(tensor):
            state = known.KNOWN
        self.state = min(self.state, state)
        if state == known.LARGE:
            return tensor
        self.addresses.add(known.address(tensor))
        return known.alias(tensor)

    def results_share(self, results):
        return all(known.address(result) in self.addresses for result in results)


# ---------------------------------------------------------------------------------------------
# Reads
# ---------------------------------------------------------------------------------------------


def _read(tensor, func, purpose):
    """Counts a read of a value that is not known. Returns the place, and what an integer follows from: an assumption and its
    share."""
    frame = sys._getframe(2)
    try:
        with _torch._C.DisableTorchFunction():
            if not isinstance(tensor, _torch.Tensor) or not tensor.is_cuda:
                return None
            received.say_read(tensor, lambda: _place(frame))
            if known.is_known(tensor):
                return None
            assumption = known.ASSUMPTIONS.get(known.state(tensor))
            share = None
            if assumption is None and known.counts.of(tensor):
                assumption, share = "nonzero", 0.0
            if not tensor.dtype.is_floating_point and tensor.dtype is not _torch.bool:
                if func in _lists and not branches.is_printed(frame):
                    # What is done with a single number is not known: it may be a count of correct answers.
                    assumptions.use(f"Tensor.{func.__name__}", assumption, share)
            if purpose == "value" and not tensor.dtype.is_floating_point:
                purpose = "control flow" if tensor.dtype is _torch.bool else "size"
    except Exception:
        return None
    if func is _torch.Tensor.__bool__ and _raises_nothing(tensor, frame):
        return None
    if purpose == "value" and branches.decides(frame):
        purpose = "comparison"
    place = _place(frame)
    _reads[purpose, place] = _reads.get((purpose, place), 0) + 1
    return place, assumption, share


def _place(frame):
    return f"{errors.base_name(frame.f_code.co_filename)}:{frame.f_lineno}"
