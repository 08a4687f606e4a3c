"""The tensors of a batch."""

from collections.abc import MutableMapping

# Levels of containers in batches.
MAX_DEPTH = 4


def tensors(torch, value, depth=MAX_DEPTH):
    """The tensors in a value, in order: in lists, tuples and mappings."""
    if isinstance(value, torch.Tensor):
        yield value
    elif depth and isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors(torch, item, depth - 1)
    elif depth and isinstance(value, MutableMapping):
        for item in value.values():
            yield from tensors(torch, item, depth - 1)
