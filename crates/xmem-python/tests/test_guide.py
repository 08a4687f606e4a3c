"""Every block of the guide's page about Python runs, and prints what the page says."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Iterator, Tuple

import pytest

from conftest import REPOSITORY

PAGE = REPOSITORY / "docs/guide/python.md"
JOBS = Path(__file__).parent / "jobs"


def blocks() -> Iterator[Tuple[str, str]]:
    """Return the language and the text of each block."""
    for found in re.finditer(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        yield found[1], found[2]


def is_like(expected: str, printed: str) -> bool:
    """Return whether a text is as expected, where `…` stands for anything."""
    pattern = ".*?".join(re.escape(part) for part in expected.strip().split("…"))
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


def shell(command: str, folder: Path) -> str:
    """Run a command as a user does, with this Python first."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    # Tests are the user's own: the plugin is named where the package is not installed.
    environment = {**os.environ, "PATH": path, "PYTEST_PLUGINS": "xmem.pytest_plugin"}
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
    )
    return done.stdout.decode()


@pytest.mark.torch
def test_every_block_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interactive = pytest.importorskip("IPython.core.interactiveshell")
    pytest.importorskip("transformers")
    (tmp_path / "traces").symlink_to(REPOSITORY / "traces")
    shutil.copy(JOBS / "train.py", tmp_path)
    monkeypatch.chdir(tmp_path)
    notebook = interactive.InteractiveShell()
    printed, wrong, count = "", "", 0
    for language, text in blocks():
        count += 1
        if language == "text":
            if not is_like(text, printed):
                wrong += f"expected:\n{text}\nprinted:\n{printed}\n"
        elif language == "sh":
            printed = shell(text, tmp_path)
        elif text.startswith("# ") and text.partition("\n")[0].endswith(".py"):
            (tmp_path / text.partition("\n")[0][2:]).write_text(text)
        else:
            assert language == "python", language
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                ran = notebook.run_cell(text)
            ran.raise_error()
            printed = out.getvalue()
            if text.startswith("%%xmem"):
                assert "needs 5" in ran.result.summary and "optimizer state" in ran.result._repr_html_()
    assert not wrong, wrong
    assert count >= 20
