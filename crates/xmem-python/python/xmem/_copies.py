"""Copies of models and batches without their data: what is asked about a model leaves it as it is."""

from __future__ import annotations

import contextlib
import copy
import random
import sys
from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List

if TYPE_CHECKING:
    import torch

__all__ = ["copied", "like", "rng_kept", "set_device", "tensors"]

# Objects within objects are followed to this depth.
_DEPTH = 8


def tensors(value: Any) -> "List[torch.Tensor]":
    """Return all tensors in a value, each once: in containers, in the attributes of objects, in modules."""
    found: "Dict[int, torch.Tensor]" = {}
    _collect(value, found, set(), _DEPTH)
    return list(found.values())


def _collect(value: Any, found: "Dict[int, torch.Tensor]", seen: "set[int]", depth: int) -> None:
    import torch

    if isinstance(value, torch.Tensor):
        found.setdefault(id(value), value)
        return
    if id(value) in seen or depth == 0 or isinstance(value, (str, bytes, int, float, type)) or value is None:
        return
    seen.add(id(value))
    inner: "List[Any]" = []
    if isinstance(value, torch.nn.Module):
        for module in value.modules():
            inner += [*module._parameters.values(), *module._buffers.values()]
            inner += [one for name, one in vars(module).items() if name not in _OF_MODULES]
        depth = _DEPTH
    elif isinstance(value, Mapping):
        inner = list(value.values())
    elif isinstance(value, (Sequence, Set)):
        inner = list(value)
    elif callable(value) and not hasattr(value, "__dict__"):
        return
    if not isinstance(value, torch.nn.Module):
        inner += list(getattr(value, "__dict__", {}).values())
    for one in inner:
        _collect(one, found, seen, depth - 1)


# Attributes of every module, which the walk over modules has.
_OF_MODULES = ("_parameters", "_buffers", "_modules")


def copied(value: Any, make: "Callable[[torch.Tensor], torch.Tensor]") -> Any:
    """Return a deep copy in which `make` has replaced each tensor; what was one tensor is one again.

    No data of a tensor is read. Raises what objects raise that cannot be copied.
    """
    memo: "Dict[int, Any]" = {}
    for tensor in tensors(value):
        memo[id(tensor)] = make(tensor)
    return copy.deepcopy(value, memo)


def like(tensor: "torch.Tensor", device: str) -> "torch.Tensor":
    """Return a tensor with the sizes, the type and the kind (parameter or not) of another one, and none of its data."""
    import torch

    made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=device)
    if isinstance(tensor, torch.nn.Parameter):
        return torch.nn.Parameter(made, tensor.requires_grad)
    return made.requires_grad_() if tensor.requires_grad and tensor.is_leaf else made


def set_device(model: "torch.nn.Module", device: str) -> None:
    """Tell a copy where it is, as far as it has noted it: Lightning's modules do."""
    import torch

    for part in model.modules():
        if isinstance(vars(part).get("_device"), torch.device):
            part._device = torch.device(device)  # type: ignore[assignment]


@contextlib.contextmanager
def rng_kept() -> Iterator[None]:
    """Leave the states of the random numbers of the CPU as they are: those of PyTorch, Python and NumPy."""
    import torch

    states = torch.get_rng_state(), random.getstate()
    numpy: Any = sys.modules.get("numpy")
    of_numpy = numpy.random.get_state() if numpy is not None else None
    try:
        yield
    finally:
        torch.set_rng_state(states[0])
        random.setstate(states[1])
        if numpy is not None:
            numpy.random.set_state(of_numpy)
