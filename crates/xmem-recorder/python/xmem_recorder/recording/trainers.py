"""Trainers that evaluate and save after a number of steps: in the rest of a script they do so once, early."""

from .. import imports
from ..patching import replace
from . import expected, loaders, parts, rest, run

# Steps of the rest after which it is done.
EARLY = 10


class _Trainers:
    """What was asked for."""

    def __init__(self):
        self.evaluation = False
        self.saving = False


_trainers = _Trainers()


def install():
    """Watches for the Trainer of transformers."""
    if run.goes_on():
        imports.watch("transformers.trainer_callback", _watch)


def _watch(module):
    replace(module.DefaultFlowCallback, "on_step_end", _evaluating_early)


def _evaluating_early(original):
    def on_step_end(self, args, state, control, **kwargs):
        result = original(self, args, state, control, **kwargs)
        _expect(args)
        if not loaders.is_behind_iterations():
            return result
        _trainers.evaluation |= control.should_evaluate
        _trainers.saving |= control.should_save
        if rest.is_running() and rest.steps() < EARLY:
            return result
        if not _trainers.evaluation and _is_by_steps(args, "eval_strategy", "evaluation_strategy"):
            _trainers.evaluation = control.should_evaluate = True
        if not _trainers.saving and _is_by_steps(args, "save_strategy"):
            _trainers.saving = control.should_save = True
        return result

    return on_step_end


def _expect(args):
    """Tells what the Trainer will do, which is not in the source of the script."""
    for part, *names in (
        (parts.EVALUATION, "eval_strategy", "evaluation_strategy"),
        (parts.SAVING, "save_strategy"),
    ):
        strategy = _strategy(args, *names)
        if strategy not in (None, "no"):
            expected.add(part, f"TrainingArguments.{names[0]}")


def _is_by_steps(args, *names):
    return _strategy(args, *names) == "steps"


def _strategy(args, *names):
    strategy = next((getattr(args, name) for name in names if hasattr(args, name)), None)
    return getattr(strategy, "value", strategy)
