"""A recording of the training of a model in hand: from its graph, or by a process that trains it without data."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, List, Mapping, Optional

from . import _call, _graph, _train
from ._copies import rng_kept
from ._errors import ModelError, UsageError, XmemError
from ._program import Option, arguments, fail, run
from ._record import Recording, record
from ._step import Step, StepError

__all__ = ["BY", "record_model"]

BY = ("auto", "graph", "record")
"""How a model is looked at."""

# Options of an answer that `xmem estimate` takes as well, since they are of the device.
_OF_DEVICES = ("capacity", "device_file")


def record_model(
    step: Step, device: Optional[str], by: str, answer: Mapping[str, Option], recorder: Mapping[str, Any]
) -> Recording:
    """Return the recording of a step, by its graph, by a process, or by the first of these that can be had.

    Raises `xmem.ModelError` if none can be had, with the reasons.
    """
    if _call.is_child():
        raise RuntimeError("this process was started to look at a model: ask below `if __name__ == \"__main__\":`")
    if by not in BY:
        raise ValueError(f"`by` is {', '.join(BY[:-1])} or {BY[-1]}, not `{by}`")
    reasons: List[str] = []
    of_graph: Optional[Recording] = None
    with rng_kept():
        if by != "record":
            try:
                of_graph = _by_graph(step, device, answer)
                found = of_graph.replay(device, **answer)
                if by == "graph" or found.decision != "no_verdict":
                    return of_graph
                reasons.append(f"its graph has no answer ({found.summary})")
            except (StepError, UsageError):
                raise
            except Exception as error:
                reasons.append(f"its graph cannot be taken ({_line(error)})")
        if by != "graph":
            try:
                return _by_process(step, device, recorder)
            except StepError:
                raise
            except XmemError as error:
                reasons.append(f"its training cannot be recorded ({error})")
            except Exception as error:
                reasons.append(f"another process cannot have it ({_line(error)})")
    if of_graph is not None:
        return of_graph
    raise ModelError(f"no answer about the model: {', and '.join(reasons)}", 3)


def _by_graph(step: Step, device: Optional[str], answer: Mapping[str, Option]) -> Recording:
    folder = tempfile.TemporaryDirectory(prefix="xmem-python-")
    graph, trace = Path(folder.name) / "model.pt2", Path(folder.name) / "trace.json.zst"
    _graph.write(step, graph)
    options = {"device": device, "trace": trace, **{key: answer[key] for key in _OF_DEVICES if key in answer}}
    inference = ["--inference"] if step.inference else []
    ran = run(["estimate", *arguments(options), *inference, "--exit-zero", "--quiet", "--", str(graph)])
    if not trace.exists():
        fail(ran)
    graph.unlink()
    return Recording(trace, device, messages=ran.stderr, folder=folder)


def _by_process(step: Step, device: Optional[str], recorder: Mapping[str, Any]) -> Recording:
    return record(_train.train, [_train.describe(step)], device=device, **recorder)


def _line(error: BaseException) -> str:
    """Return an error as one line, without what torch.export advises."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
