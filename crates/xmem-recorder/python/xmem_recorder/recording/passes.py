"""Passes without a step of an optimizer: iterations of scripts that make none."""

from .. import own_iterations, session
from . import calls, end, evaluation, iterations, rest, steps

# Forward calls per requested iteration after which optimizers without a step are disregarded.
FORWARDS_WITHOUT_STEP = 20
# Calls without gradients, in all, after which the same holds: an evaluation or the rollouts of a policy may come before
# the first step. A sample of the first is computed; where the second are slow, the time ends them, in seconds.
CALLS_WITHOUT_GRADIENTS = 1000
SECONDS_WITHOUT_GRADIENTS = 60
# The same as the first for backward passes, whose gradients the optimizer may accumulate.
BACKWARDS_WITHOUT_STEP = 200

# True while a backward pass of the recorded thread runs.
_backward_runs = False


def begin_backward():
    """Notes that a backward pass of the recorded thread begins."""
    global _backward_runs
    _backward_runs = True


def end_backward():
    """Notes its end."""
    global _backward_runs
    _backward_runs = False


def backward_runs():
    """Returns whether a backward pass of the recorded thread runs."""
    return _backward_runs


def inside_backward(torch):
    """Returns whether the engine of autograd calls on this thread."""
    task = getattr(torch._C, "_current_graph_task_id", None)
    return task is not None and task() != -1


def count_without_steps(forwards, without_gradients=0):
    """Counts the passes that have ended, at the beginning of the next one; `forwards` are the calls of the called
    module, some of them without gradients. If the script has an optimizer, they are no iterations until it is clear
    that it makes no step."""
    if own_iterations.are_marked():
        return
    wanted = session.settings()["steps"]
    if iterations.backwards():
        done, unit = iterations.backwards(), iterations.BACKWARDS
        no_step = done >= wanted * BACKWARDS_WITHOUT_STEP
    else:
        done, unit = forwards, iterations.FORWARDS
        many = wanted * FORWARDS_WITHOUT_STEP
        no_step = done - without_gradients >= many or without_gradients >= CALLS_WITHOUT_GRADIENTS
        no_step = no_step or done >= many and iterations.seconds() >= SECONDS_WITHOUT_GRADIENTS
    iterations.mark_pass(done, unit)
    if steps.optimizers():
        is_last = no_step
    else:
        is_last = done >= wanted
        iterations.advance_to(done, unit)
    if is_last:
        iterations.settle(done, unit)
        reason = "backwards" if iterations.backwards() else "forwards"
        if rest.is_wanted():
            end.go_on_or_finish(reason)
            return
        end.finish(reason)
        raise end.Finished


def leave_out():
    """Counts a call that is not computed; an optimizer that makes no step after many of them makes none."""
    end.finish_if_requested()
    if evaluation.leave_out() >= CALLS_WITHOUT_GRADIENTS:
        iterations.settle(calls.most(), iterations.FORWARDS)
        end.finish("forwards")
        raise end.Finished
