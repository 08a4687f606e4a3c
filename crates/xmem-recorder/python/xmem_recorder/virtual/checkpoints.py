"""Checkpoints that a script saves while nothing is computed: large tensors get their place in the file, and nothing
is written there.

A virtual GPU has no values, so that the file would hold zeros: it is as long as without the recorder, can be loaded
again, and takes next to no time and disk (a sparse file). Only on a virtual GPU, and only where what is written is
kept out of the files of the user.
"""

import contextlib
import ctypes
import json
import os
import threading

from .. import imports, session
from ..patching import replace

# Bytes from which on a tensor counts as large.
LARGE = 1 << 20

_torch = None
_target = threading.local()


def install(torch):
    """Wraps what saves tensors."""
    global _torch
    if not session.settings().get("offline"):
        return
    _torch = torch
    if hasattr(torch._C.PyTorchFileWriter, "write_record_metadata"):
        replace(torch.UntypedStorage, "cpu", _remember_copies)
        replace(torch.serialization, "_open_zipfile_writer", _open_writer)
        replace(torch.serialization, "_save", _save)
    imports.watch("safetensors.torch", _safetensors_imported)


def _remember_copies(original):
    def cpu(self):
        result = original(self)
        if self.device.type == "cuda":
            with contextlib.suppress(AttributeError):
                result._xmem_of_gpu = True
        return result

    return cpu


def _open_writer(original):
    """Notes whether the file can be sought: a member of an archive that is written cannot."""

    def open_writer(target):
        seekable = getattr(target, "seekable", None)
        _target.is_seekable = isinstance(target, (str, os.PathLike)) or seekable is not None and seekable()
        return original(target)

    return open_writer


def _save(original):
    def save(obj, zip_file, *args, **kwargs):
        if getattr(_target, "is_seekable", False):
            zip_file = _Writer(zip_file)
        return original(obj, zip_file, *args, **kwargs)

    return save


class _Writer:
    """A `PyTorchFileWriter` that leaves out the content of large storages whose values do not exist."""

    def __init__(self, writer):
        self._writer = writer

    def __getattr__(self, name):
        return getattr(self._writer, name)

    def write_record(self, name, data, size):
        if size >= LARGE and isinstance(data, _torch.UntypedStorage) and _is_without_values(data):
            return self._writer.write_record_metadata(name, size)
        return self._writer.write_record(name, data, size)


def _is_without_values(storage):
    """Returns whether a storage is a copy from the GPU, or holds only zeros, as copies of such copies do."""
    return getattr(storage, "_xmem_of_gpu", False) or _is_zero(storage.data_ptr(), storage.nbytes())


def _is_zero(address, size):
    """Returns whether memory of the host holds only zeros: it is equal to itself one byte further."""
    if address == 0 or size < 2:
        return False
    first = ctypes.c_ubyte.from_address(address).value
    compare = ctypes.CDLL(None).memcmp
    compare.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
    return first == 0 and compare(address, address + 1, size - 1) == 0


def _safetensors_imported(module):
    replace(module, "save_file", lambda original: _save_file(module, original))


def _save_file(module, original):
    """Writes the format of safetensors: the size of the header in eight bytes, the header in JSON, the data."""
    names = {dtype: name for name, dtype in getattr(module, "_TYPES", {}).items()}

    def save_file(tensors, filename, metadata=None):
        if not _can_be_left_out(tensors, names):
            return original(tensors, filename, metadata)
        if hasattr(module, "_evaluate_tensors_for_save"):
            module._evaluate_tensors_for_save(tensors)
        header = {} if metadata is None else {"__metadata__": metadata}
        end = 0
        order = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
        for name in order:
            tensor = tensors[name]
            begin, end = end, end + tensor.nbytes
            header[name] = {
                "dtype": names[tensor.dtype],
                "shape": list(tensor.shape),
                "data_offsets": [begin, end],
            }
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        with open(filename, "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            start = file.tell()
            for name in order:
                if tensors[name].nbytes < LARGE:
                    file.seek(start + header[name]["data_offsets"][0])
                    file.write(_content(tensors[name]))
            file.truncate(start + end)
        return None

    return save_file


def _content(tensor):
    tensor = tensor.detach().cpu()
    return ctypes.string_at(tensor.data_ptr(), tensor.nbytes) if tensor.nbytes else b""


def _can_be_left_out(tensors, names):
    """Returns whether these are tensors of which the large ones are all on the GPU."""
    if not isinstance(tensors, dict) or not all(type(name) is str for name in tensors):
        return False
    large = 0
    for tensor in tensors.values():
        if not isinstance(tensor, _torch.Tensor) or tensor.dtype not in names or not tensor.is_contiguous():
            return False
        if tensor.nbytes >= LARGE:
            large += 1
            if not tensor.is_cuda:
                return False
    return large > 0
