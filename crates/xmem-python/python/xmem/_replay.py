"""Answers about recordings: `replay`, and what it returns."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Dict, List, Literal, Mapping, Optional, Sequence, Tuple, Union, overload

from . import _html
from ._errors import InputError
from ._program import Option, Ran, arguments, fail, run
from ._table import Table

__all__ = ["Replay", "StrPath", "devices", "replay", "replays"]

StrPath = Union[str, "os.PathLike[str]"]
"""A path."""

# Beginnings of the addresses of objects.
_OBJECTS = ("s3://", "gs://", "az://")
# Set by the functions here.
_OURS = ("format", "output", "exit_zero", "literal_paths", "skip_done", "jobs", "tune", "vary")
# Options of an answer that change nothing in the run, so that `xmem report` does not have them.
_OF_ANSWERS = ("explain", "full", "lenient", "min_capacity", "notes", "strict", "top", "snapshot", "snapshot_past_oom")


class Replay:
    """An answer: the memory of a recorded job on a device, and whether it fits.

    All sizes are bytes. The names of the attributes are those of `xmem replay --format json`, and `json` has
    everything else that is there. In a notebook it is shown with its memory by role and over time.

    >>> import xmem
    >>> answer = xmem.replay("traces/mlp_adam/trace.json.zst", device="rtx3060-12g")
    >>> answer.verdict, answer.fits, answer.need_bytes
    ('fits', True, 471859200)
    >>> answer
    <xmem.Replay fits: needs 450.00 MiB of 11.63 GiB on rtx3060-12g>
    """

    json: Dict[str, Any]
    """The whole answer (schema `xmem.replay/2`)."""

    def __init__(self, document: Mapping[str, Any], trace: StrPath, options: Optional[Mapping[str, Option]] = None):
        self.json = dict(document)
        self._trace = Path(trace)
        self._options = dict(options or {})
        # The temporary folder of the file, if it has one, which is removed with the last object that has it.
        self._folder: object = None

    @property
    def trace(self) -> Path:
        """The path of the recording."""
        return self._trace

    @property
    def verdict(self) -> str:
        """`fits`, `does_not_fit`, `withheld`, or with `lenient=True` also `damaged_fits`, `damaged_does_not_fit`."""
        return str(self.json["verdict"])

    @property
    def decision(self) -> str:
        """The verdict with its doubts: `fits`, `tight`, `does_not_fit` or `no_verdict`."""
        return str(self.json["decision"])

    @property
    def fits(self) -> bool:
        """True if the job is expected to run: its verdict is `fits`, tight or not."""
        return self.verdict == "fits"

    @property
    def summary(self) -> str:
        """The need and the device in one sentence, or the reason why there is no verdict."""
        return str(self.json["summary"])

    @property
    def device(self) -> str:
        """The name of the device."""
        return str(self.json["device"]["name"])

    @property
    def device_bytes(self) -> int:
        """The memory of the device, in bytes."""
        return int(self.json["device"]["memory_bytes"])

    @property
    def peak_allocated_bytes(self) -> int:
        """The peak of `torch.cuda.max_memory_allocated()`, in bytes."""
        return int(self.json["peak"]["allocated_bytes"])

    @property
    def peak_reserved_bytes(self) -> int:
        """The peak of `torch.cuda.max_memory_reserved()`, in bytes."""
        return int(self.json["peak"]["reserved_bytes"])

    @property
    def peak_device_bytes(self) -> int:
        """What nvidia-smi would show at the peak, CUDA's context included, in bytes."""
        return int(self.json["peak"]["device_bytes"])

    @property
    def need_bytes(self) -> Optional[int]:
        """The device memory that the job needs, CUDA's context included, in bytes. `None` without a verdict."""
        need = self.json["need_bytes"]
        return None if need is None else int(need)

    @property
    def by_role(self) -> Dict[str, int]:
        """The memory that is allocated at the peak, by role (`parameter`, `activation`, …), in bytes."""
        return dict(self.json["by_role"])

    @property
    def diagnostics(self) -> List[Dict[str, Any]]:
        """What was odd in the recording: dicts with `code`, `severity` and `message`."""
        return list(self.json["diagnostics"])

    def blocks(self) -> Table:
        """Return the blocks of the run: size, role, operator, module, line, when allocated and freed.

        >>> import xmem
        >>> answer = xmem.replay("traces/mlp_adam/trace.json.zst", device="rtx3060-12g")
        >>> largest = max(answer.blocks(), key=lambda block: block["size_bytes"])
        >>> largest["role"], largest["size_bytes"], largest["op"]
        ('parameter', 16777216, 'aten::empty')
        """
        return self._table("blocks")

    def timeline(self) -> Table:
        """Return the memory after each allocation and each free: allocated, requested and reserved bytes, the time.

        >>> import xmem
        >>> answer = xmem.replay("traces/mlp_adam/trace.json.zst", device="rtx3060-12g")
        >>> max(moment["allocated_bytes"] for moment in answer.timeline()) == answer.peak_allocated_bytes
        True
        """
        return self._table("moments")

    def segments(self) -> Table:
        """Return the ranges of device memory that the allocator obtains.

        >>> import xmem
        >>> answer = xmem.replay("traces/mlp_adam/trace.json.zst", device="rtx3060-12g")
        >>> sum(segment["size_bytes"] for segment in answer.segments()) == answer.peak_reserved_bytes
        True
        """
        return self._table("segments")

    def report(self, path: StrPath) -> None:
        """Write the report page, or what the ending of the path says (`.html`, `.svg`, `.pftrace`, `.parquet`, …).

        Raises `xmem.UsageError` for other endings.
        """
        options, trace = self._report()
        ran = run(["report", *options, "--output", os.fspath(path), *trace])
        if ran.code not in (0, 4):
            fail(ran)

    def _report(self) -> Tuple[List[str], List[str]]:
        kept = {name: value for name, value in self._options.items() if name not in _OF_ANSWERS}
        return arguments(kept), ["--", os.fspath(self._trace)]

    def _table(self, name: str) -> Table:
        options, trace = self._report()
        return Table(name, ["report", *options], trace)

    def __repr__(self) -> str:
        return f"<xmem.Replay {self.decision}: {self.summary}>"

    def _repr_html_(self) -> str:
        return _html.replay(self.json)


def replay(trace: StrPath, device: Optional[str] = None, **options: Option) -> Replay:
    """Answer for a recording on a device, as `xmem replay` does.

    `trace` is a trace of `xmem profile` or of PyTorch's profiler, or a memory snapshot: a file, or an object as
    `s3://bucket/name.json.zst`. `device` is a name of
    `xmem.devices()`; `capacity="24GiB"` stands for any GPU of this size. All options of `xmem replay` can be given,
    with underscores: `alloc_conf="expandable_segments:True"`, `torch="2.6"`, `what_if="zero-grad=pos1"`,
    `min_capacity=True`.

    Raises `xmem.InputError` for a file that is not a recording, and `xmem.UsageError` for an unknown device or option.

    >>> import xmem
    >>> xmem.replay("traces/mlp_adam/trace.json.zst", capacity="300MiB").fits
    False
    """
    answers = _without_errors(_answers([trace], {"device": device, **options}))
    if len(answers) != 1:
        raise TypeError("there are several answers: call `xmem.replays`")
    return answers[0]


@overload
def replays(traces: Sequence[StrPath], *, errors: Literal["raise"] = ..., **options: Option) -> List[Replay]: ...
@overload
def replays(
    traces: Sequence[StrPath], *, errors: Literal["return"], **options: Option
) -> List[Union[Replay, InputError]]: ...
def replays(
    traces: Sequence[StrPath], *, errors: str = "raise", **options: Option
) -> Union[List[Replay], List[Union[Replay, InputError]]]:
    """Answer for several recordings or settings, in the order of the recordings.

    `devices=["t4-16g", "a100-40g"]` answers for each of them from one reading.

    Raises what `replay` raises, if one of the recordings has no answer. With `errors="return"` its place has the
    `InputError` instead, so that one file that cannot be read does not cost the answers about thousands.

    >>> import xmem
    >>> answers = xmem.replays(["traces/mlp_adam/trace.json.zst"], devices=["t4-16g", "a100-40g"])
    >>> [answer.device for answer in answers]
    ['t4-16g', 'a100-40g']
    >>> xmem.replays(["missing.json"], device="t4-16g", errors="return")
    [InputError('[XM0211] `missing.json` does not exist...')]
    """
    if errors not in ("raise", "return"):
        raise ValueError(f"`errors` is raise or return, not `{errors}`")
    answers = _answers(traces, options)
    return answers if errors == "return" else _without_errors(answers)


def _without_errors(answers: List[Union[Replay, InputError]]) -> List[Replay]:
    """Return the answers, or raise the first error among them."""
    replays = []
    for answer in answers:
        if isinstance(answer, InputError):
            raise answer
        replays.append(answer)
    return replays


def _answers(traces: Sequence[StrPath], options: Mapping[str, Option]) -> List[Union[Replay, InputError]]:
    names = [os.fspath(trace) for trace in traces]
    # Lines come in the order of completion. A document has all answers, and an error of a single recording is in none.
    form = "jsonl" if len(names) == 1 else "json"
    # Names are those of files, whatever they look like, unless one of them is the address of an object.
    paths = [] if any(name.startswith(_OBJECTS) for name in names) else ["--literal-paths"]
    ran = run(["replay", *paths, "--format", form, *arguments(options, _OURS), "--", *names])
    answers: List[Union[Replay, InputError]] = []
    for document in _documents(ran, form):
        if document.get("schema") == "xmem.error/1":
            answers.append(InputError(f"[{document['code']}] {document['error']}", 3))
        elif document.get("schema") == "xmem.replay/2":
            answers.append(Replay(document, document["trace"], _of_one(document, options)))
    return answers


def _of_one(document: Mapping[str, Any], options: Mapping[str, Option]) -> Dict[str, Option]:
    """Return the options of one answer among several."""
    own = dict(options)
    if own.pop("devices", None) is not None:
        own["device"] = str(document["device"]["name"])
    return own


def _documents(ran: Ran, form: str) -> List[Dict[str, Any]]:
    if ran.code not in (0, 1, 4) and not ran.stdout.strip():
        fail(ran)
    try:
        if form == "jsonl":
            return [json.loads(line) for line in ran.stdout.splitlines()]
        read = json.loads(ran.stdout)
    except ValueError:
        fail(ran)
    return read if isinstance(read, list) else [read]


def devices() -> List[Dict[str, Any]]:
    """Return the known devices: dicts with `name`, `title`, `memory_bytes`, `compute_capability` and others.

    >>> import xmem
    >>> "a100-40g" in [device["name"] for device in xmem.devices()]
    True
    """
    ran = run(["devices", "--format", "json"])
    if ran.code != 0:
        fail(ran)
    return list(json.loads(ran.stdout)["devices"])
