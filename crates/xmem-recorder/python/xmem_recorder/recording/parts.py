"""The parts of a script: what it does, such as training, evaluation or saving.

A part lasts until another one begins. Where the script saves, loads or generates, what it did before goes on afterwards.
"""

from .. import imports
from ..patching import replace
from . import rest, run

SETUP = "setup"
TRAINING = "training"
EVALUATION = "evaluation"
SAVING = "saving"
LOADING = "loading"
GENERATION = "generation"
CAPTURE = "capture"


class _Parts:
    """What the script does."""

    def __init__(self):
        self.base = SETUP
        # Parts that are left again.
        self.inner = []
        self.seen = set()
        # By the id of a model: whether it has parameters that are trained.
        self.trained = {}


_parts = _Parts()
_torch = None


def install(torch):
    """Wraps what saves, loads and generates."""
    global _torch
    _torch = torch
    replace(torch, "save", _within(SAVING))
    replace(torch, "load", _within(LOADING))
    replace(torch.nn.Module, "load_state_dict", _within(LOADING))
    replace(torch.optim.Optimizer, "load_state_dict", _within(LOADING))
    graph = torch.cuda.graphs.CUDAGraph
    replace(graph, "capture_begin", lambda original: _then(original, lambda: _enter(CAPTURE)))
    replace(graph, "capture_end", lambda original: _then(original, lambda: _leave(CAPTURE)))
    imports.watch("safetensors.torch", _watch_safetensors)
    imports.watch("transformers.generation.utils", _watch_generation)


def current():
    """What the script does now."""
    return _parts.inner[-1] if _parts.inner else _parts.base


def was_seen(part):
    """Returns whether a part has begun."""
    return part in _parts.seen


def called(module):
    """Handles the call of a model."""
    evaluates = not module.training and not _torch.is_grad_enabled()
    if evaluates and _parts.base == TRAINING and not _is_trained(module):
        # A teacher, or a model of rewards.
        return
    _begin(EVALUATION if evaluates else TRAINING)


def stepped():
    """Handles a step of an optimizer."""
    _begin(TRAINING)


def has_trained_parameters(module):
    """Returns whether a module has parameters that are trained now."""
    return any(parameter.requires_grad for parameter in module.parameters())


def _is_trained(module):
    known = _parts.trained.get(id(module))
    if known is None:
        known = _parts.trained[id(module)] = has_trained_parameters(module)
    return known


def _begin(part):
    before = current()
    _parts.base = part
    if not _parts.inner:
        _changed(before, part)


def _enter(part):
    if run.on_thread():
        before = current()
        _parts.inner.append(part)
        _changed(before, part)


def _leave(part):
    if part in _parts.inner and run.on_thread():
        _parts.inner.remove(part)
        _changed(part, current())


def _changed(before, part):
    if part == before:
        return
    _parts.seen.add(part)
    if rest.is_running():
        rest.mark(part)
    else:
        run.mark(f"xmem::part {part}")


def _within(part):
    def wrapper_of(original):
        def call(*args, **kwargs):
            if part in _parts.inner or not run.on_thread():
                return original(*args, **kwargs)
            _enter(part)
            try:
                return original(*args, **kwargs)
            finally:
                _leave(part)

        return call

    return wrapper_of


def _then(original, action):
    def call(*args, **kwargs):
        result = original(*args, **kwargs)
        action()
        return result

    return call


def _watch_safetensors(module):
    for name, part in (("save_file", SAVING), ("save_model", SAVING), ("load_file", LOADING), ("load_model", LOADING)):
        replace(module, name, _within(part))


def _watch_generation(module):
    replace(module.GenerationMixin, "generate", _within(GENERATION))
