"""The tensors of a batch, and its length."""

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


def length(torch, found):
    """The length of the sequences of a batch with these tensors: the last dimension of its first integers of two dimensions or
    more (tokens), else the second of three dimensions; None if no tensor has it."""
    whole = (torch.int64, torch.int32)
    tokens = (tensor.shape[-1] for tensor in found if tensor.dim() >= 2 and tensor.dtype in whole)
    features = (tensor.shape[1] for tensor in found if tensor.dim() == 3)
    return next(tokens, None) or next(features, None)
