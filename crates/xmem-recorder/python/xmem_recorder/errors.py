"""What is told of an exception: its type, and the line that raised it.

A message may quote all that the script knows, such as the address of a database with its password: it goes neither
into the trace nor into a note.
"""

import os


def describe(error):
    """The type of an exception and its line: `ValueError at train.py:12`."""
    return describe_type(type(error), error.__traceback__)


def describe_type(kind, traceback):
    """The same, of the type of an exception and its traceback."""
    place = place_of(traceback)
    return kind.__name__ if place is None else f"{kind.__name__} at {place}"


def place_of(traceback):
    """The innermost line of the script, else the innermost of all; None without a traceback."""
    innermost = of_script = None
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        innermost = f"{base_name(file)}:{traceback.tb_lineno}"
        if not _is_library(file):
            of_script = innermost
        traceback = traceback.tb_next
    return of_script or innermost


def base_name(path):
    """The last part of a path."""
    return os.path.basename(str(path).rstrip("/"))


def _is_library(file):
    if file.startswith(("<frozen", "torch/xmem_recorder/", os.path.dirname(os.__file__) + os.sep)):
        return True
    return "/site-packages/" in file or "/dist-packages/" in file
