"""Weights from files, where their values do not matter: on a virtual GPU.

Files are mapped, and pages of a mapped file that nobody reads take no memory. Safetensors maps by itself, except
for a device of CUDA; checkpoints of `torch.save` are mapped on request. Large weights are not converted
(`virtual.host_memory`), which would read them.
"""

import contextlib
import functools
import mmap
import os

from .. import engine, imports
from ..patching import replace
from ..virtual import host_memory
from . import missing

# Bytes from which on a checkpoint is mapped: small ones are read as they are.
LARGE_FILE = 1 << 24

_mapped_files = set()


def watch():
    """Waits for the package that reads weights by itself; torch is not imported yet."""
    imports.watch("safetensors", _safetensors_imported)


def install(torch):
    """Maps what `torch.load` reads; on a virtual GPU."""
    replace(torch.UntypedStorage, "from_file", _from_file)
    replace(torch, "load", lambda original: _load(torch, original))
    replace(torch, "save", _save)


# ---------------------------------------------------------------------------------------------
# torch
# ---------------------------------------------------------------------------------------------


def _from_file(original):
    def from_file(filename, shared=False, nbytes=0):
        if shared:
            return original(filename, shared, nbytes)
        try:
            storage = original(filename, shared, nbytes)
        except RuntimeError:
            storage = _map(filename, nbytes)
            if storage is None:
                raise
        host_memory.is_of_file(storage)
        return storage

    return from_file


def _map(filename, size):
    """Maps a file that is larger than the host's memory: Linux refuses private memory of that size, unless
    it is not reserved (mmap(2), MAP_NORESERVE); None if that fails, too."""
    import torch

    try:
        with open(filename, "rb") as file:
            flags = mmap.MAP_PRIVATE | getattr(mmap, "MAP_NORESERVE", 0x4000)
            mapped = mmap.mmap(file.fileno(), size, flags=flags, prot=mmap.PROT_READ | mmap.PROT_WRITE)
        return torch.frombuffer(mapped, dtype=torch.uint8).untyped_storage()
    except (OSError, ValueError):
        return None


def _load(torch, original):
    def load(f, *args, **kwargs):
        if "mmap" not in kwargs and _can_be_mapped(torch, f):
            kwargs["mmap"] = True
            _mapped_files.add(_identity(f))
        return original(f, *args, **kwargs)

    return load


def _can_be_mapped(torch, path):
    """Returns whether this is the path of a large checkpoint in the format of torch 1.6 and later."""
    if not isinstance(path, (str, os.PathLike)) or not hasattr(torch.serialization, "get_default_mmap_options"):
        return False
    try:
        if os.path.getsize(path) < LARGE_FILE:
            return False
        with open(path, "rb") as file:
            # TorchScript has this format, too, and cannot be mapped.
            return torch.serialization._is_zipfile(file) and b"constants.pkl" not in _end(file)
    except OSError:
        return False


def _end(file):
    """The end of a file: the list of a zip archive's members."""
    file.seek(max(os.fstat(file.fileno()).st_size - (1 << 20), 0))
    return file.read()


def _identity(path):
    status = os.stat(path)
    return status.st_dev, status.st_ino


def _save(original):
    def save(obj, f, *args, **kwargs):
        if isinstance(f, (str, os.PathLike)):
            _keep_mapped(f)
        return original(obj, f, *args, **kwargs)

    return save


def _keep_mapped(path):
    """Removes the name of a mapped file that is about to be written: its content stays for those who mapped it."""
    with contextlib.suppress(OSError):
        if _identity(path) in _mapped_files:
            os.unlink(os.path.realpath(path))


# ---------------------------------------------------------------------------------------------
# safetensors
# ---------------------------------------------------------------------------------------------


def _safetensors_imported(safetensors):
    safetensors.safe_open = _opening(safetensors.safe_open)


def _opening(original):
    """A class in the place of safetensors' own, which is a type in annotations."""

    class safe_open:
        """Opens a file; weights for a device of CUDA are mapped and copied, without a copy in pinned memory."""

        def __new__(cls, filename, framework, device="cpu", **options):
            if missing.are_absent():
                # Only then it is needed.
                from . import standins

                filename = standins.file(filename)
            if not engine.is_virtual() or framework not in ("pt", "torch", "pytorch") or not _is_cuda(device):
                return original(filename, framework, device=device, **options)
            self = super().__new__(cls)
            self._opened = original(filename, framework, device="cpu")
            self._device = f"cuda:{device}" if isinstance(device, int) else device
            return self

        def __enter__(self):
            self._opened.__enter__()
            return self

        def __exit__(self, *exception):
            return self._opened.__exit__(*exception)

        def __getattr__(self, name):
            return getattr(self._opened, name)

        def get_tensor(self, name):
            return self._opened.get_tensor(name).to(self._device)

        def get_tensors(self):
            return {name: tensor.to(self._device) for name, tensor in self._opened.get_tensors().items()}

        def get_slice(self, name):
            return _Slice(self._opened.get_slice(name), self._device)

    return functools.update_wrapper(safe_open, original, updated=())


class _Slice:
    """A tensor of a file, of which a part is read."""

    def __init__(self, inner, device):
        self._inner = inner
        self._device = device

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def __getitem__(self, at):
        return self._inner[at].to(self._device)


def _is_cuda(device):
    return isinstance(device, int) or str(device).startswith("cuda")
