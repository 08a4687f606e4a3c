"""What `xmem profile` wants of the recorder, and how it is told what happens.

Both share a folder: `settings.json` is read here, and lines of JSON go back through the FIFO
`control`, each written at once and shorter than PIPE_BUF, so that processes can share it.
"""

import json
import os
import sys

LONGEST_LINE = 4000

_folder = None
_settings = {}
_control = None
_first = False
_said = set()
redirected = {}
notes = []


def open_session(folder):
    """Reads the settings and says hello."""
    global _folder, _settings, _control
    with open(os.path.join(folder, "settings.json"), encoding="utf-8") as file:
        _settings = json.load(file)
    _folder = folder
    # Read and write: opening never waits, and the writing end outlives a reader.
    _control = os.open(os.path.join(folder, "control"), os.O_RDWR | os.O_CLOEXEC)
    _is_first_of_all()
    version = "{}.{}.{}".format(*sys.version_info[:3])
    tell("python", parent=os.getppid(), version=version)


def is_first():
    """Whether this is the first Python process that the recorder was loaded into: the script, and
    no helper that it starts."""
    return _first


def _is_first_of_all():
    global _first
    path = os.path.join(_folder, "first")
    try:
        with open(path, "x", encoding="ascii") as file:
            file.write(str(os.getpid()))
        _first = True
    except FileExistsError:
        with open(path, encoding="ascii") as file:
            # A process that replaced itself (`os.execv`) keeps its number.
            _first = file.read() == str(os.getpid())


def settings():
    """The contents of `settings.json`."""
    return _settings


def folder():
    """The shared folder."""
    return _folder


def tell(event, **facts):
    """Tells `xmem profile` something. If it is gone, so be it."""
    message = {"event": event, "pid": os.getpid(), **facts}
    line = json.dumps(message)
    if len(line) > LONGEST_LINE:
        for key in ("detail", "text"):
            if isinstance(message.get(key), str):
                message[key] = message[key][:1000] + " ..."
        line = json.dumps(message)
    try:
        os.write(_control, (line + "\n").encode())
    except OSError:
        pass


def note(text):
    """Says something that the user should know, once."""
    if text not in _said:
        _said.add(text)
        notes.append(text)
        tell("note", text=text)


def count(what):
    """Counts something that was redirected to the CPU."""
    redirected[what] = redirected.get(what, 0) + 1


def stop_reason():
    """Why `xmem profile` asked for an end; none if it did not."""
    try:
        with open(os.path.join(_folder, "stop"), encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return None
