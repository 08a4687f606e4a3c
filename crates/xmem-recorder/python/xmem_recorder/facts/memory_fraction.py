"""The share of a device's memory that the script allows PyTorch (`torch.cuda.set_per_process_memory_fraction`)."""

from ..patching import replace

_value = None


def value():
    """The share; None where the script has set none."""
    return _value


def set_value(fraction, device=None):
    """Notes the share. As PyTorch's function (torch/cuda/memory.py, `set_per_process_memory_fraction`), it accepts no
    other values."""
    global _value
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    _value = fraction


def watch(torch):
    """Wraps PyTorch's own function, on a virtual GPU."""

    def watched(original):
        def set_memory_fraction(fraction, device=None):
            original(fraction, device)
            set_value(fraction)

        return set_memory_fraction

    name = "set_per_process_memory_fraction"
    replace(torch.cuda.memory, name, watched)
    setattr(torch.cuda, name, getattr(torch.cuda.memory, name))
