"""Iterations that the script marks itself, with `xmem.planned()` of the Python package: no others are looked for then."""


class _Own:
    """What is called at the end of each, and whether the script marks any."""

    def __init__(self):
        self.called = []
        self.are_marked = False


_own = _Own()


def at_end(function):
    """Has a function called at the end of each iteration."""
    _own.called.append(function)


def are_marked():
    """Returns whether the script marks iterations."""
    return _own.are_marked


def begin():
    """Notes that an iteration begins. The Python package calls this."""
    _own.are_marked = True


def end():
    """Notes that it has ended. The Python package calls this."""
    for function in _own.called:
        function()
