"""Batches of different lengths for a script whose batches are all alike (`xmem profile --vary`).

What a DataLoader returns is changed, or, in an iteration without one, what the model is called with from outside:
in one iteration after the other, tensors are cut or repeated along the dimension that varies. The length of a
batch is the last dimension of its first integers of two dimensions or more (tokens), else the second of three
dimensions; its size is the first dimension of its first tensor. Every dimension of that extent changes. Where the
arguments of the model were changed, those of modules after it and the targets of `cross_entropy` follow.

The values change with it: a loss is not that of the script's data.
"""

from collections.abc import MutableMapping

from .. import session
from ..patching import replace
from . import batches

_SEQUENCE = "seq"

_torch = None
_round = None
_loaded = None
_changed = {}


def install(torch, current_round):
    """Wraps DataLoaders and the loss, if lengths are to vary; `current_round()` is the number of iterations
    that have ended."""
    global _torch, _round
    if not session.settings().get("vary"):
        return
    _torch, _round = torch, current_round
    from torch.utils.data import dataloader

    replace(dataloader._BaseDataLoaderIter, "__next__", _changing_batches)
    replace(torch.nn.functional, "cross_entropy", _following_targets)


def change_arguments(args, kwargs):
    """The arguments of a module that is called from outside, with the length of this iteration."""
    if _torch is None or _loaded == _round():
        return args, kwargs
    if _round() not in _changed:
        found = _extent((args, kwargs))
        if found is None:
            return args, kwargs
        _changed[_round()] = found, _wanted()
        _note(found, "the model was called with")
    # Further modules of the iteration, as a loss, may take tensors of the script's own length.
    found, wanted = _changed[_round()]
    return _resized(args, found, wanted), _resized(kwargs, found, wanted)


def _changing_batches(original):
    def next_batch(self):
        global _loaded
        batch = original(self)
        found = _extent(batch)
        if found is None:
            return batch
        _loaded = _round()
        _note(found, "a DataLoader returned")
        return _resized(batch, found, _wanted())

    return next_batch


def _following_targets(original):
    def cross_entropy(input, target, *args, **kwargs):
        change = _changed.get(_round()) if _torch is not None else None
        if change is not None and isinstance(target, _torch.Tensor):
            target = _target(input, target, *change)
        return original(input, target, *args, **kwargs)

    return cross_entropy


def _target(input, target, found, wanted):
    """The targets of as many elements as the input has."""
    if target.is_floating_point() or input.dim() < 1:
        return target
    if target.dim() >= 2:
        return _resized(target, found, wanted)
    rows = input.shape[0]
    if target.dim() != 1 or target.shape[0] == rows:
        return target
    if _dimension() == _SEQUENCE and target.shape[0] % found == 0:
        return _along(target.reshape(-1, found), 1, wanted).reshape(-1)
    return _along(target, 0, rows)


def _wanted():
    extents = session.settings()["vary"]["extents"]
    return extents[_round() % len(extents)]


def _dimension():
    return session.settings()["vary"]["dimension"]


def _extent(batch):
    """The extent of the dimension that varies; None if no tensor has it."""
    tensors = list(batches.tensors(_torch, batch))
    if _dimension() != _SEQUENCE:
        return next((t.shape[0] for t in tensors if t.dim() >= 1), None)
    return batches.length(_torch, tensors)


def _resized(value, found, wanted, depth=4):
    """The same with tensors of another extent. A mapping is changed in place, as it may be of any class."""
    if isinstance(value, _torch.Tensor):
        return _tensor(value, found, wanted)
    if not depth:
        return value
    if isinstance(value, MutableMapping):
        for key in list(value):
            value[key] = _resized(value[key], found, wanted, depth - 1)
        return value
    if isinstance(value, (list, tuple)):
        items = [_resized(item, found, wanted, depth - 1) for item in value]
        if isinstance(value, list):
            return items
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value


def _tensor(tensor, found, wanted):
    if _dimension() != _SEQUENCE:
        dims = [0]
    else:
        # The first dimension is the batch's, whatever its extent.
        dims = range(1 if tensor.dim() > 1 else 0, tensor.dim())
    for dim in dims:
        if dim < tensor.dim() and tensor.shape[dim] == found:
            tensor = _along(tensor, dim, wanted)
    return tensor


def _along(tensor, dim, wanted):
    """The tensor cut or repeated along a dimension."""
    extent = tensor.shape[dim]
    if wanted == extent or extent == 0:
        return tensor
    if wanted < extent:
        return tensor.narrow(dim, 0, wanted).contiguous()
    copies = -(-wanted // extent)
    return _torch.cat([tensor] * copies, dim).narrow(dim, 0, wanted).contiguous()


def _note(found, who):
    vary = session.settings()["vary"]
    words = "length" if vary["dimension"] == _SEQUENCE else "size"
    extents = ", ".join(str(extent) for extent in vary["extents"])
    session.note(
        f"--vary: {who} batches of {words} {found}; recorded iterations have {extents} in turn, cut or repeated"
    )
