"""The cell magic `%%xmem`: a cell of a notebook, recorded without a GPU."""

from __future__ import annotations

import argparse
import os
import shlex
import tempfile
from pathlib import Path
from typing import Any, NoReturn, Optional

from ._errors import XmemError
from ._record import record
from ._replay import Replay

__all__ = ["register"]


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Raise what IPython shows as one line, instead of ending the kernel."""
        raise _usage_error(message)


def _usage_error(message: str) -> Exception:
    from IPython.core.error import UsageError

    error: Exception = UsageError(f"%%xmem: {message}")
    return error


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="%%xmem", add_help=False, allow_abbrev=False)
    parser.add_argument("-d", "--device", default="a100-40g")
    parser.add_argument("-o", "--output")
    parser.add_argument("--engine", choices=["auto", "cpu", "virtual-gpu"])
    parser.add_argument("--steps", type=int)
    parser.add_argument("--timeout")
    parser.add_argument("--to", metavar="NAME")
    parser.add_argument("-q", "--quiet", action="store_true")
    return parser


def register(shell: Any) -> None:
    """Add the magic to an IPython shell."""

    def xmem(line: str, cell: str) -> Replay:
        """Record this cell on a GPU that does not exist, and show the memory that it needs.

        %%xmem [-d DEVICE] [-o FILE] [--engine cpu] [--steps N] [--timeout TIME] [--to NAME] [-q]

        The cell is a script of its own, run in a new process: it has its own imports, and sees no variables of the
        notebook. `--to NAME` keeps the recording as a variable. `-q` does not print what the cell prints.
        """
        given = _parser().parse_args(shlex.split(line))
        with tempfile.TemporaryDirectory(prefix="xmem-cell-") as folder:
            script = Path(folder) / "cell.py"
            script.write_text(cell, encoding="utf-8")
            try:
                recording = record(
                    script,
                    device=given.device,
                    engine=given.engine,
                    output=given.output,
                    echo=not given.quiet,
                    env={"PYTHONPATH": _with_folder(os.environ.get("PYTHONPATH"))},
                    steps=given.steps,
                    timeout=given.timeout,
                )
                answer = recording.replay()
            except XmemError as error:
                raise _usage_error(str(error)) from None
        if given.to:
            shell.user_ns[given.to] = recording
        return answer

    shell.register_magic_function(xmem, "cell", "xmem")


def _with_folder(paths: Optional[str]) -> str:
    """Return the search path with the folder of the notebook, in which its modules are."""
    return os.pathsep.join([os.getcwd(), *([paths] if paths else [])])
