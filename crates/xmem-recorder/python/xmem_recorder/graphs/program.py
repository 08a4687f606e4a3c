"""A module that repeats what the tape holds: its inputs are the tensors that the tape did not make, its results the losses."""

import contextlib
import inspect

from ..cpu import autocast
from . import names, structures
from .tape import Ref


class NotOnTape(Exception):
    """A loss that the script made in a way that was not seen."""


class Inputs:
    """What a program needs: the inputs with their names, and the parameters with their places in the models."""

    def __init__(self):
        self.by_name = {}
        self.parameters = {}


def build(watch, entries, numbers):
    """The program of these entries, whose results are the tensors with these numbers, and its inputs."""
    torch, tape = watch.torch, watch.tape
    roots = watch.called.roots()
    inputs = _inputs(watch, entries, roots)
    slots = {number: name for name, number in inputs.by_name.items()}

    class Iteration(torch.nn.Module):
        """What the script computes in one iteration."""

        def _repeat(self, values):
            made = {number: values[name] for number, name in slots.items()}
            for number, (owner, name) in inputs.parameters.items():
                made[number] = getattr(owner, name)
            context, state = contextlib.ExitStack(), None
            with contextlib.ExitStack() as outer:
                for entry in entries:
                    wanted = (entry.autocast, entry.with_gradients)
                    if wanted != state:
                        context.close()
                        context, state = contextlib.ExitStack(), wanted
                        outer.callback(context.close)
                        _enter(torch, context, wanted)
                    _repeat_entry(torch, entry, made)
                context.close()
            results = tuple(made[number] for number in numbers)
            return results[0] if len(results) == 1 else results

    Iteration.__module__, Iteration.__qualname__ = "xmem", "Iteration"
    program = Iteration()
    for name, model in roots.items():
        program.add_module(name, model)
    for number, (owner, name) in list(inputs.parameters.items()):
        if owner is None:
            program.register_parameter(name, torch.nn.Parameter(tape.leaves[number].parameter))
            inputs.parameters[number] = (program, name)

    def forward(*args, **kwargs):
        values = dict(zip(inputs.by_name, args))
        values.update(kwargs)
        return program._repeat(values)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    forward.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in inputs.by_name])
    program.forward = forward
    return program, inputs


def _enter(torch, context, wanted):
    casts, with_gradients = wanted
    if casts is not None:
        context.enter_context(torch.autocast("cpu", wanted_dtype(torch, casts[0]), cache_enabled=casts[1]))
    if not with_gradients:
        context.enter_context(torch.no_grad())


def wanted_dtype(torch, dtype):
    """The dtype that the script asked for: the CPU computes float16 in bfloat16."""
    return torch.float16 if dtype is torch.bfloat16 and autocast.is_bfloat16() else dtype


def _repeat_entry(torch, entry, made):
    """Calls what an entry called, with the tensors of this run."""

    def filled(value):
        return structures.change(torch, value, lambda ref: made[ref.number], Ref)

    args, kwargs = filled(entry.args), filled(entry.kwargs)
    function = entry.function if entry.module is None else names.unwrapped(entry.module)
    if entry.module is None:
        args = _with_free_size(function, args)
    try:
        result = function(*args, **kwargs)
    except Exception as error:
        if entry.place is not None and not hasattr(error, "place_in_script"):
            error.place_in_script = "{}:{}".format(*entry.place)
        raise
    for number, tensor in zip(entry.outputs, structures.tensors(torch, result)):
        made[number] = tensor


def _with_free_size(function, args):
    """The first size of a view is left to torch, so that it may differ with the batch."""
    if getattr(function, "__name__", "") not in ("view", "reshape") or len(args) < 2:
        return args
    tensor, *sizes = args
    packed = len(sizes) == 1 and isinstance(sizes[0], (tuple, list))
    sizes = list(sizes[0]) if packed else sizes
    if len(sizes) < 2 or not all(isinstance(size, int) for size in sizes) or -1 in sizes:
        return args
    sizes = [-1, *sizes[1:]]
    return (tensor, tuple(sizes)) if packed else (tensor, *sizes)


def _inputs(watch, entries, roots):
    """The tensors that the entries read and do not make, by name; those of models by their places."""
    tape = watch.tape
    places = {}
    for model in roots.values():
        for part in model.modules():
            for name, value in [*part._parameters.items(), *part._buffers.items()]:
                if value is not None:
                    places.setdefault(id(value), (part, name))
    made, inputs = set(), Inputs()
    for entry in entries:
        for number in entry.inputs:
            if number in made or number in inputs.parameters or number in inputs.by_name.values():
                continue
            leaf = tape.leaves.get(number)
            if leaf is None:
                raise NotOnTape("a tensor of an earlier iteration is used in this one")
            if leaf.parameter is not None:
                place = places.get(id(leaf.parameter))
                name = names.unique("parameter", {name for _, name in inputs.parameters.values()})
                inputs.parameters[number] = place or (None, name)
                continue
            name = names.unique(names.identifier(leaf.name or _default_name(entry)), inputs.by_name)
            inputs.by_name[name] = number
        made.update(entry.outputs)
    return inputs


def _default_name(entry):
    if entry.module is None:
        return "target" if getattr(entry.function, "__name__", "") in LOSSES else "value"
    return "input"


# Functions whose second argument is what a model is to say.
LOSSES = {
    "cross_entropy",
    "nll_loss",
    "mse_loss",
    "l1_loss",
    "smooth_l1_loss",
    "huber_loss",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "kl_div",
}
