"""Refuses writes of Python to the files of the user, where nothing else keeps them out (systems other than Linux).

Seen by Python's audit events (PEP 578): libraries in C++ open files without them. torch.save uses its own writer,
which is wrapped.
"""

import errno
import os
import sys
import tempfile

from .. import imports, session
from ..patching import replace

CHANGING = {
    "os.chmod": 1,
    "os.chown": 1,
    "os.link": 2,
    "os.mkdir": 1,
    "os.remove": 1,
    "os.rename": 2,
    "os.rmdir": 1,
    "os.symlink": 2,
    "os.truncate": 1,
    "os.utime": 1,
    "shutil.rmtree": 1,
    "sqlite3.connect": 1,
}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

_passing = ()


def start():
    """Installs the audit hook, which stays until the process ends."""
    global _passing
    if not session.settings().get("refuse_writes"):
        return
    folders = {tempfile.gettempdir(), session.folder(), "/dev", "/tmp", "/var/tmp", *session.settings()["writable"]}
    _passing = tuple(sorted({os.path.realpath(folder) for folder in folders}))
    sys.addaudithook(_watch)
    imports.watch("torch.serialization", _serialization_imported)


def _watch(event, args):
    if event == "open":
        path, mode, flags = args
        writes = any(c in mode for c in "wax+") if isinstance(mode, str) else flags & WRITING
        if writes:
            _check(path)
    elif event in CHANGING:
        for path in args[: CHANGING[event]]:
            _check(path)


def _check(path):
    if not isinstance(path, (str, bytes, os.PathLike)):
        return
    path = os.path.realpath(os.fsdecode(path))
    if not any(path == folder or path.startswith(folder + os.sep) for folder in _passing):
        session.note(f"writing to {path} was refused: --let-write {os.path.dirname(path)} lets the script write there")
        raise PermissionError(errno.EACCES, "xmem profile keeps this file as it is", path)


def _serialization_imported(module):
    def open_file(original):
        def checked(name_or_buffer, mode, *args, **kwargs):
            if "w" in mode:
                _check(name_or_buffer)
            return original(name_or_buffer, mode, *args, **kwargs)

        return checked

    replace(module, "_open_file_like", open_file)
    replace(module, "_open_zipfile_writer", lambda original: lambda name: (_check(name), original(name))[1])
