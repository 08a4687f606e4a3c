"""A script that becomes another user (`os.setuid`), as a program does that gives up the rights of root.

The new user can reach neither the folder shared with `xmem profile` nor the recorder's own files in it. It is told at
once, and the script ends: nothing that it does could be saved.
"""

import os
import sys

from . import errors, session
from .patching import replace

_at_start = None
_pid = None


class OtherUser(SystemExit):
    """Ends the script."""

    def __init__(self):
        super().__init__(1)


def watch():
    """Watches the functions that change the user of the process."""
    global _at_start, _pid
    _at_start, _pid = os.geteuid(), os.getpid()
    for name in ("setuid", "setreuid", "setresuid"):
        if hasattr(os, name):
            replace(os, name, _watched)


def _watched(original):
    def change(*args):
        original(*args)
        # A process that can change back does so before the recording is saved.
        if not _is_final() or os.getpid() != _pid or not session.is_first():
            return
        frame = sys._getframe(1)
        place = f"{errors.base_name(frame.f_code.co_filename)}:{frame.f_lineno}"
        session.send("other_user", **{"from": _at_start, "to": os.geteuid()}, place=place)
        raise OtherUser

    return change


def _is_final():
    """Returns whether the process cannot become its first user again."""
    return _at_start not in os.getresuid()
