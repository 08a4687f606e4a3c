"""Whether operators are events of the trace: what the recorder itself computes is not."""

_pauses = 0


def pause():
    """Records no operators until `go_on` was called as often."""
    global _pauses
    _pauses += 1
    if _pauses == 1:
        _enable(False)


def go_on():
    """Records operators again."""
    global _pauses
    _pauses -= 1
    if _pauses == 0:
        _enable(True)


def _enable(are_recorded):
    from torch._C import _autograd

    _autograd._enable_record_function(are_recorded)
