"""Optimizers that the running functions of the script make behind the lines at which they are, whatever happens: a script
that trains with one, and then with another, has not seen its memory when the steps of the first repeat.
"""

import ast
import inspect
import sys

from . import lines, sources

# Functions of the stack that are looked at.
MAX_DEPTH = 100
# What decides whether, and how often, its statements run.
BRANCHES = (ast.If, ast.IfExp, ast.ExceptHandler, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)

# By file: the calls of each of its functions, by name and first line, and of the module. A call is a line and a dotted name.
_files = {}


def makes_optimizer(torch):
    """Returns whether an optimizer follows, as far as the source of the running functions says."""
    frame, depth = sys._getframe(1), 0
    while frame is not None and depth < MAX_DEPTH:
        code = frame.f_code
        if lines.is_user_file(code.co_filename) and "site-packages" not in code.co_filename:
            for line, name in _calls_of(code):
                if line > frame.f_lineno and _is_optimizer(torch, name, frame):
                    return True
        frame, depth = frame.f_back, depth + 1
    return False


def _is_optimizer(torch, name, frame):
    first, *rest = name
    value = frame.f_globals.get(first)
    for attribute in rest:
        if not inspect.ismodule(value):
            return False
        value = getattr(value, attribute, None)
    return isinstance(value, type) and issubclass(value, torch.optim.Optimizer)


def _calls_of(code):
    path = code.co_filename
    if path not in _files:
        _files[path] = _calls_by_function(sources.parse(path))
    first = None if code.co_name == "<module>" else code.co_firstlineno
    return _files[path].get((code.co_name, first), ())


def _calls_by_function(tree):
    if tree is None:
        return {}
    found = {("<module>", None): tuple(_calls_below(tree))}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            # The first line of its code is that of the first decorator.
            first = min(part.lineno for part in (node, *node.decorator_list))
            found[node.name, first] = tuple(_calls_below(node))
    return found


def _calls_below(node):
    """The calls that are made each time that the statements of a function or module run, with their dotted names."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, BRANCHES):
            continue
        if isinstance(child, ast.Call):
            name = _dotted(child.func)
            if name is not None:
                yield child.lineno, name
        yield from _calls_below(child)


def _dotted(node):
    """`torch.optim.SGD` as its three names; None for anything else."""
    names = []
    while isinstance(node, ast.Attribute):
        names.insert(0, node.attr)
        node = node.value
    return (node.id, *names) if isinstance(node, ast.Name) else None
