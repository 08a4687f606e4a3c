"""The program `xmem`: where it is, how it is run, and how its options are written."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import threading
from pathlib import Path
from typing import IO, List, Mapping, NamedTuple, NoReturn, Optional, Sequence, Tuple, Type, Union

from ._errors import InputError, UsageError, XmemError

__all__ = ["Option", "Ran", "arguments", "find", "message", "run", "stream"]

Option = Union[None, bool, int, float, str, "os.PathLike[str]", Sequence[Union[int, float, str]]]
"""The value of an option of the command line: `True` for one without a value, a list for one that is repeated."""

NAME = "xmem.exe" if os.name == "nt" else "xmem"

# Options whose value is true or false. All others are given or not.
TRUTHS = {"set_to_none"}
# Options that take several values with commas.
LISTS = {"devices", "order"}


class Ran(NamedTuple):
    """A run of the program that has ended."""

    code: int
    stdout: str
    stderr: str


def find() -> Path:
    """Return the path of the program: `XMEM_PROGRAM` in the environment, else that of this installation, else on `PATH`.

    Raises `FileNotFoundError` if there is none.
    """
    named = os.environ.get("XMEM_PROGRAM")
    if named:
        return Path(named)
    package = Path(__file__).resolve().parent
    folders = [sysconfig.get_path("scripts"), str(Path(sys.executable).parent)]
    if sys.version_info >= (3, 10):
        folders.append(sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user")))
    # `pip install --target` and `--prefix`.
    folders += [str(package.parent / "bin"), *(str(up / "bin") for up in list(package.parents)[2:4])]
    for folder in folders:
        if (Path(folder) / NAME).is_file():
            return Path(folder) / NAME
    on_path = shutil.which(NAME)
    if on_path:
        return Path(on_path)
    raise FileNotFoundError("the program `xmem` is not installed beside the package: install the wheel xmem-gpu again")


def arguments(options: Mapping[str, Option], reserved: Sequence[str] = ()) -> List[str]:
    """Return options as arguments: `alloc_conf="…"` is `--alloc-conf=…`, `explain=True` is `--explain`.

    Raises `TypeError` for an option in `reserved`, which the calling function sets itself.

    >>> arguments({"alloc_conf": "expandable_segments:True", "explain": True, "capacity": None})
    ['--alloc-conf=expandable_segments:True', '--explain']
    >>> arguments({"no_rule": ["model-placement", "gru-cell"], "set_to_none": False})
    ['--no-rule=model-placement', '--no-rule=gru-cell', '--set-to-none=false']
    """
    found: List[str] = []
    for name, value in options.items():
        if name in reserved:
            raise TypeError(f"the option `{name}` cannot be given here")
        flag = "--" + name.replace("_", "-")
        if isinstance(value, bool) and name in TRUTHS:
            found.append(f"{flag}={str(value).lower()}")
        elif value is True:
            found.append(flag)
        elif value is None or value is False:
            continue
        elif isinstance(value, (str, int, float, os.PathLike)):
            found.append(f"{flag}={os.fspath(value) if isinstance(value, os.PathLike) else value}")
        elif name in LISTS:
            found.append(f"{flag}={','.join(map(str, value))}")
        else:
            found += [f"{flag}={one}" for one in value]
    return found


def environment(changes: Optional[Mapping[str, str]] = None) -> "dict[str, str]":
    """Return the environment of the program: that of this process, without colors, and with changes."""
    return {**os.environ, "NO_COLOR": "1", **(changes or {})}


def run(args: Sequence[str]) -> Ran:
    """Run the program to its end, and return what it printed."""
    done = subprocess.run(
        [str(find()), *args],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        check=False,
    )
    return Ran(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))


def stream(args: Sequence[str], changes: Mapping[str, str], folder: Optional[str], echo: bool) -> Ran:
    """Run the program; with `echo`, what it prints is printed here at once (also in a notebook)."""
    with subprocess.Popen(
        [str(find()), *args],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(changes),
        cwd=folder,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        texts: Tuple[List[str], List[str]] = ([], [])
        readers = [
            threading.Thread(target=_copy, args=(pipe, text, sink if echo else None), daemon=True)
            for pipe, text, sink in zip((process.stdout, process.stderr), texts, (sys.stdout, sys.stderr))
        ]
        for reader in readers:
            reader.start()
        try:
            process.wait()
        except KeyboardInterrupt:
            # In a terminal the program has got the signal as well; it saves what it has.
            process.terminate()
            process.wait()
            raise
        for reader in readers:
            reader.join()
    return Ran(process.returncode, "".join(texts[0]), "".join(texts[1]))


def _copy(pipe: IO[bytes], into: List[str], sink: Optional[IO[str]]) -> None:
    for line in pipe:
        text = line.decode("utf-8", "replace")
        into.append(text)
        if sink is not None:
            sink.write(text)
            sink.flush()


def message(stderr: str) -> str:
    """Return an error of the program as one paragraph, without its frame.

    >>> message("  × no device `b`\\n  │ here\\n  help: choose one\\n")
    'no device `b` here; help: choose one'
    """
    lines = [line.strip() for line in stderr.splitlines()]
    first = next((at for at, line in enumerate(lines) if line.startswith(("×", "error:"))), 0)
    words = []
    for line in lines[first:]:
        if line.startswith("Usage:"):
            break
        text = line.lstrip("×│├╰─▶ ").replace("error: ", "", 1) if line else ""
        if text:
            words.append(("; " if text.startswith(("help:", "tip:")) else " ") + text)
    return "".join(words).strip("; ").strip()


def fail(ran: Ran) -> NoReturn:
    """Raise the error of a run that has no answer."""
    kinds: Mapping[int, Type[XmemError]] = {2: UsageError, 3: InputError}
    kind = kinds.get(ran.code, XmemError)
    raise kind(message(ran.stderr) or f"xmem ended with exit code {ran.code}", ran.code)
