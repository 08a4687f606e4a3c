"""Assumptions about values that a virtual GPU does not compute and that decide sizes.

Each is a share: `nonzero`, the share of elements that are not zero; `unique`, the share of elements that are
distinct; `routing`, the share of rows whose largest elements (`topk`, `argmax`) are in the same places, as with
experts that all tokens go to. The other rows are spread evenly.
"""

import functools
import threading

from .. import session
from ..patching import replace

DEFAULTS = {"nonzero": 1.0, "routing": 0.0, "unique": 1.0}

_used = {}
_text = threading.local()


def install(torch):
    """Leaves out the sizes that only a text of a tensor depends on: `print` of a tensor of more than one element counts
    those that are not zero (torch/_tensor_str.py, `_Formatter`), of at most 1000, and lets go of them."""
    replace(torch._tensor_str, "_str", _text_of_tensor)
    replace(torch.optim.LBFGS, "step", _step_of_lbfgs)


def _step_of_lbfgs(original):
    """The number of evaluations, and the length of the history, follow from gradients."""

    @functools.wraps(original)
    def step(*args, **kwargs):
        use("torch.optim.LBFGS", None)
        return original(*args, **kwargs)

    return step


def _text_of_tensor(original):
    @functools.wraps(original)
    def text(*args, **kwargs):
        outermost = not getattr(_text, "is_made", False)
        _text.is_made = True
        try:
            return original(*args, **kwargs)
        finally:
            if outermost:
                _text.is_made = False

    return text


def share(name):
    """The assumed share."""
    return float(session.settings().get("assume", {}).get(name, DEFAULTS[name]))


def is_given(name):
    """Returns whether the user stated the share."""
    return name in session.settings().get("assume", {})


def use(operator, name, other_share=None):
    """Notes that the size of an operator's output follows from an assumption, with its share or another one; None if there is
    none for it."""
    if getattr(_text, "is_made", False):
        return
    key = operator, name, other_share
    _used[key] = _used.get(key, 0) + 1


def facts():
    """Sizes that follow from assumptions: the operator, the assumption, its share, whether the user bounded it."""
    bounded = session.settings().get("bounded", ())
    return [
        {
            "operator": operator,
            "assumption": name,
            "share": other_share if name is None or other_share is not None else share(name),
            "bounded": name in bounded,
            "times": times,
        }
        for (operator, name, other_share), times in _used.items()
    ]
