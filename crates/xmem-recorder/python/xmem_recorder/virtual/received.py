"""Integers that another rank broadcasts to this one: they arrive when the script first uses them.

A process that runs without the others (`ranks.messages`) has them sent by a process that runs for it. Most of what is
broadcast is never looked at, so that none is started before."""

import contextlib

from .. import session
from . import known, shapes

# Bytes up to which broadcast integers arrive: flags and sizes (megatron/training/training.py,
# `build_train_valid_test_data_loaders`; megatron/core/tensor_parallel/data.py, `_build_key_size_numel_dictionaries`).
# Batches of tokens are larger.
MAX_BYTES = 1 << 10

# Whether anything was broadcast that arrives once it is used.
exist = False

_torch = None
_marks = known.Marks()
_is_said = False


class _Broadcast:
    def __init__(self, tensor, source, fetch):
        # Does not keep the tensor's memory.
        self.memory = known.alias(tensor)
        self.source = source
        self.fetch = fetch


def install(torch):
    """Learns torch."""
    global _torch
    _torch = torch
    _marks.install()


def keep(tensor, source, fetch=None):
    """Notes that a tensor on the device is what a rank broadcasts. `fetch` gives the elements, or None if they are unknown; it
    raises if they do not arrive."""
    global exist
    exist = exist or fetch is not None
    _marks.keep(tensor, _Broadcast(tensor, source, fetch))


def use(args, kwargs):
    """Writes what was broadcast into the tensors among the arguments of a function."""
    # Some tensors of torch's compiler have no memory and do not say so.
    with _torch._C.DisableTorchFunction(), contextlib.suppress(RuntimeError):
        for value in (*args, *kwargs.values()):
            for tensor in value if type(value) in (list, tuple) else (value,):
                if isinstance(tensor, _torch.Tensor) and tensor.is_cuda and known.has_memory(tensor):
                    _arrive(tensor)


def _arrive(tensor):
    global exist
    broadcast = _marks.of(tensor)
    if broadcast is None or broadcast.fetch is None:
        return
    fetch, broadcast.fetch = broadcast.fetch, None
    exist = any(other.fetch is not None for _, other in _marks.found.values())
    try:
        elements = fetch()
    except Exception:
        # `fetch` has told the user.
        return
    if elements is None:
        known.forget(tensor)
    else:
        shapes.write(_torch, broadcast.memory, elements)
        known.keep(tensor, known.KNOWN)
    _marks.forget(tensor)


def say_read(tensor, place):
    """Says once that the script reads what another rank has broadcast and what has not arrived."""
    global _is_said
    broadcast = _marks.of(tensor)
    if broadcast is None or _is_said:
        return
    _is_said = True
    session.note(
        f"{place()} reads what rank {broadcast.source} broadcasts, and gets what this rank had before: if it decides whether "
        f"the script trains, record rank {broadcast.source} with --rank {broadcast.source}"
    )
