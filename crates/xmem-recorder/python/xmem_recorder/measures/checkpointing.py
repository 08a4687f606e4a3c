"""The activations of repeated blocks are not kept for the backward pass, but computed again there.

Costs at most the time of a second forward pass of the blocks, about a third more per step. Hugging Face models do not
fill their caches of keys and values meanwhile, which may change the last bit of a product.
"""

import contextlib
import functools
import importlib
import types

from .blocks import classes_of_blocks
from .common import OncePerModule, name_of

NAME = "checkpointing"
TITLE = "Activation checkpointing"
CHANGES = "nothing"
NEEDS = ""
OPTION = "1"
CODE = "x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)"


def install(torch, option, report):
    """Finds the blocks of each module at its first training forward."""
    importlib.import_module("torch.utils.checkpoint")

    _Checkpointing(torch, max(1, int(option)), report)


class _Checkpointing:
    """Counts the blocks of all modules that are trained."""

    def __init__(self, torch, every, report):
        self.torch = torch
        self.every = every
        self.report = report
        self.applied = {}
        self.reason = ""
        OncePerModule(torch, self._apply, self._end)

    def _apply(self, root):
        torch = self.torch
        if any(_is_checkpointed(module) for module in root.modules()):
            self.reason = "activations are checkpointed already"
            return
        classes = classes_of_blocks(torch, [root])
        if not classes:
            self.reason = self.reason or f"no class of blocks repeats in {name_of(root)}"
            return
        _checkpoint_without_cache(root)
        is_done = self.every == 1 and _checkpoint_by_transformers(torch, root, sum(classes, []))
        for blocks in classes:
            chosen = blocks[:: self.every]
            if not is_done:
                for block in chosen:
                    _checkpoint_forward(torch, block)
            name = type(blocks[0]).__name__
            done, total = self.applied.get(name, (0, 0))
            self.applied[name] = (done + len(chosen), total + len(blocks))
        text = ", ".join(f"{done} of {total} {name}" for name, (done, total) in self.applied.items())
        self.report(sum(done for done, _ in self.applied.values()), text)

    def _end(self):
        if not self.applied and self.reason:
            self.report(0, self.reason)


def _is_checkpointed(module):
    """Returns whether the script has switched on checkpointing, in transformers, diffusers, timm or by a wrapper."""
    flags = ("gradient_checkpointing", "grad_checkpointing")
    return type(module).__name__ == "CheckpointWrapper" or any(getattr(module, flag, None) is True for flag in flags)


def _checkpoint_without_cache(root):
    """Switches off the caches of keys and values of Hugging Face models: computing a block again would extend them."""
    for module in root.modules():
        config = getattr(module, "config", None)
        if getattr(config, "use_cache", None) is True:
            config.use_cache = False


def _checkpoint_by_transformers(torch, root, blocks):
    """Uses the switch of a Hugging Face model that contains the blocks, if there is one; returns whether it did."""
    if any(_norms_with_statistics(torch, block) for block in blocks):
        return False
    options = {"use_reentrant": False}
    for module in root.modules():
        if not getattr(module, "supports_gradient_checkpointing", False) or not _contains(module, blocks):
            continue
        try:
            if hasattr(module, "activation_checkpointing_enable"):
                module.activation_checkpointing_enable(activation_checkpointing_kwargs=options)
            else:
                module.gradient_checkpointing_enable(gradient_checkpointing_kwargs=options)
        except (AttributeError, TypeError, ValueError):
            return False
        return True
    return False


def _contains(module, blocks):
    modules = {id(inner) for inner in module.modules()}
    return all(id(block) in modules for block in blocks)


def _checkpoint_forward(torch, block):
    """Replaces the forward of one block: in its class, for instances that have a mark.

    A method of the instance would be pickled with the module, and `torch.load` refuses it. Where the instance has one of
    its own (accelerate's hooks), that one is replaced.
    """
    own = vars(block).get("forward")
    if own is not None:
        block.forward = types.MethodType(_checkpointing_forward(torch, type(block).forward, own), block)
        return
    kind = type(block)
    if not getattr(kind.forward, "checkpoints", False):
        kind.forward = _checkpointing_forward(torch, kind.forward, None)
    block.is_checkpointed = True


def _checkpointing_forward(torch, plain, own):
    """A forward that checkpoints; `own` is that of the instance, if it has one."""

    @functools.wraps(plain)
    def forward(self, *args, **kwargs):
        call = own or types.MethodType(plain, self)
        is_chosen = own is not None or vars(self).get("is_checkpointed", False)
        if not (is_chosen and self.training and torch.is_grad_enabled()):
            return call(*args, **kwargs)
        norms = _norms_with_statistics(torch, self)
        if norms:
            call = _with_one_update(call, norms)
        tensors = [] if _has_tensor(torch, args) else [v for v in kwargs.values() if isinstance(v, torch.Tensor)][:1]
        kwargs = _without_key_value_cache(type(self).__module__, kwargs)
        if not tensors:
            return torch.utils.checkpoint.checkpoint(call, *args, use_reentrant=False, **kwargs)
        # Only the devices of positional tensors have their generators of random numbers restored
        # (torch/utils/checkpoint.py, `get_device_states`).
        return torch.utils.checkpoint.checkpoint(
            lambda _, *args, **kwargs: call(*args, **kwargs), *tensors, *args, use_reentrant=False, **kwargs
        )

    forward.checkpoints = True
    return forward


def _has_tensor(torch, values):
    return any(isinstance(value, torch.Tensor) for value in values)


def _without_key_value_cache(module_name, kwargs):
    """The arguments of a layer of transformers without the cache, as its `GradientCheckpointingLayer` does."""
    if not module_name.startswith("transformers."):
        return kwargs
    kwargs = dict(kwargs)
    for name in ("past_key_values", "past_key_value", "layer_past"):
        if kwargs.get(name) is not None:
            kwargs[name] = None
    if kwargs.get("use_cache"):
        kwargs["use_cache"] = False
    return kwargs


def _norms_with_statistics(torch, module):
    """The batch norms that update running statistics."""
    kind = torch.nn.modules.batchnorm._NormBase
    return [
        norm for norm in module.modules() if isinstance(norm, kind) and norm.training and norm.track_running_stats
    ]


def _with_one_update(call, norms):
    """The call, of which only the first run, that of the forward pass, updates the running statistics."""
    runs = []

    def run(*args, **kwargs):
        if not runs:
            runs.append(True)
            return call(*args, **kwargs)
        with _statistics_kept(norms):
            return call(*args, **kwargs)

    return run


@contextlib.contextmanager
def _statistics_kept(norms):
    """Gives batch norms copies of their buffers to update.

    Without any (`track_running_stats=False`), checkpoint would see other tensors being saved than in the forward pass.
    """
    buffers = [(norm._buffers, dict(norm._buffers)) for norm in norms]
    for of_norm, _ in buffers:
        for name, buffer in of_norm.items():
            if buffer is not None:
                of_norm[name] = buffer.clone()
    try:
        yield
    finally:
        for of_norm, kept in buffers:
            of_norm.update(kept)
