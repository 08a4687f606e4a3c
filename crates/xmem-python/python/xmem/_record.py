"""Recordings: `record` runs a job by `xmem profile`, and `Recording` is what it leaves."""

from __future__ import annotations

import os
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Union

from . import _call
from ._errors import IncompleteRecordingWarning, RecordingError
from ._program import Option, arguments, message, stream
from ._replay import Replay, StrPath, replay

__all__ = ["Job", "Recording", "record"]

Job = Union[str, "os.PathLike[str]", Sequence[str], Callable[..., Any]]
"""A Python script, a command as a list, or a function."""

# Set by the functions here.
_OURS = ("output", "device", "device_as", "engine", "virtual_gpu", "then", "rank", "ranks")


class Recording:
    """A recorded job: a trace file, and what was written while it was made.

    A recording without `output` lies in a temporary folder that is removed with the object.
    """

    path: Path
    """The trace, which all commands of xmem read."""

    device: Optional[str]
    """The GPU that the job saw, on which `replay` answers unless it is given another."""

    complete: bool
    """False if the job raised or was stopped before it had all iterations that were asked for."""

    stdout: str
    """What the job wrote to standard output."""

    messages: str
    """What the job and xmem wrote to standard error."""

    def __init__(
        self,
        path: StrPath,
        device: Optional[str] = None,
        complete: bool = True,
        stdout: str = "",
        messages: str = "",
        folder: "Optional[tempfile.TemporaryDirectory[str]]" = None,
    ) -> None:
        self.path = Path(path)
        self.device = device
        self.complete = complete
        self.stdout = stdout
        self.messages = messages
        self._folder = folder
        self._known: Dict[str, Replay] = {}

    def replay(self, device: Optional[str] = None, **options: Option) -> Replay:
        """Answer for this recording, as `xmem.replay` does. Without a device, on that of the recording.

        Raises what `xmem.replay` raises.
        """
        if device is None and "capacity" not in options and "device_file" not in options:
            device = self.device
        key = repr((device, sorted(options.items())))
        if key not in self._known:
            self._known[key] = replay(self.path, device, **options)
        answer = self._known[key]
        # Answers read the file again for tables: it stays as long as they do.
        answer._folder = self._folder
        return answer

    def __repr__(self) -> str:
        return f"<xmem.Recording {self.path}{'' if self.complete else ', incomplete'}>"


def record(
    job: Job,
    args: Sequence[Any] = (),
    kwargs: Optional[Mapping[str, Any]] = None,
    *,
    device: Optional[str] = None,
    virtual_gpu: Optional[str] = None,
    engine: Optional[str] = None,
    output: Optional[StrPath] = None,
    python: Optional[StrPath] = None,
    cwd: Optional[StrPath] = None,
    env: Optional[Mapping[str, str]] = None,
    echo: bool = False,
    **options: Option,
) -> Recording:
    """Record a training job without a GPU, as `xmem profile` does, and return its recording.

    `job` is a Python script, run with `args`; a command as a list, such as `["torchrun", "train.py"]`; or a function,
    which is called with `args` and `kwargs` in a new process. Another process must be able to import the function: it
    stands at the top of a module, and what it is given can be pickled. If it stands in the script that is run, the
    script calls `record` below `if __name__ == "__main__":`.

    `virtual_gpu="h100-80g"` runs it on a GPU that does not exist, with PyTorch's CUDA build; nothing is computed.
    `device` is the GPU that the job sees, on a virtual GPU if available, else on the CPU; `engine="cpu"`
    computes on the CPU. `output` is the trace to write (`.json.zst`, `.json.gz` or `.json`); without it, the trace is
    removed with the recording. `python` is the interpreter of scripts and functions (this one), `cwd` the folder, `env`
    are additional variables. With `echo`, what the job prints is printed at once. Options of `xmem profile` can be given
    with underscores: `steps=5`, `timeout="10m"`, `stacks=False` is `no_stacks=True`.

    Raises `xmem.RecordingError` if nothing was recorded, `TypeError` for a function that another process cannot import,
    and warns (`xmem.IncompleteRecordingWarning`) if the job ended too early.

    >>> import xmem
    >>> recording = xmem.record("crates/xmem-python/tests/jobs/train.py", device="t4-16g")
    >>> recording.replay().fits
    True
    """
    folder = tempfile.TemporaryDirectory(prefix="xmem-python-")
    target = Path(output) if output is not None else Path(folder.name) / "trace.json.zst"
    target = target.absolute()
    changes = dict(env or {})
    command = _command(job, args, kwargs, os.fspath(python or sys.executable), folder.name, changes)
    told = arguments({"virtual_gpu": virtual_gpu, "device_as": device, "engine": engine, "output": target})
    if virtual_gpu is not None and device is not None:
        raise TypeError("give `device` or `virtual_gpu`, not both")
    start = time.time()
    ran = stream(
        ["profile", *told, *arguments(options, _OURS), "--", *command],
        changes,
        None if cwd is None else os.fspath(cwd),
        echo,
    )
    path = target
    if ran.code == 4:
        # An incomplete recording replaces no file.
        beside = target.with_name(target.name + ".part")
        if beside.exists() and beside.stat().st_mtime >= start - 1:
            path = beside
    if ran.code not in (0, 4) or not path.exists():
        said = message(ran.stderr) or f"xmem ended with exit code {ran.code}"
        raise RecordingError(said, ran.code, ran.stdout, ran.stderr)
    if ran.code == 4:
        last = [line.strip() for line in ran.stderr.splitlines() if line.strip()][-1:]
        warnings.warn(
            f"the recording is incomplete: {' '.join(last)}", IncompleteRecordingWarning, stacklevel=2
        )
    return Recording(path, device or virtual_gpu, ran.code == 0, ran.stdout, ran.stderr, folder)


def _command(
    job: Job,
    args: Sequence[Any],
    kwargs: Optional[Mapping[str, Any]],
    python: str,
    folder: str,
    changes: Dict[str, str],
) -> List[str]:
    if callable(job):
        if _call.is_child():
            raise RuntimeError(
                "`xmem.record` was called by the process that it started: call it below `if __name__ == \"__main__\":`"
            )
        pickled = Path(folder) / "call.pickle"
        pickled.write_bytes(_call.describe(job, args, kwargs or {}))
        changes[_call.ENVIRONMENT] = "1"
        return [python, _call.__file__, str(pickled)]
    if kwargs:
        raise TypeError("`kwargs` are of functions: give a script its arguments in `args`")
    given = [str(one) for one in args]
    if isinstance(job, (str, os.PathLike)):
        return [python, os.fspath(job), *given]
    return [*map(str, job), *given]
