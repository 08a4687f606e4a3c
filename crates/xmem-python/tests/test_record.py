"""Recordings with PyTorch: scripts, commands, functions, blocks and cells."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import xmem
JOBS = Path(__file__).parent / "jobs"

pytestmark = pytest.mark.torch


def test_a_script_is_recorded_with_its_arguments(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "trace.json.zst"
    small = xmem.record(JOBS / "train.py", ["--batch-size", 8], device="t4-16g", output=output, echo=True)
    assert small.complete and small.path == output and output.exists()
    assert small.stdout == "trained 5 steps\n" and "trained 5 steps" in capfd.readouterr().out
    assert small.replay().device == "t4-16g" and small.replay().fits
    large = xmem.record([sys.executable, str(JOBS / "train.py"), "--batch-size", "4096"], device="t4-16g")
    assert large.replay().peak_allocated_bytes > small.replay().peak_allocated_bytes


def test_the_trace_lives_as_long_as_its_answers() -> None:
    recording = xmem.record(JOBS / "train.py", device="t4-16g")
    path = recording.path
    answer = recording.replay("a100-40g", explain=True)
    del recording
    assert len(answer.blocks()) > 0
    del answer
    assert not path.exists()


def test_a_function_of_a_module_and_one_of_a_script_are_called_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(JOBS))
    import functions

    recording = xmem.record(functions.train, [128], {"steps": 4}, device="t4-16g")
    assert recording.stdout == "trained\n" and recording.replay().fits
    script = subprocess.run([sys.executable, str(JOBS / "functions.py")], stdout=subprocess.PIPE, check=True)
    assert script.stdout == b"trained True\n"


def test_what_cannot_be_recorded_says_why(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="top of a module"):
        xmem.record(lambda: None)
    with pytest.raises(xmem.RecordingError, match="without importing torch") as error:
        xmem.record([sys.executable, "-c", "print('hello')"])
    assert error.value.stdout == "hello\n" and error.value.code == 3
    script = tmp_path / "fails.py"
    text = (JOBS / "train.py").read_text()
    script.write_text(text.replace("    optimizer.step()", "    optimizer.step()\n    assert step < 1"))
    with pytest.warns(xmem.IncompleteRecordingWarning):
        incomplete = xmem.record(script, device="t4-16g")
    assert not incomplete.complete and "AssertionError" in incomplete.messages


def test_a_block_is_recorded_in_this_process(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    with xmem.recording(tmp_path / "trace.json.gz") as recorded:
        model = torch.nn.Linear(1024, 1024)
        optimizer = torch.optim.Adam(model.parameters())
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(64, 1024)).sum().backward()
            optimizer.step()
    answer = recorded.replay("a100-40g")
    size = (1024 * 1024 + 1024) * 4
    assert recorded.complete and answer.fits
    assert answer.by_role["parameter"] == size and answer.by_role["optimizer_state"] >= 2 * size
    assert answer.json["target"]["allocator"]["torch_from"] == "input"
    with pytest.raises(ValueError, match=r"\.json\.gz"):
        xmem.recording("trace.json.zst")


def test_a_cell_is_recorded_and_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    interactive = pytest.importorskip("IPython.core.interactiveshell")
    monkeypatch.chdir(JOBS)
    shell = interactive.InteractiveShell.instance()
    shell.run_cell("%load_ext xmem").raise_error()
    ran = shell.run_cell("%%xmem -d t4-16g --to kept -q\nfrom functions import train\ntrain(64)\n")
    ran.raise_error()
    assert isinstance(ran.result, xmem.Replay) and ran.result.device == "t4-16g"
    assert "FITS" in ran.result._repr_html_() and shell.user_ns["kept"].stdout == "trained\n"
    assert "unrecognized" in str(shell.run_cell("%%xmem --devic t4-16g\npass").error_in_exec)
    assert "torch" in str(shell.run_cell("%%xmem -q\npass").error_in_exec)
