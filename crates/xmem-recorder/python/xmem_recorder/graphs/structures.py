"""Tensors inside arguments and results: lists, dictionaries, data classes and other plain objects."""

import copy
import dataclasses

# Levels of objects inside each other that are searched.
MAX_DEPTH = 8


def change(torch, value, function, kind=None, depth=0):
    """A copy of a value with `function(tensor)` in the place of each tensor, or of each object of another kind; the value
    itself where it holds none."""
    kind = kind or torch.Tensor
    if isinstance(value, kind):
        return function(value)
    if (
        depth > MAX_DEPTH
        or value is None
        or isinstance(value, (str, bytes, int, float, complex, type, torch.nn.Module))
    ):
        return value

    def inner(part):
        return change(torch, part, function, kind, depth + 1)

    if isinstance(value, slice):
        return slice(inner(value.start), inner(value.stop), inner(value.step))
    if isinstance(value, tuple):
        parts = [inner(part) for part in value]
        if _same(parts, value):
            return value
        return type(value)(*parts) if hasattr(value, "_fields") else _tuple_like(value, parts)
    if isinstance(value, list):
        parts = [inner(part) for part in value]
        return value if _same(parts, value) and type(value) is not list else parts
    if isinstance(value, dict):
        parts = {key: inner(part) for key, part in value.items()}
        if type(value) is dict:
            return parts
        return value if _same(parts.values(), value.values()) else _mapping_like(value, parts)
    return _change_attributes(value, inner)


def _same(new, old):
    return all(a is b for a, b in zip(new, old))


def _tuple_like(value, parts):
    try:
        return type(value)(parts)
    except TypeError:
        return tuple(parts)


def _mapping_like(value, parts):
    try:
        result = copy.copy(value)
        for key, part in parts.items():
            result[key] = part
        return result
    except Exception:
        return parts


def _change_attributes(value, inner):
    """A shallow copy of an object whose attributes hold tensors."""
    attributes = getattr(value, "__dict__", None)
    if not isinstance(attributes, dict) or callable(value):
        return value
    try:
        parts = {key: inner(part) for key, part in attributes.items()}
    except Exception:
        return value
    if _same(parts.values(), attributes.values()):
        return value
    try:
        result = copy.copy(value)
        for key, part in parts.items():
            if dataclasses.is_dataclass(result):
                object.__setattr__(result, key, part)
            else:
                result.__dict__[key] = part
        return result
    except Exception:
        return value


def tensors(torch, value):
    """The tensors of a value, in their order."""
    found = []

    def keep(tensor):
        found.append(tensor)
        return tensor

    change(torch, value, keep)
    return found
