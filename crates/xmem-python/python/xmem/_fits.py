"""One question with one answer: `fits`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Optional, Sequence, Union

from ._program import Option
from ._record import Job, Recording, record
from ._replay import Replay, replay
from ._sizes import Size, parse_size, show_size

__all__ = ["Fits", "fits"]

_TRACES = (".json", ".json.gz", ".json.zst", ".pickle", ".pickle.gz", ".pickle.zst", ".pkl")
# Options of recordings; all others are of answers.
_OF_RECORDINGS = {
    "virtual_gpu", "engine", "python", "cwd", "env", "echo", "steps", "time", "timeout", "max_memory", "no_stacks",
    "let_write", "gpus", "without_weights", "assume",
}


class Fits:
    """The answer to "does it fit?": true or false, with the numbers.

    A job fits if its verdict is `fits`, and it needs no more than the limit that was given. Without a verdict it does
    not. `need_bytes` has CUDA's context in it, as nvidia-smi shows it.
    """

    replay: Replay
    """The answer of `xmem.replay`."""

    limit_bytes: Optional[int]
    """The limit that was given, in bytes."""

    def __init__(self, answer: Replay, limit: Optional[int] = None) -> None:
        self.replay = answer
        self.limit_bytes = limit

    @property
    def need_bytes(self) -> Optional[int]:
        """The device memory that the job needs, CUDA's context included, in bytes. `None` without a verdict."""
        return self.replay.need_bytes

    @property
    def reason(self) -> str:
        """Need, device and limit in one sentence."""
        reason = self.replay.summary
        if self.limit_bytes is not None:
            reason += f", limit {show_size(self.limit_bytes)}"
        return reason

    def __bool__(self) -> bool:
        need = self.need_bytes
        is_within = self.limit_bytes is None or (need is not None and need <= self.limit_bytes)
        return self.replay.fits and is_within

    def __repr__(self) -> str:
        return f"<xmem.Fits {bool(self)}: {self.reason}>"

    def _repr_html_(self) -> str:
        return self.replay._repr_html_()


def fits(
    job: Union[Job, Recording],
    device: Optional[str] = None,
    *,
    max: Optional[Size] = None,
    args: Sequence[Any] = (),
    **options: Any,
) -> Fits:
    """Answer whether a job fits on a device, and within `max` bytes (a number, or text such as `"14GiB"`).

    `job` is a recording (a `Recording`, or the path of a trace or snapshot), or something that `xmem.record` records:
    a script with `args`, a command as a list, a function. `options` are those of `xmem.record` and `xmem.replay`.

    Raises what these two raise.

    >>> import xmem
    >>> if xmem.fits("traces/mlp_adam/trace.json.zst", "rtx3060-12g"):
    ...     print("train it")
    train it
    >>> xmem.fits("traces/mlp_adam/trace.json.zst", "rtx3060-12g", max="400MiB")
    <xmem.Fits False: needs 450.00 MiB of 11.63 GiB on rtx3060-12g, limit 400.00 MiB>
    """
    limit = None if max is None else parse_size(max)
    recorder = {name: value for name, value in options.items() if name in _OF_RECORDINGS}
    answer: "dict[str, Option]" = {name: value for name, value in options.items() if name not in _OF_RECORDINGS}
    if isinstance(job, Recording):
        return Fits(job.replay(device, **answer), limit)
    if isinstance(job, (str, os.PathLike)) and Path(job).name.endswith(_TRACES):
        return Fits(replay(job, device, **answer), limit)
    told = None if recorder.get("virtual_gpu") is not None else device
    return Fits(record(job, args, device=told, **recorder).replay(device, **answer), limit)
