"""Errors of the package. They carry the message of the program, and leave the rest to it."""

from __future__ import annotations

import re
from typing import Optional

__all__ = [
    "IncompleteRecordingWarning",
    "InputError",
    "ModelError",
    "NotFittingError",
    "NotFittingWarning",
    "RecordingError",
    "UsageError",
    "XmemError",
]


class XmemError(Exception):
    """xmem could not do what was asked. Its text is the message of the program.

    >>> import xmem
    >>> issubclass(xmem.InputError, xmem.XmemError)
    True
    """

    code: int
    """The exit code of the program: 2 for wrong usage, 3 for an input that cannot be read."""

    error_code: Optional[str]
    """The code of the error, such as `XM0103`, which `xmem explain` takes; `None` for an error without one."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code
        marked = re.match(r"\[(XM\d{4})\] ", message)
        self.error_code = marked.group(1) if marked else None


class UsageError(XmemError):
    """An option or a value that the program does not know, such as the name of a device (exit code 2).

    >>> import xmem
    >>> xmem.replay("traces/mlp_adam/trace.json.zst", device="a1000")
    Traceback (most recent call last):
    ...
    xmem.UsageError: [XM0102] unknown device `a1000`...
    """


class InputError(XmemError):
    """A file that does not exist, cannot be read, or is not a recording (exit code 3).

    >>> import xmem
    >>> xmem.replay("missing.json", device="a100-40g")
    Traceback (most recent call last):
    ...
    xmem.InputError: [XM0211] `missing.json` does not exist...
    """


class RecordingError(XmemError):
    """A job of which nothing was recorded, because it failed first or used no GPU (exit codes 2 and 3)."""

    stdout: str
    """What the job wrote to standard output."""

    messages: str
    """What the job and xmem wrote to standard error."""

    def __init__(self, message: str, code: int, stdout: str = "", messages: str = "") -> None:
        super().__init__(message, code)
        self.stdout = stdout
        self.messages = messages


class IncompleteRecordingWarning(UserWarning):
    """A recording was saved, but the job raised or was stopped before it had all iterations that were asked for."""


class ModelError(XmemError):
    """A model about which nothing can be said: torch.export does not support it, and another process cannot train it."""


class NotFittingError(XmemError):
    """A job that does not fit, where the one who asked wants it to be stopped: `on_misfit="raise"` of the callbacks."""


class NotFittingWarning(UserWarning):
    """A job that does not fit, or about which nothing can be said: the callbacks warn of it."""
