"""The device that a script means."""

from .. import session
from ..ranks import place


def is_cuda(device, torch):
    """Returns whether a device as a script writes it (name, number, `torch.device`) is CUDA's."""
    if isinstance(device, bool) or device is None:
        return False
    if isinstance(device, int):
        _note_further(device)
        return True
    if isinstance(device, str):
        device = _parsed(device, torch)
    if isinstance(device, torch.device) and device.type == "cuda":
        _note_further(device.index)
        return True
    return False


def is_cpu(device, torch):
    """Returns whether a device as a script writes it is the CPU."""
    if isinstance(device, str):
        device = _parsed(device, torch)
    return isinstance(device, torch.device) and device.type == "cpu"


def _parsed(name, torch):
    try:
        return torch.device(name)
    except RuntimeError:
        return None


def _note_further(index):
    if index and index != place.device():
        session.note(
            f"cuda:{index} was requested: one GPU is recorded, with all tensors on it"
        )
