"""Iterations that a script marks itself."""

from __future__ import annotations

import contextlib
import sys
from typing import Iterator

__all__ = ["planned"]

# A module of the hook that `xmem run` and `xmem profile` load into the process of the script.
_HOOK = "xmem_recorder.own_iterations"


@contextlib.contextmanager
def planned() -> Iterator[None]:
    """Mark one iteration of a job that `xmem run --plan` runs with a static memory plan, or that `xmem profile` records.

    xmem finds iterations by the steps of optimizers or the calls of a model. A script whose iterations are others, such as one
    that generates text by many calls, marks them: where this is used, nothing else counts as an iteration. An iteration that
    an exception leaves is not marked. Without xmem the block runs as if this were not there.

    >>> import xmem
    >>> for prompt in ["one", "two", "three"]:
    ...     with xmem.planned():
    ...         pass
    """
    hook = sys.modules.get(_HOOK)
    if hook is None:
        yield
        return
    hook.begin()
    yield
    hook.end()
