"""What an area of CUDA is: a function that checks how it behaves on the virtual GPU, and a line of the table in
`docs/reference/virtual-gpu-areas.md`. This module does not import torch, so that the table can be printed without it."""

import contextlib
import subprocess
import sys

# The outcomes.
WORKS = "as on a GPU"
MODELED = "modeled"
REFUSED = "refused"

AREAS = []


class Area:
    """An area with its outcome and what is said about it."""

    def __init__(self, name, outcome, text, check, environment, needs, slow):
        self.name, self.outcome, self.text = name, outcome, text
        self.check, self.environment, self.needs = check, environment, needs
        self.slow = slow or environment is not None


class NotThere(Exception):
    """This release of PyTorch, or this machine, does not have what the area is about."""


def area(name, outcome, text, environment=None, needs=None, slow=False):
    """Registers a check. With an `environment`, it has a process of its own with these variables; such areas, and those
    that start processes or compile (`slow`), are left out of a quick check.

    `needs` is a path such as "cuda.MemPool" below the module `torch`; releases without it are not checked."""

    def register(check):
        AREAS.append(Area(name, outcome, text, check, environment, needs, slow))
        return check

    return register


@contextlib.contextmanager
def refuses(error, *texts):
    """The block must raise this error, with these texts in its message."""
    try:
        yield
    except error as raised:
        for text in texts:
            assert text in str(raised), f"`{text}` is not in: {raised}"
    else:
        raise AssertionError(f"no {error.__name__}")


def run_python(program, **environment):
    """The output of a Python program with these variables, which must succeed."""
    import os

    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **environment}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def table():
    """The table of the documentation, in Markdown."""
    lines = ["| area | outcome | details |", "|---|---|---|"]
    lines += [f"| {a.name} | {a.outcome} | {a.text} |" for a in AREAS]
    return "\n".join(lines) + "\n"
