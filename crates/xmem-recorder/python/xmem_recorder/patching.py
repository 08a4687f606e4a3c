"""Replacing functions by wrappers."""

import functools
import sys


def replace(owner, name, wrapper_of):
    """Replaces `owner.name` by `wrapper_of(original)`, if it exists.

    The original may be a function, a method of a C class (which is wrapped as an attribute of its
    Python subclass `owner`) or a static method.
    """
    original = getattr(owner, name, None)
    if original is None:
        return
    setattr(owner, name, _with_metadata(wrapper_of(original), original))


def bound(signature, args, kwargs):
    """The arguments of a call with their defaults (`inspect.BoundArguments`); raises `TypeError` as the call would."""
    given = signature.bind(*args, **kwargs)
    given.apply_defaults()
    return given


def wrap_steps(torch, wrapper_of):
    """Wraps the step of every class of optimizers: `wrapper_of(step)` for the step as torch's own hook makes it."""
    optimizer = torch.optim.Optimizer
    hook = optimizer.profile_hook_step

    def profile_hook_step(function):
        wrapper = wrapper_of(hook(function))
        for name in ("__name__", "__qualname__", "__doc__", "__module__"):
            setattr(wrapper, name, getattr(function, name, None))
        wrapper.__wrapped__ = function
        return wrapper

    optimizer.profile_hook_step = staticmethod(profile_hook_step)


def replace_in_torch(name, original, wrapper):
    """Replaces `original` in every module of torch that has it under that name."""
    for module_name, module in list(sys.modules.items()):
        if module_name.startswith("torch.") and getattr(module, "__dict__", {}).get(name) is original:
            setattr(module, name, wrapper)


def replace_everywhere(owner, name, wrapper_of):
    """Replaces `owner.name`, and the same function in every module of torch that has it under that name."""
    original = getattr(owner, name)
    replace(owner, name, wrapper_of)
    replace_in_torch(name, original, getattr(owner, name))


def answer(owners, name, value):
    """Makes `name(…)` return `value`, or the result of `value(…)` if it is a function, in every module
    of `owners` that has that name.

    A name that this torch lacks is not added, so that the script gets torch's own error. Each name
    gets a function of its own, as torch distinguishes functions by identity
    (torch/_dynamo/trace_rules.py, `get_torch_obj_rule_map`).
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

    _with_metadata(function, getattr(owners[0], name))
    for owner in owners:
        setattr(owner, name, function)


def _with_metadata(wrapper, original):
    """The wrapper with the name and documentation of the original, if it has any."""
    try:
        functools.update_wrapper(wrapper, original)
    except (AttributeError, TypeError):
        pass
    return wrapper


def calling_module(depth=1):
    """The name of the module that called the caller, or `depth` calls up."""
    return sys._getframe(depth + 1).f_globals.get("__name__", "")


def called_by_torch():
    """Returns whether torch itself called the caller; it must see the real devices."""
    module = calling_module(2)
    return module == "torch" or module.startswith(("torch.", "xmem_recorder")) and not is_like_script(module)


def is_like_script(module):
    """Returns whether a module of torch sees devices as a script does: FSDP compares those of tensors with that of its mesh,
    and `save_on_cpu` moves saved tensors to the device that they came from."""
    return module.startswith("torch.distributed.fsdp.") or module == "torch.autograd.graph"
