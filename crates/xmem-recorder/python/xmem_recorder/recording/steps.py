"""Steps of optimizers, and how often memory had run out before them."""

import weakref

from .. import engine


class _Steps:
    """The optimizers of the script; counts are by the id of an optimizer."""

    def __init__(self):
        # Weak references, in the order in which the optimizers were made.
        self.optimizers = []
        self.counts = {}
        # The times that memory had run out when each optimizer was made, and at the last step.
        self.failures_before = {}
        self.failures = 0
        # Consecutive steps that a gradient scaler has skipped.
        self.skipped = 0


_steps = _Steps()


def add_optimizer(torch, optimizer):
    """Adds an optimizer that is being made, once."""
    if any(known() is optimizer for known in _steps.optimizers):
        return
    _steps.optimizers.append(weakref.ref(optimizer))
    # One that no longer exists may have had the same id.
    _steps.counts.pop(id(optimizer), None)
    _steps.failures_before[id(optimizer)] = _failures(torch)


def optimizers():
    """The optimizers that still exist."""
    _steps.optimizers = [known for known in _steps.optimizers if known() is not None]
    return [known() for known in _steps.optimizers]


def count(optimizer):
    """The number of steps of an optimizer."""
    return _steps.counts.get(id(optimizer), 0)


def counts():
    """The number of steps of each optimizer that still exists; 0 without optimizers. One that makes no step, and whose
    parameters others step, is left out: that of sharpness-aware minimization is around the one that steps."""
    made = optimizers()
    stepped = [optimizer for optimizer in made if count(optimizer)]
    if stepped and len(stepped) < len(made):
        reached = set().union(*map(_parameters, stepped))
        made = [optimizer for optimizer in made if count(optimizer) or not _parameters(optimizer) <= reached]
    return [count(optimizer) for optimizer in made] or [0]


def _parameters(optimizer):
    return {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}


def total():
    """The number of steps of all optimizers, also of those that no longer exist."""
    return sum(_steps.counts.values())


def are_counted():
    """Returns whether an optimizer has made a step."""
    return bool(_steps.counts)


def add(optimizer):
    """Counts a step."""
    _steps.counts[id(optimizer)] = count(optimizer) + 1


def skip():
    """Notes that a gradient scaler has skipped a step; returns the number of those in a row."""
    _steps.skipped += 1
    return _steps.skipped


def take():
    """Notes that a gradient scaler has not skipped a step."""
    _steps.skipped = 0


def has_run_out(torch):
    """Returns whether memory has run out since the last step."""
    return _failures(torch) != _steps.failures


def begin_again(torch, optimizer):
    """Begins to count anew with a step of an optimizer. Others that the attempt before has made may still exist."""
    failures = _failures(torch)
    if _steps.failures_before.get(id(optimizer), 0) == failures:
        _steps.optimizers = [
            known for known in _steps.optimizers if _steps.failures_before.get(id(known()), 0) == failures
        ]
    _steps.failures = failures
    _steps.counts.clear()


def _failures(torch):
    """The times that a device had too little memory."""
    cuda = torch.cuda
    if not engine.is_virtual() or not cuda.is_initialized():
        return 0
    return sum(cuda.memory_stats(device).get("num_ooms", 0) for device in range(cuda.device_count()))
