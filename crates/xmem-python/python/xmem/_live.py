"""Recordings of a part of this process by PyTorch's profiler: `recording`."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Optional, Type

from ._record import Recording
from ._replay import StrPath

if TYPE_CHECKING:
    from torch.profiler import profile

__all__ = ["recording"]

# The endings that PyTorch writes.
_ENDINGS = (".json", ".json.gz")


class recording:  # noqa: N801 - used as a function
    """Record what a `with` block does, in this process: on the CPU, or on a GPU.

    The model and its optimizer are made in the block, which runs two or three iterations: memory from before it is not
    in the recording. The code runs as it is, so that `device="cuda"` needs a GPU; for a script that is written for one,
    use `xmem.record`. `output` is the trace to write (`.json` or `.json.gz`); without it, the trace is removed with the
    recording. The value of the block is a `Recording`, which can be used after the block.

    Raises `ValueError` for another ending, and `ImportError` without PyTorch 2.0 or later.

    >>> import torch, xmem
    >>> with xmem.recording() as recorded:
    ...     model = torch.nn.Linear(512, 512)
    ...     optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    ...     for step in range(3):
    ...         optimizer.zero_grad()
    ...         model(torch.randn(64, 512)).sum().backward()
    ...         optimizer.step()
    >>> recorded.replay(device="a100-40g").fits
    True
    """

    def __init__(self, output: Optional[StrPath] = None) -> None:
        self._folder: "Optional[tempfile.TemporaryDirectory[str]]" = None
        if output is None:
            self._folder = tempfile.TemporaryDirectory(prefix="xmem-python-")
            output = Path(self._folder.name) / "trace.json.gz"
        self._path = Path(output).absolute()
        if not self._path.name.endswith(_ENDINGS):
            raise ValueError(f"`{os.fspath(output)}` must end in .json or .json.gz, which PyTorch's profiler writes")
        self._recorded: Optional[Recording] = None
        self._profiler: "Optional[profile]" = None

    def __enter__(self) -> Recording:
        """Start the profiler, with all that an answer needs."""
        import torch
        from torch.profiler import ProfilerActivity, profile

        before = _counted()
        activities = [ProfilerActivity.CPU]
        self._profiler = profile(activities=activities, profile_memory=True, record_shapes=True, with_stack=True)
        self._profiler.start()
        # PyTorch writes none of these into a trace.
        self._profiler.add_metadata("xmem_total_before", str(before))
        self._profiler.add_metadata("torch_version", torch.__version__)
        settings = os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "")
        self._profiler.add_metadata("PYTORCH_CUDA_ALLOC_CONF", settings)
        self._recorded = Recording(self._path, complete=False, folder=self._folder)
        return self._recorded

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        """Stop the profiler and write the trace, also of a block that raised: then it is not `complete`."""
        assert self._profiler is not None and self._recorded is not None
        self._profiler.stop()
        self._profiler.export_chrome_trace(str(self._path))
        self._profiler = None
        self._recorded.complete = error is None


def _counted() -> int:
    """Return the bytes that PyTorch's profilers have counted in this process: the next one goes on from there."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as probe:
        torch.empty(1)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "probe.json")
        probe.export_chrome_trace(path)
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
    memory = (event["args"] for event in events if event.get("name") == "[memory]")
    host = [args for args in memory if args["Device Type"] == 0]
    return int(host[0]["Total Allocated"] - host[0]["Bytes"]) if host else 0
