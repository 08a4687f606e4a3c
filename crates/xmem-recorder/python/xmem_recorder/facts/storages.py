"""Tensors and their memory, as the trace's events name them."""

from ..cpu import places


def bytes_of(tensor):
    """The bytes of a tensor, of a DTensor those of its part on this process."""
    return places.local(tensor).numel() * tensor.element_size()


def storage(tensor):
    """The memory of a tensor, as in the trace's events; None for a tensor without plain memory."""
    try:
        tensor = places.local(tensor)
        memory = tensor.untyped_storage()
        offset = tensor.storage_offset() * tensor.element_size()
        return {"address": hex(memory.data_ptr()), "bytes": memory.nbytes(), "offset": offset}
    except Exception:
        return None


def dtype_name(dtype):
    """The name of a dtype without its module; None for None."""
    return None if dtype is None else str(dtype).replace("torch.", "")


def class_name(thing):
    """The class of an object, with its module."""
    kind = type(thing)
    return f"{kind.__module__}.{kind.__qualname__}"
