"""The marker `gpu_memory` of pytest: a test that fails if its body needs too much memory of a GPU.

A marked test runs in a separate process, recorded by `xmem profile`: on a virtual GPU with PyTorch's CUDA build,
else on the CPU. Then xmem answers for the device. No GPU is needed. pytest finds this plugin by itself where the
package is installed.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, Generator, List, Mapping, NamedTuple, Optional, Tuple

import pytest

from ._errors import XmemError
from ._fits import Fits
from ._program import Option
from ._record import Recording, record
from ._sizes import Size, parse_size, show_size

__all__ = ["pytest_addoption", "pytest_configure", "pytest_runtest_logreport", "pytest_runtest_makereport",
           "pytest_runtest_protocol"]

_MARKER = "gpu_memory"
# Set in the process that runs one test: the file for its outcomes.
_REPORTS = "XMEM_PYTEST_REPORTS"
_HELP = (
    "gpu_memory(device=None, max=None, engine=None, alloc_conf=None): run the test without a GPU, and fail if it does "
    "not fit on `device`, or needs more than `max`, a number of bytes or text such as '14GiB' (CUDA's context included)"
)
_KNOWN = {"device", "max", "engine", "alloc_conf"}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the setting `gpu_memory_device`."""
    parser.addini("gpu_memory_device", "device of tests with the marker gpu_memory that name none")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    config.addinivalue_line("markers", _HELP)


class _Asked(NamedTuple):
    """The arguments of a marker."""

    device: str
    limit: Optional[int]
    engine: Optional[str]
    alloc_conf: Optional[str]


class _Outcome(NamedTuple):
    """The outcome of a test: `passed`, `failed` or `skipped`, with a text or a place."""

    word: str
    told: Any
    sections: List[Tuple[str, str]]
    properties: List[Tuple[str, object]]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Optional[bool]:
    """Run a marked test in a separate process."""
    marker = item.get_closest_marker(_MARKER)
    if marker is None or _REPORTS in os.environ:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    start = time.time()
    try:
        outcome = _skipped(item) or _judge(item, _asked(marker, item.config))
    except (TypeError, ValueError, XmemError, OSError) as error:
        outcome = _Outcome("failed", f"{type(error).__name__}: {error}", [], [])
    for report in _reports(item, outcome, start):
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(call: "pytest.CallInfo[None]") -> Generator[None, Any, None]:
    """Take the end of a recording for the end of the test: on the CPU, the recorder ends it by an exception."""
    outcome = yield
    error = call.excinfo.value if call.excinfo is not None else None
    if isinstance(error, SystemExit) and type(error).__module__.startswith("xmem_recorder."):
        report = outcome.get_result()
        report.outcome, report.longrepr = "passed", None


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Hand the outcome to the process that waits for it."""
    path = os.environ.get(_REPORTS)
    if path is None:
        return
    skipped = report.longrepr if report.skipped and isinstance(report.longrepr, tuple) else None
    told = {"outcome": report.outcome, "when": report.when, "text": report.longreprtext, "skipped": skipped}
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(told) + "\n")


def _asked(marker: pytest.Mark, config: pytest.Config) -> _Asked:
    given: Dict[str, Any] = dict(marker.kwargs)
    unknown = sorted(set(given) - _KNOWN)
    if marker.args or unknown:
        wrong = ", ".join([*map(repr, marker.args), *unknown])
        raise TypeError(f"the marker gpu_memory does not know {wrong}: give {', '.join(sorted(_KNOWN))} by name")
    device = given.get("device") or config.getini("gpu_memory_device")
    if not device:
        raise TypeError("the marker gpu_memory needs a device: `device=\"t4-16g\"`, or the setting gpu_memory_device")
    limit: Optional[Size] = given.get("max")
    size = None if limit is None else parse_size(limit)
    return _Asked(str(device), size, given.get("engine"), given.get("alloc_conf"))


def _skipped(item: pytest.Item) -> Optional[_Outcome]:
    """Return the outcome of a test that is skipped without a condition: then PyTorch need not be there."""
    marker = item.get_closest_marker("skip")
    if marker is None:
        return None
    path, line, _ = item.location
    reason = str(marker.kwargs.get("reason", marker.args[0] if marker.args else "unconditional skip"))
    return _Outcome("skipped", (path, (line or 0) + 1, f"Skipped: {reason}"), [], [])


def _judge(item: pytest.Item, asked: _Asked) -> _Outcome:
    with tempfile.TemporaryDirectory(prefix="xmem-pytest-") as folder:
        reports = Path(folder) / "reports.jsonl"
        failure: Optional[XmemError] = None
        recording: Optional[Recording] = None
        try:
            recording = record(
                _command(item.config, item.nodeid),
                device=asked.device,
                engine=asked.engine,
                cwd=item.config.rootpath,
                env={_REPORTS: str(reports), "PYTHONPATH": _search_path(item.config)},
                output=Path(folder) / "trace.json.zst",
            )
        except XmemError as error:
            failure = error
        told = _read(reports)
        stdout = recording.stdout if recording else getattr(failure, "stdout", "")
        messages = recording.messages if recording else getattr(failure, "messages", "")
        sections = [(name, text) for name, text in (("Recorded process", stdout), ("xmem", messages)) if text]
        for one in told:
            if one["outcome"] == "skipped":
                return _Outcome("skipped", tuple(one["skipped"] or ()) or one["text"], sections, [])
            if one["outcome"] == "failed":
                return _Outcome("failed", one["text"], sections, [])
        if recording is None or failure is not None:
            return _Outcome("failed", f"nothing was recorded: {failure}", sections, [])
        options: Mapping[str, Option] = {"alloc_conf": asked.alloc_conf}
        answer = Fits(recording.replay(asked.device, **options), asked.limit)
        properties: List[Tuple[str, object]] = [("gpu_memory_need_bytes", answer.need_bytes)]
        if answer:
            return _Outcome("passed", None, sections, properties)
        return _Outcome("failed", _explained(answer), sections, properties)


def _explained(answer: Fits) -> str:
    """Return the reason with the memory at the peak, and the place of the peak."""
    at = answer.replay.json["peak"]["at"] or {}
    lines = [f"gpu_memory: {answer.reason}", "", "memory at the peak:"]
    roles = sorted(answer.replay.by_role.items(), key=lambda row: -row[1])
    lines += [f"  {role.replace('_', ' '):<16} {show_size(size):>12}" for role, size in roles if size]
    for name in ("phase", "op", "line"):
        if at.get(name):
            lines.append(f"  {name}: {at[name]}")
    return "\n".join(lines)


def _command(config: pytest.Config, nodeid: str) -> List[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "xmem.pytest_plugin"]
    command += ["--rootdir", str(config.rootpath), "--capture=no", "-q", "--no-header", "--no-summary"]
    if config.inipath is not None:
        command += ["-c", str(config.inipath)]
    if config.pluginmanager.hasplugin("xdist"):
        command += ["-n0"]
    return [*command, "--", nodeid]


def _search_path(config: pytest.Config) -> str:
    """Return the search path of modules, with the folders that pytest has put there."""
    return os.pathsep.join(path for path in sys.path if path and os.path.isdir(path))


def _read(reports: Path) -> List[Dict[str, Any]]:
    if not reports.exists():
        return []
    return [json.loads(line) for line in reports.read_text(encoding="utf-8").splitlines()]


def _reports(item: pytest.Item, outcome: _Outcome, start: float) -> List[pytest.TestReport]:
    """Return the outcome as pytest tells it: setup, call and teardown."""

    def report(when: Any, word: Any, told: Any, sections: List[Tuple[str, str]]) -> pytest.TestReport:
        return pytest.TestReport(
            nodeid=item.nodeid,
            location=item.location,
            keywords={name: 1 for name in item.keywords},
            outcome=word,
            longrepr=told,
            when=when,
            sections=sections,
            duration=time.time() - start if when == "call" else 0,
            start=start,
            stop=time.time(),
            user_properties=[*item.user_properties, *outcome.properties],
        )

    return [
        report("setup", "passed", None, []),
        report("call", outcome.word, outcome.told, outcome.sections),
        report("teardown", "passed", None, []),
    ]
