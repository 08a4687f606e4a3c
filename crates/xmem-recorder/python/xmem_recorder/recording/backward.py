"""Backward passes of the script, which are counted where no optimizer makes a step."""

from ..patching import replace
from . import calls, end, iterations, passes, run, stepping, steps

_torch = None


def install(torch):
    """Wraps `torch.autograd.backward`."""
    global _torch
    _torch = torch
    replace(torch.autograd, "backward", _counted_backward)


def _counted_backward(original):
    def backward(*args, **kwargs):
        counts = run.is_recording() and run.on_thread()
        counts = counts and not passes.inside_backward(_torch)
        if counts and not calls.are_counted():
            # No module is called that would show where the next iteration begins.
            end.finish_if_requested()
            if not steps.are_counted():
                passes.count_without_steps(0)
        if not counts:
            return original(*args, **kwargs)
        made = steps.total()
        passes.begin_backward()
        try:
            result = original(*args, **kwargs)
        finally:
            passes.end_backward()
        if not iterations.backwards() and not steps.are_counted():
            # Forward calls are no iterations of their own.
            iterations.restart()
        iterations.add_backward()
        if steps.total() > made:
            stepping.count_steps()
        return result

    return backward
