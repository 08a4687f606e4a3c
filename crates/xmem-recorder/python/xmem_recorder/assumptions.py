"""Assumptions about values that a virtual GPU does not compute and that decide sizes.

Each is a share: `nonzero`, the share of elements that are not zero; `unique`, the share of elements that are
distinct; `routing`, the share of rows whose largest elements (`topk`, `argmax`) are in the same places, as with
experts that all tokens go to. The other rows are spread evenly.
"""

from . import session

DEFAULTS = {"nonzero": 1.0, "routing": 0.0, "unique": 1.0}

_used = {}


def share(name):
    """The assumed share."""
    return float(session.settings().get("assume", {}).get(name, DEFAULTS[name]))


def use(operator, name):
    """Notes that the size of an operator's output follows from an assumption; None if there is none for it."""
    _used[operator, name] = _used.get((operator, name), 0) + 1


def facts():
    """Sizes that follow from assumptions: the operator, the assumption, its share, whether the user bounded it."""
    bounded = session.settings().get("bounded", ())
    return [
        {
            "operator": operator,
            "assumption": name,
            "share": None if name is None else share(name),
            "bounded": name in bounded,
            "times": times,
        }
        for (operator, name), times in _used.items()
    ]
