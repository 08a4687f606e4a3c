"""One question with one answer: `fits`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, Sequence, Union, overload

from ._program import Option
from ._record import Job, Recording, record
from ._replay import Replay, replay
from ._sizes import Size, parse_size, show_size

if TYPE_CHECKING:
    import torch

    from ._step import Optimizers, Step

__all__ = ["Fits", "fits", "of_step"]

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

    recording: Recording
    """What was recorded to answer, or the trace that was given: for other devices and options."""

    def __init__(self, answer: Replay, limit: Optional[int] = None, recording: Optional[Recording] = None) -> None:
        self.replay = answer
        self.limit_bytes = limit
        self.recording = recording if recording is not None else Recording(answer.trace, answer.device)

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


@overload
def fits(
    job: Union[Job, Recording],
    /,
    device: Optional[str] = None,
    *,
    max: Optional[Size] = None,
    args: Sequence[Any] = (),
    **options: Any,
) -> Fits: ...


@overload
def fits(
    model: "torch.nn.Module",
    /,
    batch: Any,
    optimizer: "Optional[Optimizers]" = None,
    device: Optional[str] = None,
    *,
    loss: Optional[Callable[..., Any]] = None,
    autocast: "Optional[torch.dtype]" = None,
    inference: bool = False,
    accumulation: int = 1,
    clip_grad: bool = False,
    by: str = "auto",
    max: Optional[Size] = None,
    **options: Any,
) -> Fits: ...


def fits(job: Any, /, *given: Any, **options: Any) -> Fits:
    """Answer whether a job, or the training of a model in hand, fits on a device.

    **A job**: `fits(job, device)`. `job` is a recording (a `Recording`, or the path of a trace or snapshot), or something
    that `xmem.record` records: a script with `args`, a command as a list, a function.

    **A model**: `fits(model, batch, optimizer, device)`, in the process that has it. Nothing is computed, no GPU is used,
    and the model is left as it is. It may be on any device, also on `meta`.

    - `batch` is what the model is called with: a tensor, a tuple of arguments, or a dict of keywords. The result must be
      the loss or have it as `loss`. With `loss`, a function of the result and the target, `batch` is the pair (inputs,
      target).
    - `optimizer` is an optimizer of the model, or what makes one of its parameters: `torch.optim.AdamW`, a partial of it,
      a function. With `inference=True` there is none, and the model is called without gradients.
    - `autocast` is the type of autocast around model and loss (`torch.bfloat16`); `accumulation` is the number of batches
      for each step of the optimizer, and `clip_grad=True` clips gradients before it.
    - `by="graph"` takes the graph of the model by torch.export (2.6 or later), `by="record"` records three steps in
      another process, as `xmem.record` does. `"auto"` takes the graph if available.

    `max` is a limit below the memory of the device, as a number of bytes or as text such as `"14GiB"`. `options` are those
    of `xmem.replay` (`capacity="24GiB"` in place of a device) and of `xmem.record`.

    Raises what `xmem.record` and `xmem.replay` raise, `xmem.ModelError` for a model of which nothing can be said, and
    `TypeError` if the model returns no loss.

    >>> import xmem
    >>> if xmem.fits("traces/mlp_adam/trace.json.zst", "rtx3060-12g"):
    ...     print("train it")
    train it
    >>> xmem.fits("traces/mlp_adam/trace.json.zst", "rtx3060-12g", max="400MiB")
    <xmem.Fits False: needs 450.00 MiB of 11.63 GiB on rtx3060-12g, limit 400.00 MiB>
    >>> import torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 10))
    >>> batch = torch.randn(64, 1024), torch.randint(10, (64,))
    >>> bool(xmem.fits(model, batch, torch.optim.AdamW, "t4-16g", loss=torch.nn.CrossEntropyLoss()))
    True
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(job, torch.nn.Module):
        return _of_model(job, *given, **options)
    return _of_job(job, *given, **options)


def _of_model(
    model: "torch.nn.Module",
    batch: Any,
    optimizer: "Optional[Optimizers]" = None,
    device: Optional[str] = None,
    *,
    loss: Optional[Callable[..., Any]] = None,
    autocast: "Optional[torch.dtype]" = None,
    inference: bool = False,
    accumulation: int = 1,
    clip_grad: bool = False,
    by: str = "auto",
    max: Optional[Size] = None,
    **options: Any,
) -> Fits:
    from ._step import Forward, Step

    if isinstance(optimizer, str):
        raise TypeError(f"`optimizer` is a class such as torch.optim.AdamW, not the text `{optimizer}`")
    if inference == (optimizer is not None):
        raise TypeError("give an `optimizer`, or `inference=True`")
    if accumulation < 1:
        raise ValueError("`accumulation` is a number of batches: 1 or more")
    step = Step(model, batch, Forward(loss, inference), optimizer, autocast, accumulation, clip_grad)
    return of_step(step, device, by, max, **options)


def of_step(step: "Step", device: Optional[str], by: str, max: Optional[Size] = None, **options: Any) -> Fits:
    """Answer for a step of training."""
    from ._model import record_model

    limit = None if max is None else parse_size(max)
    recorder, answer = _split(options)
    recording = record_model(step, device, by, answer, recorder)
    return Fits(recording.replay(device, **answer), limit, recording)


def _split(options: Mapping[str, Any]) -> "tuple[dict[str, Any], dict[str, Option]]":
    """Return the options of a recording and those of an answer."""
    recorder = {name: value for name, value in options.items() if name in _OF_RECORDINGS}
    answer: "dict[str, Option]" = {name: value for name, value in options.items() if name not in _OF_RECORDINGS}
    return recorder, answer


def _of_job(
    job: Union[Job, Recording],
    device: Optional[str] = None,
    *,
    max: Optional[Size] = None,
    args: Sequence[Any] = (),
    **options: Any,
) -> Fits:
    limit = None if max is None else parse_size(max)
    recorder, answer = _split(options)
    if isinstance(job, Recording):
        return Fits(job.replay(device, **answer), limit, job)
    if isinstance(job, (str, os.PathLike)) and Path(job).name.endswith(_TRACES):
        return Fits(replay(job, device, **answer), limit)
    told = None if recorder.get("virtual_gpu") is not None else device
    recording = record(job, args, device=told, **recorder)
    return Fits(recording.replay(device, **answer), limit, recording)
