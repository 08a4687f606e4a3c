"""What the source of the script says that it will do, beside its first steps: evaluate, save, generate, and train parameters
that are frozen at first.

The source is that of the script and of the modules which it imported from its own folders: those of installed packages do
many things that a script never asks for.
"""

import ast
import os
import site
import sys
import sysconfig
import time
import weakref

from .. import session
from ..patching import replace
from . import calls, parts, sources

THAWING = "thawing"

# Bounds for the source that is read.
MAX_FILES = 200
# Seconds for which an answer holds.
FRESH = 1

# Methods and functions that are called, and methods that are defined, by what they do.
CALLS = {
    "evaluate": parts.EVALUATION,
    "generate": parts.GENERATION,
    "save_checkpoint": parts.SAVING,
    "save_model": parts.SAVING,
    "save_pretrained": parts.SAVING,
    "save_state": parts.SAVING,
}
DEFINITIONS = {"validation_step": parts.EVALUATION}


class _Expected:
    """What was found."""

    def __init__(self):
        # By what the script will do: the lines that do it.
        self.places = {}
        # By file and line: the module that was switched there to evaluation.
        self.switched = {}
        # The names of modules that were looked at, and the number of files that were read.
        self.looked_at = set()
        self.files = 0
        # The last answer, and its time.
        self.unseen = []
        self.asked = None


_expected = _Expected()


class _Place:
    """A statement that does something: its file, its first and last line."""

    def __init__(self, file, node):
        self.file = file
        self.first = node.lineno
        self.last = node.end_lineno or node.lineno

    def __str__(self):
        return f"{self.file}({self.first})"

    def switches_another(self):
        """Returns whether it has switched a module to evaluation that is not trained, such as a teacher, or that is gone."""
        found = [_expected.switched.get((self.file, line)) for line in range(self.first, self.last + 1)]
        modules = [known() for known in found if known is not None]
        return bool(modules) and not any(module is not None and parts.has_trained_parameters(module) for module in modules)


def install(torch):
    """Notes where modules are switched to evaluation."""
    replace(torch.nn.Module, "eval", _switching)


def _switching(original):
    def switch(self):
        caller = sys._getframe(1)
        _expected.switched[os.path.basename(caller.f_code.co_filename), caller.f_lineno] = weakref.ref(self)
        return original(self)

    return switch


def unseen():
    """What the script will do and has not done yet: pairs of it and of the line."""
    now = time.monotonic()
    if _expected.asked is None or now - _expected.asked > FRESH:
        _expected.unseen = find_unseen()
        _expected.asked = now
    return _expected.unseen


def find_unseen():
    """The same, of this moment."""
    _read_sources()
    done = {part for part in (parts.EVALUATION, parts.SAVING, parts.GENERATION) if parts.was_seen(part)}
    if not _has_frozen_parameters():
        done.add(THAWING)
    found = {}
    for part, places in _expected.places.items():
        left = [place for place in places if part != parts.EVALUATION or not _is_of_another(place)]
        if part not in done and left:
            found[part] = str(left[0])
    return sorted(found.items())


def add(part, place):
    """Adds something that a library will do, with what of the library says so."""
    _expected.places.setdefault(part, []).append(place)


def _is_of_another(place):
    return isinstance(place, _Place) and place.switches_another()


def _has_frozen_parameters():
    parameters = (parameter for model in calls.models() for parameter in model.parameters())
    return any(not parameter.requires_grad for parameter in parameters if parameter.is_floating_point())


def _read_sources():
    """Reads the modules that were not read yet."""
    new = [name for name in list(sys.modules) if name not in _expected.looked_at]
    _expected.looked_at.update(new)
    foreign = _folders_of_packages() if new else ()
    for name in new:
        path = getattr(sys.modules.get(name), "__file__", None)
        if not isinstance(path, str) or not path.endswith(".py") or path.startswith("torch/"):
            continue
        if "site-packages" in path or any(path.startswith(folder) for folder in foreign):
            continue
        path = os.path.realpath(path)
        if not any(path.startswith(folder) for folder in foreign) and _expected.files < MAX_FILES:
            _expected.files += 1
            _read(path)


def _read(path):
    tree = sources.parse(path)
    if tree is None:
        return
    name = os.path.basename(path)
    for node in ast.walk(tree):
        does = _does(node)
        if does is not None:
            add(does, _Place(name, node))


def _does(node):
    """What a part of the source does; None if that is nothing of interest."""
    if isinstance(node, ast.FunctionDef):
        return DEFINITIONS.get(node.name)
    if isinstance(node, ast.Assign):
        thaws = any(isinstance(target, ast.Attribute) and target.attr == "requires_grad" for target in node.targets)
        return THAWING if thaws and _is_constant(node.value, True) else None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    name, arguments = node.func.attr, [*node.args, *(keyword.value for keyword in node.keywords)]
    if name == "eval" and not arguments or name == "train" and any(_is_constant(value, False) for value in arguments):
        return parts.EVALUATION
    if name == "save" and isinstance(node.func.value, ast.Name) and node.func.value.id == "torch":
        return parts.SAVING
    if name == "requires_grad_" and not any(_is_constant(value, False) for value in arguments):
        return THAWING
    return CALLS.get(name)


def _is_constant(node, value):
    return isinstance(node, ast.Constant) and node.value is value


def _folders_of_packages():
    """Folders with the modules of Python and of installed packages, and the recorder's."""
    paths = sysconfig.get_paths()
    folders = [paths.get(key) for key in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders += getattr(site, "getsitepackages", list)()
    folders.append(session.folder())
    folders = [folder for folder in folders if folder]
    return tuple({form(folder) + os.sep for folder in folders for form in (os.path.abspath, os.path.realpath)})
