"""Packages that call the kernel without the C library, whose functions the preloaded overlay replaces: what they write
goes to a temporary file, and is copied by Python.

safetensors makes its files with the crate tempfile, which renames them by the crate rustix.
"""

import os
import shutil

from .. import imports
from ..patching import replace


def start():
    """Watches for these packages, if writes are kept by the preloaded library (xmem-overlay)."""
    if os.environ.get("XMEM_OVERLAY"):
        imports.watch("safetensors", _safetensors_imported)


def _safetensors_imported(module):
    replace(module, "serialize_file", _serialize_file)


def _serialize_file(original):
    def serialize_file(tensors, filename, *args, **kwargs):
        folder = os.path.join(os.environ.get("XMEM_OVERLAY", ""), "temporary")
        os.makedirs(folder, exist_ok=True)
        temporary = os.path.join(folder, f"{os.getpid()}-{id(tensors)}")
        try:
            result = original(tensors, temporary, *args, **kwargs)
            shutil.copyfile(temporary, filename)
        finally:
            if os.path.exists(temporary):
                os.unlink(temporary)
        return result

    return serialize_file
