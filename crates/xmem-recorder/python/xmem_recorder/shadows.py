"""Files of the user's that hide torch, or a module that it imports: Python looks in the script's folder
first.

They are reported to `xmem profile`; the script fails, or runs, as it does without it.
"""

import os
import sys

from . import session

# Modules that torch imports and that are not part of Python.
NEEDED = {
    "filelock",
    "fsspec",
    "jinja2",
    "mpmath",
    "networkx",
    "numpy",
    "sympy",
    "triton",
    "typing_extensions",
}


def is_pytorch(module):
    """Returns whether a module of the name `torch` is PyTorch."""
    return hasattr(module, "__version__") and hasattr(module, "_C") and hasattr(module, "nn")


def torch_found(spec):
    """Reports a file or folder that is found as `torch` and is not PyTorch."""
    if spec.origin is not None and spec.loader is not None:
        folder, name = os.path.split(spec.origin)
        # PyTorch is a package with a generated module `version`.
        if name != "__init__.py":
            _report("torch", spec.origin)
        elif not os.path.exists(os.path.join(folder, "version.py")):
            _report("torch", folder)
        return
    for folder in list(spec.submodule_search_locations or ())[:1]:
        # A folder without `__init__.py`, which Python takes only if it finds no package.
        _report("torch", folder)


def torch_failed(error):
    """Reports the error of the import of torch, and its possible causes."""
    _report_hidden(NEEDED.union(getattr(sys, "stdlib_module_names", ())))
    session.send("import_failed", text=f"{type(error).__name__}: {error}")


def torch_imported(torch):
    """Reports modules without which torch is imported and does less."""
    installed = os.path.dirname(os.path.dirname(os.path.realpath(torch.__file__)))
    if installed != _script_folder():
        _report_hidden(NEEDED)


def _script_folder():
    return os.path.realpath(sys.path[0] or os.getcwd()) if sys.path else None


def _report_hidden(names):
    """Reports modules of the script's folder that have one of these names."""
    folder = _script_folder()
    for name, module in list(sys.modules.items()):
        # Modules that are loaded when something of them is asked for are not asked.
        file = getattr(module, "__file__", None) if name in names else None
        if not isinstance(file, str):
            continue
        file = os.path.realpath(file)
        if os.path.basename(file) == "__init__.py":
            file = os.path.dirname(file)
        if os.path.dirname(file) == folder:
            _report(name, file)


def _report(module, path):
    session.send("shadowed", module=module, path=os.path.abspath(path))
