"""Whether operators are events of the trace: what the recorder itself computes is not."""

_pauses = 0


def pause(torch):
    """Records no operators until `go_on` was called as often."""
    global _pauses
    _pauses += 1
    if _pauses == 1:
        torch._C._autograd._enable_record_function(False)


def go_on(torch):
    """Records operators again."""
    global _pauses
    _pauses -= 1
    if _pauses == 0:
        torch._C._autograd._enable_record_function(True)
