"""Steps of optimizers and of gradient scalers, which end iterations."""

from .. import own_iterations, session
from ..patching import replace, wrap_steps
from ..virtual import compilation
from . import abridged, after_steps, begin, end, iterations, loaders, parts, passes, rest, run, steps

# An optimizer without a step is waited for until another has made this many times the requested steps.
MAX_STEP_RATIO = 3
# Iterations, per requested one, from which on an attempt with less memory is no reason to begin again.
MAX_ATTEMPTS_RATIO = 20
# Steps that are recorded in full, and seconds of recording, or backward passes, from which on these are enough if the rest of
# the script follows.
ENOUGH_STEPS = 2
LONG_RECORDING = 20
MANY_BACKWARDS = 32
# Consecutive steps that a gradient scaler may skip before they count.
MAX_SKIPPED_STEPS = 10

_torch = None


def install(torch):
    """Wraps the constructor and the step of optimizers, and the step of gradient scalers."""
    global _torch
    _torch = torch
    optimizer = torch.optim.Optimizer

    def patch_step_function(original):
        def patch(self):
            begin.begin()
            steps.add_optimizer(torch, self)
            return original(self)

        return patch

    own_iterations.at_end(_end_marked)
    replace(optimizer, "_patch_step_function", patch_step_function)
    wrap_steps(torch, _stepping)
    scalers = [torch.cuda.amp.GradScaler]
    if hasattr(torch.amp, "GradScaler"):
        scalers.insert(0, torch.amp.GradScaler)
    for scaler in scalers:
        if "step" in vars(scaler):
            replace(scaler, "step", _scaled_step)


def _stepping(step):
    def stepping(self, *args, **kwargs):
        result = step(self, *args, **kwargs)
        _stepped(self)
        return result

    return stepping


def count_steps():
    """Ends the iteration in which each optimizer has made a step."""
    if own_iterations.are_marked():
        return
    wanted = session.settings()["steps"]
    counts = steps.counts()
    least, most = min(counts), max(counts)
    done = iterations.count() + 1 if abridged.has_new_optimizer() else iterations.before() + least
    iterations.advance_to(done, iterations.STEPS)
    end.finish_if_requested()
    is_long = iterations.seconds() > LONG_RECORDING or iterations.backwards() >= MANY_BACKWARDS
    if rest.is_wanted() and is_long and not compilation.began() and least >= ENOUGH_STEPS:
        wanted = min(wanted, least)
    if least >= wanted or most >= wanted * MAX_STEP_RATIO and not least:
        iterations.settle(max(done, iterations.before() + (least or most)), iterations.unit())
        end.go_on_or_finish("steps")


def _end_marked():
    """Ends an iteration that the script marks."""
    if not (run.is_recording() and run.on_thread()):
        return
    iterations.advance_to(iterations.count() + 1, iterations.MARKED)
    end.finish_if_requested()
    if iterations.count() >= session.settings()["steps"]:
        end.go_on_or_finish("steps")


def _scaled_step(original):
    def scaled_stepping(self, optimizer, *args, **kwargs):
        before = steps.count(optimizer)
        result = original(self, optimizer, *args, **kwargs)
        if steps.count(optimizer) == before:
            skipped = steps.skip()
            if skipped == MAX_SKIPPED_STEPS:
                session.note("the gradient scaler skips every step: gradients are not finite")
            if skipped >= MAX_SKIPPED_STEPS:
                _stepped(optimizer)
        else:
            steps.take()
        return result

    return scaled_stepping


def _stepped(optimizer):
    """Handles a step of an optimizer."""
    loaders.stepped()
    if rest.is_running():
        _stepped_in_rest(optimizer)
        return
    if run.is_over():
        end.raise_again()
        return
    if not run.is_recording():
        return
    # A hook of a gradient steps on the thread of the engine, which cannot end the script.
    inside_backward = passes.backward_runs() and passes.inside_backward(_torch)
    if not run.on_thread() and not inside_backward:
        session.note(
            "training runs on another thread than the one that made the model; only that one is recorded"
        )
        return
    if not steps.are_counted() and iterations.unit() != iterations.STEPS:
        # The passes before the first step were no iterations.
        iterations.restart()
    _begin_again(optimizer)
    parts.stepped()
    steps.add(optimizer)
    if not inside_backward:
        count_steps()


def _stepped_in_rest(optimizer):
    if run.on_thread():
        end.finish_if_requested()
        steps.add(optimizer)
        after_steps.stepped()


def _begin_again(optimizer):
    """Begins to count again if memory has run out since the last step: the script tries less, such as a smaller batch,
    and what it did before is no iteration of that."""
    is_early = iterations.count() <= session.settings()["steps"] * MAX_ATTEMPTS_RATIO
    if is_early and steps.has_run_out(_torch):
        steps.begin_again(_torch, optimizer)
        iterations.keep_before()
