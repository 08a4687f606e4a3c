"""Values as JSON can say them in a trace: without escapes."""

import enum
import numbers

# Kineto refuses backslashes (libkineto, `sanitizeStrForJSON`), so that no character can be escaped.
_ESCAPED = {ord('"'): "'", ord("\\"): "/", **{code: " " for code in [*range(32), 127]}}

# Types of which the text of a value is short.
_SHORT = {"torch.device", "torch.dtype", "torch.layout", "torch.memory_format"}


def plain(value):
    """A value as JSON can say it without escapes. It is never computed: the text of a tensor on a GPU would allocate there."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8").translate(_ESCAPED)
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, dict):
        return {plain(str(key)): plain(item) for key, item in value.items()}
    if isinstance(value, enum.Enum):
        return plain(str(value))
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        value = float(value)
        return value if value == value and abs(value) != float("inf") else str(value)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if _is_tensor(value):
        return plain(value.item()) if _is_number(value) else _described(value)
    # The text of other objects may contain that of tensors.
    kind = value if isinstance(value, type) else type(value)
    name = f"{kind.__module__}.{kind.__qualname__}"
    return plain(str(value) if name in _SHORT else name)


def _is_tensor(value):
    return all(hasattr(value, name) for name in ("numel", "device", "dtype", "shape"))


def _is_number(tensor):
    return tensor.numel() == 1 and tensor.device.type == "cpu"


def _described(tensor):
    shape = "x".join(map(str, tensor.shape)) or "scalar"
    return plain(f"tensor of {tensor.dtype}, {shape}, on {tensor.device}")
