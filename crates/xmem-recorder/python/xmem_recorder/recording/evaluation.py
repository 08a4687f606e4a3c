"""Evaluation before the first step of an optimizer: a sample of its forward calls is computed.

Such an evaluation may take hundreds of calls of the model, which all need the same memory. Of calls of one module
without gradients, the first few with the same inputs are computed; the others return zeros of the same sizes. On a virtual
GPU, where the allocator's own state counts, they do so while nothing is left of the results before the last ones.
"""

import weakref

from .. import engine, session

# Calls of one module with inputs of the same shapes that are computed.
MAX_COMPUTED = 4
# The same on a virtual GPU, where the allocator has all that it needs by then.
MAX_COMPUTED_ON_VIRTUAL_GPU = 8
# Different inputs of a module; calls with further ones are computed.
MAX_KINDS = 1000
# Levels of containers in inputs and outputs.
MAX_DEPTH = 4


class _Evaluation:
    """The calls of models that are evaluated before the first step."""

    def __init__(self):
        self.computed = 0
        self.left_out = 0
        # By the kind of a call: the number of computed ones, and the form of the last result in a tuple, None if it
        # cannot be made again.
        self.seen = {}
        # The tensors of the last results, and of those before, by weak references.
        self.results = []
        self.earlier = []


_evaluation = _Evaluation()


class _Unknown(Exception):
    """A value has parts that cannot be made again."""


class _Tensor:
    """The size and type of a tensor."""

    def __init__(self, tensor):
        if tensor.requires_grad or not tensor.is_contiguous() or tensor.is_complex():
            raise _Unknown
        self.shape = tuple(tensor.shape)
        self.dtype = tensor.dtype
        self.device = tensor.device


def kind(torch, module, args, kwargs):
    """The module of a call and the shapes of its inputs; None if it is not to be sampled."""
    if module.training or torch.is_grad_enabled():
        return None
    try:
        return id(module), _shapes(torch, (args, kwargs), MAX_DEPTH)
    except _Unknown:
        return None


def leave_out():
    """Counts a call that is not computed; returns the number of those."""
    _evaluation.left_out += 1
    return _evaluation.left_out


def is_known(sample):
    """Returns whether enough calls of this kind were computed."""
    count, form = _evaluation.seen.get(sample, (0, None))
    if engine.is_virtual():
        is_kept = any(result() is not None for result in _evaluation.earlier)
        return form is not None and count >= MAX_COMPUTED_ON_VIRTUAL_GPU and not is_kept
    return form is not None and count >= MAX_COMPUTED


def result_like(torch, sample):
    """A result of zeros, with the sizes of the last computed one of its kind."""
    result = _made(torch, _evaluation.seen[sample][1][0])
    _keep(torch, result)
    return result


def computed(torch, module, sample, result):
    """Keeps the sizes of a computed result."""
    if sample is None:
        return
    _evaluation.computed += 1
    _keep(torch, result)
    count, _ = _evaluation.seen.get(sample, (0, None))
    if count or len(_evaluation.seen) < MAX_KINDS:
        try:
            if any(part._forward_hooks for part in module.modules()):
                # A hook may keep something of every call.
                raise _Unknown
            _evaluation.seen[sample] = (count + 1, (_form(torch, result, MAX_DEPTH),))
        except _Unknown:
            _evaluation.seen[sample] = (count + 1, None)


def _keep(torch, result):
    """Keeps track of the tensors of a result."""
    found = result.values() if isinstance(result, dict) else result if isinstance(result, (tuple, list)) else [result]
    _evaluation.earlier = _evaluation.results
    _evaluation.results = [weakref.ref(value) for value in found if isinstance(value, torch.Tensor)]


def _shapes(torch, value, depth):
    if isinstance(value, torch.Tensor):
        return tuple(value.shape), value.dtype
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if not depth:
        raise _Unknown
    if type(value) in (tuple, list):
        return tuple(_shapes(torch, item, depth - 1) for item in value)
    if isinstance(value, dict):
        return tuple((name, _shapes(torch, item, depth - 1)) for name, item in value.items())
    raise _Unknown


def note():
    """Notes what was left out."""
    if _evaluation.left_out:
        session.note(
            f"evaluation before the first step of the optimizer: {_evaluation.computed} forward calls were computed, and "
            f"{_evaluation.left_out} like them returned zeros"
        )


def _form(torch, value, depth):
    """What is needed to make a value of the same sizes."""
    if isinstance(value, torch.Tensor):
        if type(value) is not torch.Tensor:
            raise _Unknown
        return _Tensor(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if not depth:
        raise _Unknown
    if type(value) in (tuple, list):
        return type(value)(_form(torch, item, depth - 1) for item in value)
    if type(value) is dict:
        return {name: _form(torch, item, depth - 1) for name, item in value.items()}
    if isinstance(value, dict) and type(value).__module__.startswith(("transformers.", "diffusers.")):
        # A `ModelOutput`, whose constructor takes its items.
        return type(value), {name: _form(torch, item, depth - 1) for name, item in value.items()}
    raise _Unknown


def _made(torch, form):
    if isinstance(form, _Tensor):
        device = form.device if engine.is_virtual() else None
        return torch._C._VariableFunctions.zeros(form.shape, dtype=form.dtype, device=device)
    if type(form) is tuple and len(form) == 2 and isinstance(form[0], type):
        return form[0](**{name: _made(torch, item) for name, item in form[1].items()})
    if type(form) in (tuple, list):
        return type(form)(_made(torch, item) for item in form)
    if type(form) is dict:
        return {name: _made(torch, item) for name, item in form.items()}
    return form
