"""Putting wrappers in the place of functions."""

import functools
import sys


def replace(owner, name, wrapper_of):
    """Replaces `owner.name` by `wrapper_of(original)`, if there is such a thing.

    The original may be a function, a method of a C class (which is wrapped as an attribute of its
    Python subclass `owner`) or a static method.
    """
    original = getattr(owner, name, None)
    if original is None:
        return
    setattr(owner, name, _dressed(wrapper_of(original), original))


def answer(owners, name, value):
    """Makes `name(…)` return `value`, or what `value(…)` returns if that is a function, in every
    module of `owners` that has it.

    Only what there is gets replaced: a script that asks a version of torch for what it does not
    have gets torch's own error. Each name gets a function of its own, as torch tells functions
    apart by identity (torch/_dynamo/trace_rules.py, `get_torch_obj_rule_map`).
    """
    owners = [owner for owner in owners if hasattr(owner, name)]
    if not owners:
        return
    if callable(value):

        def function(*args, **kwargs):
            return value(*args, **kwargs)

    else:

        def function(*_args, **_kwargs):
            return value

    _dressed(function, getattr(owners[0], name))
    for owner in owners:
        setattr(owner, name, function)


def _dressed(wrapper, original):
    """The wrapper with the original's name and documentation, as far as it has any."""
    try:
        functools.update_wrapper(wrapper, original)
    except (AttributeError, TypeError):
        pass
    return wrapper


def calling_module(depth=1):
    """The name of the module that called the caller; of one further up with a greater depth."""
    return sys._getframe(depth + 1).f_globals.get("__name__", "")


def asked_by_torch():
    """Whether the function that called the caller is part of torch, which must see what is true."""
    module = calling_module(2)
    return module == "torch" or module.startswith(("torch.", "xmem_recorder"))
