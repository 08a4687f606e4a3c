"""The settings from `xmem profile`, and the messages to it.

Both use a shared folder: `settings.json` is read from it, and lines of JSON are sent through its FIFO
`control`, each in one write shorter than PIPE_BUF, so that several processes can write.

Files are made with mode 0600, whatever the umask.
"""

import json
import os
import sys

# Bytes of a line and its ends: PIPE_BUF is 512 or more (POSIX), and 4096 on Linux.
MAX_LINE = 4000
# Characters of a text that is shortened; JSON needs up to six bytes for each.
MAX_TEXT = 300


# The variable that names the shared folder.
VARIABLE = "XMEM_RECORDER"

# What the script is run for.
RECORD = "record"
RUN = "run"
RUN_ON_DEVICE = "run-on-device"
EXPORT_GRAPH = "export-graph"


class _Session:
    """The connection of this process to `xmem profile`."""

    def __init__(self):
        self.folder = None
        self.settings = {}
        # The descriptor of the FIFO, and the file that it was when it was opened.
        self.control = None
        self.control_file = None
        self.is_first = False
        # The notes for the user, in their order, each once.
        self.notes = {}
        # What became of measures, by their names: the places to which each was applied, and what it says.
        self.measures = {}


_session = _Session()


def open_session(folder):
    """Reads the settings and sends the first message."""
    with open(os.path.join(folder, "settings.json"), encoding="utf-8") as file:
        _session.settings = json.load(file)
    _session.folder = folder
    _open_control()
    _determine_first()
    version = "{}.{}.{}".format(*sys.version_info[:3])
    send("python", parent=os.getppid(), version=version)


def _open_control():
    """Opens the FIFO for reading and writing: this does not block, and writing works without another
    reader."""
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    _session.control = os.open(os.path.join(_session.folder, "control"), flags)
    _session.control_file = _file_of(_session.control)


def _file_of(descriptor):
    """Returns the device and inode of an open file; None if the descriptor is closed."""
    try:
        status = os.fstat(descriptor)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def is_first():
    """Returns whether this is the first Python process with the recorder: the script, not a helper
    process."""
    return _session.is_first


def _determine_first():
    path = os.path.join(_session.folder, "first")
    try:
        first = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.write(first, str(os.getpid()).encode())
        finally:
            os.close(first)
        _session.is_first = True
    except FileExistsError:
        with open(path, encoding="ascii") as file:
            # A process that replaced itself (`os.execv`) keeps its id.
            _session.is_first = file.read() == str(os.getpid())


def settings():
    """The contents of `settings.json`."""
    return _session.settings


def purpose():
    """What the script is run for."""
    return _session.settings.get("purpose", RECORD)


def folder():
    """The shared folder."""
    return _session.folder


def send(event, **facts):
    """Sends a message to `xmem profile`, if it still runs."""
    message = {"event": event, "pid": os.getpid(), **facts}
    line = json.dumps(message)
    if len(line) > MAX_LINE:
        for key, value in facts.items():
            if isinstance(value, str) and len(value) > MAX_TEXT and key != "path":
                message[key] = value[:MAX_TEXT] + " ..."
        line = json.dumps(message)
    try:
        # The script may have closed all files (`os.closerange`), and opened one of its own since.
        if _session.control is None or _file_of(_session.control) != _session.control_file:
            _open_control()
        # The first line end completes what another process has written.
        os.write(_session.control, ("\n" + line + "\n").encode())
    except OSError:
        pass


def note(text):
    """Sends a note for the user, once."""
    if text not in _session.notes:
        _session.notes[text] = True
        send("note", text=text)


def notes():
    """The notes that were sent."""
    return list(_session.notes)


def report_measure(name, places, text):
    """Says to how many places a measure was applied, or why to none."""
    _session.measures[name] = {"places": places, "text": text}
    send("measure", name=name, places=places, text=text)


def measures():
    """What became of measures, by their names."""
    return _session.measures


def stop_reason():
    """The reason why `xmem profile` requested the end; None if it did not."""
    try:
        with open(os.path.join(_session.folder, "stop"), encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return None
