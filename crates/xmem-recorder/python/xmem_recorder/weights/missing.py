"""Weights that are not on this machine: what helps a script that failed for want of them."""

import contextlib
import os
import re

from .. import errors, session

# An error of a package that did not find weights or a configuration, and what helps.
_failed = None


def are_absent():
    """Returns whether the user wants stand-ins for them (`xmem profile --without-weights`)."""
    return session.settings().get("weights") == "absent"


def keep_failure(error, name, kwargs):
    """Keeps what helps if a script ends with this error. A configuration that is there shows that weights are not."""
    global _failed
    # Few scripts fail for it.
    from . import standins

    with contextlib.suppress(Exception):
        if _failed is not None and _is_from(error, _failed[0]) or name is None:
            return
        shown = str(name) if re.fullmatch(r"[\w.-]+(/[\w.-]+)?", str(name)) else errors.base_name(name)
        if standins.lacks_weights(str(name), kwargs):
            if not are_absent():
                text = f"weights of {shown} are not on this machine: --without-weights loads zeros of the same size"
                _failed = (error, text)
        elif not os.path.isdir(str(name)) and standins.lacks_configuration(str(name), kwargs):
            text = (
                f"{shown} is not on this machine, and could not be downloaded: its config.json in the cache "
                f"(`hf download {shown} config.json` where there is a network) is enough with --without-weights"
            )
            _failed = (error, text)


def advice(error):
    """What helps against an error that ended the script; None if it did not come from missing weights."""
    return _failed[1] if _failed is not None and _is_from(error, _failed[0]) else None


def _is_from(error, source):
    """Returns whether an error is another one, or was raised while that was handled."""
    for _ in range(100):
        if error is source or error is None:
            break
        error = error.__cause__ or error.__context__
    return error is source
