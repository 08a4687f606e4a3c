"""The Python calls that the profiler sees on a virtual GPU: those that xmem-analyzer reads.

The lines of allocations come from the allocator's own history. Of the calls, the analyzer reads those of modules, what
makes modules and optimizers, steps and `zero_grad`, and functions that are not of torch or of Python's own library, which
name a line (crates/xmem-analyzer/src/python.rs).
"""

import os
import sys
import sysconfig

# Functions that are read wherever they are.
ANYWHERE = ("__init__", "step", "zero_grad")
# Files of torch of which all functions are read, or those named.
OF_TORCH = {
    os.path.join("nn", "modules", "module.py"): (
        "__setattr__",
        "_apply",
        "add_module",
        "register_buffer",
        "register_module",
        "register_parameter",
    ),
    os.path.join("nn", "init.py"): None,
    "serialization.py": None,
}
# Folders of torch of which all functions are read.
FOLDERS = (os.path.join("optim", ""),)
# Those of the recorder's files in whose functions tensors are made (crates/xmem-analyzer/src/integrity/memory.rs).
OWN = "torch/xmem_recorder/"
OF_OWN = OWN + "weights/"
# Libraries that allocate no memory of a GPU.
OTHERS = ("numpy",)


def reader(torch):
    """Returns the function that tells whether calls of a code object are read."""
    folder = os.path.join(os.path.dirname(torch.__file__), "")
    standard = os.path.join(sysconfig.get_path("stdlib"), "")
    packages = tuple({os.path.join(path, "") for path in sys.path if path.endswith(("site-packages", "dist-packages"))})
    others = tuple(os.path.join(path, name, "") for path in packages for name in OTHERS)
    # torch's tracer recognizes calls of modules by this code.
    of_modules = torch.nn.Module.__call__.__code__

    def is_read(code):
        try:
            name, path = code.co_name, code.co_filename
            if code is of_modules or name in ANYWHERE and not path.startswith(OWN):
                return 1
            if path.startswith(OWN):
                return path.startswith(OF_OWN)
            if path.startswith(folder):
                inside = path[len(folder) :]
                named = OF_TORCH.get(inside, ())
                return named is None or name in named or inside.startswith(FOLDERS)
            if path.startswith(standard):
                return path.startswith(packages)
            return not path.startswith(("<frozen ", *others))
        except Exception:
            return 1

    return is_read
