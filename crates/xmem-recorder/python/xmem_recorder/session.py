"""The settings from `xmem profile`, and the messages to it.

Both use a shared folder: `settings.json` is read from it, and lines of JSON are sent through its FIFO
`control`, each in one write shorter than PIPE_BUF, so that several processes can write.
"""

import json
import os
import sys

MAX_LINE = 4000

_folder = None
_settings = {}
_control = None
_first = False
_noted = set()
redirected = {}
notes = []


def open_session(folder):
    """Reads the settings and sends the first message."""
    global _folder, _settings, _control
    with open(os.path.join(folder, "settings.json"), encoding="utf-8") as file:
        _settings = json.load(file)
    _folder = folder
    # Read and write: opening does not block, and writing works without another reader.
    _control = os.open(os.path.join(folder, "control"), os.O_RDWR | os.O_CLOEXEC)
    _determine_first()
    version = "{}.{}.{}".format(*sys.version_info[:3])
    send("python", parent=os.getppid(), version=version)


def is_first():
    """Returns whether this is the first Python process with the recorder: the script, not a helper
    process."""
    return _first


def _determine_first():
    global _first
    path = os.path.join(_folder, "first")
    try:
        with open(path, "x", encoding="ascii") as file:
            file.write(str(os.getpid()))
        _first = True
    except FileExistsError:
        with open(path, encoding="ascii") as file:
            # A process that replaced itself (`os.execv`) keeps its id.
            _first = file.read() == str(os.getpid())


def settings():
    """The contents of `settings.json`."""
    return _settings


def folder():
    """The shared folder."""
    return _folder


def send(event, **facts):
    """Sends a message to `xmem profile`, if it still runs."""
    message = {"event": event, "pid": os.getpid(), **facts}
    line = json.dumps(message)
    if len(line) > MAX_LINE:
        for key in ("detail", "text"):
            if isinstance(message.get(key), str):
                message[key] = message[key][:1000] + " ..."
        line = json.dumps(message)
    try:
        os.write(_control, (line + "\n").encode())
    except OSError:
        pass


def note(text):
    """Sends a note for the user, once."""
    if text not in _noted:
        _noted.add(text)
        notes.append(text)
        send("note", text=text)


def count(what):
    """Counts a call that was redirected to the CPU."""
    redirected[what] = redirected.get(what, 0) + 1


def stop_reason():
    """The reason why `xmem profile` requested the end; None if it did not."""
    try:
        with open(os.path.join(_folder, "stop"), encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return None
