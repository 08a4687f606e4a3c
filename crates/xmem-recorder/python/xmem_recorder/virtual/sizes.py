"""Operators of CUDA whose output has a size that they read from the device.

Where the values are known or assumed, the size is the real one. Otherwise it follows from an assumption.
"""

import warnings

from . import assumptions, known

MAX_INT64 = (1 << 63) - 1

_torch = None
_library = None
# The number that the running operator reads.
_expected = None


def install(torch):
    """Replaces kernels that read sizes."""
    global _torch, _library
    _torch = torch
    _library = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _library.impl("nonzero", _nonzero, "CUDA")
        _library.impl("bincount", _bincount, "CUDA")
        _library.impl("repeat_interleave.Tensor", _repeat_interleave, "CUDA")
        _library.impl("_local_scalar_dense", _local_scalar_dense, "CUDA")
        _library.impl("_coalesce", _coalesce, "SparseCUDA")


def functions(torch):
    """Functions whose operators read one number, with what tells it from the arguments."""
    found = {torch._C._nn.one_hot: _largest}
    for owner in (torch, torch.functional, torch.Tensor):
        for name in ("unique", "unique_consecutive", "_unique2"):
            if hasattr(owner, name):
                found[getattr(owner, name)] = _distinct
    return found


def counting(torch):
    """Functions that count the elements of a mask."""
    return {getattr(owner, name) for owner in (torch, torch.Tensor) for name in ("count_nonzero", "sum")}


def count(func, args, kwargs, result):
    """Writes how many elements of an unknown mask are true, by the share that the user gave; returns whether it did. Without
    one, the number is remembered as a count."""
    mask = args[0] if args else kwargs.get("input")
    if not isinstance(mask, _torch.Tensor) or not mask.is_cuda or not result.is_cuda or not result.numel():
        return False
    is_mask = mask.dtype is _torch.bool or func.__name__ == "count_nonzero"
    if not is_mask or result.dtype is not _torch.int64 or known.state(mask) >= known.COUNTED or not known.is_small(result):
        return False
    if not assumptions.is_given("nonzero"):
        known.counts.keep(result)
        return False
    if known.state(mask) == known.SMALL and known.unrecorded(lambda: known.alias(mask).all()):
        # All are finite, or another check that holds.
        return False
    number = round(mask.numel() // result.numel() * assumptions.share("nonzero"))
    known.unrecorded(lambda: known.alias(result).fill_(number))
    known.keep(result, known.COUNTED)
    return True


def instead(torch):
    """Functions that read from the device what they compute there themselves, each with what is called in its place."""
    owners = (torch, torch.Tensor)
    found = {
        owner.histc: lambda *args, call=owner.histc, **kwargs: _histc(call, *args, **kwargs) for owner in owners
    }
    for owner in owners:
        for name in ("allclose", "equal"):
            call = getattr(owner, name)
            found[call] = lambda *args, call=call, **kwargs: _compared(call, *args, **kwargs)
    return found


def _compared(call, *args, **kwargs):
    """Whether two tensors are equal, which the operator finds with kernels (aten/src/ATen/native/cuda/Equal.cpp,
    `cuda_equal`): what known values say."""
    with _torch._C.DisableTorchFunction():
        tensors = [value for value in (*args, *kwargs.values()) if isinstance(value, _torch.Tensor)]
        if not any(tensor.is_cuda for tensor in tensors):
            return None
        # The operator allocates what it needs, and says what is wrong with its arguments.
        result = call(*args, **kwargs)
        if not all(tensor.is_cuda and known.state(tensor) >= known.COUNTED for tensor in tensors):
            return result
        on_host = [known.alias(value) if isinstance(value, _torch.Tensor) else value for value in args]
        named = {
            name: known.alias(value) if isinstance(value, _torch.Tensor) else value for name, value in kwargs.items()
        }
        return known.unrecorded(lambda: call(*on_host, **named))


def _histc(call, input, bins=100, min=0, max=0, **kwargs):
    """A histogram. The operator reads the range of its input from memory that no kernel has written, unless it is given
    (aten/src/ATen/native/cuda/SummaryOps.cu, `_histc_cuda_template`): unknown values are zeros."""
    if not input.is_cuda or not input.numel():
        return None
    with _torch._C.DisableTorchFunction():
        state = known.state(input)
        if min == max:
            # As the operator makes them.
            lowest, highest = input.min(), input.max()
            if state >= known.COUNTED:
                values = known.alias(input)
                min, max = known.unrecorded(lambda: (values.min().item(), values.max().item()))
            del lowest, highest
            if min == max:
                min, max = min - 1, max + 1
        result = call(input, bins, min, max, **kwargs)
        if state >= known.COUNTED:
            # The host counts no integers.
            values = known.alias(input)
            known.unrecorded(lambda: known.alias(result).copy_(_torch.histc(values.double(), bins, min, max)))
            known.keep(result, state)
        else:
            known.clear(result)
        return result


def with_expected(tell, func, args, kwargs):
    """Calls a function whose operator reads a number."""
    global _expected
    try:
        with _torch._C.DisableTorchFunction():
            _expected = known.unrecorded(tell, func, args, kwargs)
    except Exception:
        # The function says what is wrong with its arguments.
        _expected = None
    try:
        return func(*args, **kwargs)
    finally:
        _expected = None


def _values(tensor, operator):
    """A tensor of the host with known or assumed values; None if there are none."""
    state = known.state(tensor)
    if state < known.COUNTED:
        return None
    if state in known.ASSUMPTIONS:
        assumptions.use(operator, known.ASSUMPTIONS[state])
    return known.alias(tensor)


def _distinct(func, args, kwargs):
    tensor = args[0] if args else kwargs["input"]
    if not tensor.is_cuda or not tensor.numel() or kwargs.get("dim") is not None:
        if tensor.is_cuda and kwargs.get("dim") is not None:
            assumptions.use("aten::unique_dim", None)
        return None
    values = _values(tensor, "aten::unique")
    if values is None:
        assumptions.use("aten::unique", "unique")
        return max(1, round(tensor.numel() * assumptions.share("unique")))
    consecutive = "consecutive" in func.__name__
    return (_torch.unique_consecutive if consecutive else _torch.unique)(values).numel()


def _largest(_func, args, kwargs):
    classes = args[1] if len(args) > 1 else kwargs.get("num_classes", -1)
    if classes != -1 or not args[0].is_cuda or not args[0].numel():
        return None
    values = _values(args[0], "aten::one_hot")
    if values is None:
        assumptions.use("aten::one_hot", None)
        return 0
    return int(values.max())


def _local_scalar_dense(tensor):
    """A number of the device. Checks within operators that are expected to read a number succeed."""
    with _torch._C.DisableTorchFunction():
        if _expected is not None:
            if tensor.dtype is _torch.bool:
                return True
            if not tensor.is_floating_point():
                return _expected
        number = known.unrecorded(lambda: known.alias(tensor).item())
        if isinstance(number, int) and number > MAX_INT64 and _torch.__version__ < (2, 11):
            # A number that a kernel in Python returns must fit an int64 in 2.6, and not in 2.11.
            return number & MAX_INT64
        return number


def _nonzero(mask):
    """The indices of elements that are not zero: int64, as many rows as elements, as a transposed matrix
    (aten/src/ATen/native/cuda/Nonzero.cu, `nonzero_cuda_out_impl`)."""
    with _torch._C.DisableTorchFunction():
        values = known.unrecorded(_values, mask, "aten::nonzero")
        if values is None:
            assumptions.use("aten::nonzero", "nonzero")
            count = round(mask.numel() * assumptions.share("nonzero"))
            return _torch.empty((mask.dim(), count), dtype=_torch.int64, device=mask.device).t()
        indices = known.unrecorded(values.nonzero)
        shape = (mask.dim(), indices.shape[0])
        out = _torch.empty(shape, dtype=_torch.int64, device=mask.device)
        if out.numel():
            known.unrecorded(lambda: known.alias(out).copy_(indices.t()))
            known.keep(out, known.state(mask))
        return out.t()


def _bincount(tensor, weights=None, minlength=0):
    """The number of elements with each value: as many as the largest value and one, and `minlength` at least
    (aten/src/ATen/native/cuda/SummaryOps.cu, `_bincount_cuda_template`). Unknown values are taken to be below
    `minlength`."""
    with _torch._C.DisableTorchFunction():
        count = minlength
        if tensor.numel():
            state = known.state(tensor)
            if state >= known.COUNTED:
                count = max(minlength, known.unrecorded(lambda: int(known.alias(tensor).max())) + 1)
                if state in known.ASSUMPTIONS and count > minlength:
                    assumptions.use("aten::bincount", known.ASSUMPTIONS[state])
            elif minlength == 0:
                assumptions.use("aten::bincount", None)
                count = 1
        dtype = _torch.int64
        if weights is not None:
            dtype = _torch.float32 if weights.dtype is _torch.float32 else _torch.float64
        return _torch.zeros(count, dtype=dtype, device=tensor.device)


def _repeat_interleave(repeats, output_size=None):
    """Each index as often as `repeats` says (aten/src/ATen/native/Repeat.h, `repeat_interleave_common`)."""
    with _torch._C.DisableTorchFunction():
        if not repeats.numel():
            return _torch.empty_like(repeats)
        sums = repeats.cumsum(0)
        values = None
        if output_size is None:
            values = known.unrecorded(_values, repeats, "aten::repeat_interleave")
            if values is None:
                assumptions.use("aten::repeat_interleave", None)
                output_size = repeats.numel()
            else:
                output_size = known.unrecorded(lambda: int(values.sum()))
        result = _torch.empty(output_size, dtype=repeats.dtype, device=repeats.device)
        if values is not None and output_size:
            known.unrecorded(lambda: known.alias(result).copy_(_torch.repeat_interleave(values)))
            known.keep(result, known.state(repeats))
        del sums
        return result


def _coalesce(tensor):
    """A sparse tensor with each index once: as many as are distinct
    (aten/src/ATen/native/sparse/cuda/SparseCUDATensor.cu, `_coalesce_sparse_cuda`)."""
    with _torch._C.DisableTorchFunction():
        count = tensor._nnz()
        if count < 2:
            return tensor.clone()._coalesced_(True)
        indices, values = tensor._indices(), tensor._values().contiguous()
        flat, *orders = (_numbers(tensor, count) for _ in range(3))
        # Scratch of the sort by keys, and of the search for distinct ones: as on an H100 (`traces/measured`).
        for size in ((2 * -(-8 * count // 256) * 256 if count > 256 else 1024) + 511, 1535):
            _torch.empty(size, dtype=_torch.uint8, device=tensor.device)
        known_indices = known.unrecorded(_values, indices, "aten::_coalesce")
        if known_indices is None:
            assumptions.use("aten::_coalesce", "unique")
            distinct = max(1, round(count * assumptions.share("unique")))
        else:
            known_indices = known.unrecorded(lambda: _torch.unique(known_indices, dim=1))
            distinct = known_indices.shape[1]
        new_values = _torch.empty((distinct, *values.shape[1:]), dtype=values.dtype, device=values.device)
        del orders
        if indices.shape[0] == 1:
            new_indices = flat[:distinct].unsqueeze(0)
        else:
            new_indices = _torch.empty((indices.shape[0], distinct), dtype=_torch.int64, device=tensor.device)
        del flat
        if known_indices is not None:
            known.unrecorded(lambda: known.alias(new_indices).copy_(known_indices))
            known.keep(new_indices, known.state(indices))
        dims = (tensor.sparse_dim(), tensor.dense_dim(), tensor.shape)
        make = _torch.ops.aten._sparse_coo_tensor_with_dims_and_tensors.default
        layout = {"dtype": tensor.dtype, "layout": _torch.sparse_coo, "device": tensor.device}
        return make(*dims, new_indices, new_values, **layout)._coalesced_(True)


def _numbers(tensor, count):
    return _torch.empty(count, dtype=_torch.int64, device=tensor.device)
