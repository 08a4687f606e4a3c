"""Objects, and few integers, that a process receives from one that does not run.

The command runs again as the sending rank, in a process that waits once it has sent them, until it is asked for more. To
get so far, it may need what others send: later stages of a pipeline learn the shapes of their input from the stages
before them (torch/distributed/pipelining/stage.py, `_shape_inference`; deepspeed/runtime/pipe/engine.py,
`_recv_tensor_meta`). What all of them have sent is kept in one folder, so that nothing is sent twice.
"""

import contextlib
import functools
import hashlib
import inspect
import json
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import time

from .. import engine, errors, session
from ..patching import bound
from ..virtual import known, objects, received, shapes
from . import launchers, place

# The part of a sender's output that an error shows, in bytes.
MAX_SHOWN = 2000
# Processes that run at once, each for the one before.
MAX_DEPTH = 16
# Time between two looks for a message, in seconds.
INTERVAL = 0.01

_torch = None
# The number of messages, by their sender and receivers.
_counts = {}
# The processes that send what this one receives, by rank.
_senders = {}
_awaited = None


def install(torch):
    """The wrappers of functions of `torch.distributed`, by their names."""
    global _torch, _awaited
    _torch = torch
    if "awaited" in session.settings():
        _awaited = _Awaited(**session.settings()["awaited"])
    return {
        "send_object_list": _sending,
        "recv_object_list": _receiving,
        "broadcast_object_list": _broadcasting,
        "send": _sending_shapes,
        "recv": _receiving_shapes,
    }


def _sending(original):
    names = inspect.signature(original)

    def send_object_list(*args, **kwargs):
        if _awaited is not None:
            given = bound(names, args, kwargs).arguments
            _awaited.keep(_next_path(_own(), f"{global_rank(given, 'dst')}"), given["object_list"])
        return original(*args, **kwargs)

    return send_object_list


def _receiving(original):
    names = inspect.signature(original)

    def recv_object_list(*args, **kwargs):
        given = bound(names, args, kwargs).arguments
        source = global_rank(given, "src")
        if source is None:
            raise RuntimeError(f"rank {_own()} receives objects from any rank, and runs alone (xmem profile --ranks)")
        objects.fill(_torch, given["object_list"], _receive(source, f"{_own()}"), given["device"])
        return source

    return recv_object_list


def _broadcasting(original):
    names = inspect.signature(original)

    def broadcast_object_list(*args, **kwargs):
        given = bound(names, args, kwargs)
        arguments = given.arguments
        group = arguments["group"]
        if _torch.distributed.get_rank(group) < 0:
            return original(*args, **kwargs)
        source = global_rank(arguments, "src") or 0
        if source != _torch.distributed.get_rank():
            try:
                arguments["object_list"][:] = pickle.loads(_receive(source, _of_group(group)))
            except Exception as error:
                session.note(f"rank {_own()} keeps its own objects in broadcast_object_list: {_reason(error)}")
            arguments["src"] = _torch.distributed.get_rank()
            if "group_src" in arguments:
                arguments["group_src"] = None
        elif _awaited is not None:
            _awaited.keep(_next_path(source, _of_group(group)), arguments["object_list"])
        return original(*given.args, **given.kwargs)

    return broadcast_object_list


def _sending_shapes(original):
    names = inspect.signature(original)

    def send(*args, **kwargs):
        given = bound(names, args, kwargs).arguments
        if _awaited is not None and shapes.are_in(given["tensor"]):
            path = _next_path(_own(), f"{global_rank(given, 'dst')}-shapes")
            _awaited.keep(path, shapes.read(_torch, given["tensor"]))
        return original(*args, **kwargs)

    return send


def _receiving_shapes(original):
    names = inspect.signature(original)

    def recv(*args, **kwargs):
        given = bound(names, args, kwargs).arguments
        tensor, source = given["tensor"], global_rank(given, "src")
        result = original(*args, **kwargs)
        if source is not None and shapes.are_in(tensor):
            try:
                shapes.write(_torch, tensor, pickle.loads(_receive(source, f"{_own()}-shapes")))
            except Exception as error:
                session.note(f"rank {_own()} keeps its own integers in recv: {_reason(error)}")
        return result

    return recv


def broadcast_integers(tensor, source, group):
    """Few integers on the device that a rank sends to a group: other ranks have them once they use them."""
    is_few = tensor.nbytes <= received.MAX_BYTES
    path = _next_path(source, f"{_of_group(group)}-integers") if is_few else None
    if source != _own():
        received.keep(tensor, source, functools.partial(_elements, source, path) if is_few else None)
    elif is_few and _awaited is not None:
        _awaited.keep(path, shapes.read(_torch, tensor) if known.is_known(tensor) else None)


def _elements(source, path):
    try:
        return pickle.loads(_message(source, path))
    except Exception as error:
        session.note(f"what rank {source} broadcasts does not arrive: {_reason(error)}")
        raise


def _reason(error):
    return error.reason if isinstance(error, SenderEndedError) else errors.describe(error)


def _own():
    return place.wanted()["rank"]


def global_rank(arguments, name):
    """The sender, or the receiver, of a message; None if it may be any."""
    of_group = arguments.get(f"group_{name}")
    if of_group is None:
        return arguments[name]
    group = arguments["group"]
    return of_group if group is None else _torch.distributed.get_global_rank(group, of_group)


def _of_group(group):
    """A name of the processes of a group, which is the same in each of them."""
    ranks = _torch.distributed.get_process_group_ranks(group or _torch.distributed.group.WORLD)
    return "group" + hashlib.sha256(repr(sorted(ranks)).encode()).hexdigest()[:16]


def _folder():
    path = session.settings().get("messages") or os.path.join(session.folder(), "messages")
    os.makedirs(path, mode=0o700, exist_ok=True)
    return path


def _next_path(source, targets):
    """The file of the next message of these processes."""
    _counts[source, targets] = _counts.get((source, targets), 0) + 1
    return os.path.join(_folder(), f"{source}-{targets}-{_counts[source, targets]}")


# ---------------------------------------------------------------------------------------------
# The process that receives
# ---------------------------------------------------------------------------------------------


def _receive(source, targets):
    """The next message from another process, which runs for it."""
    return _message(source, _next_path(source, targets))


def _message(source, path):
    """A message from another process."""
    if not os.path.exists(path):
        if source not in _senders:
            session.note(f"rank {source} runs, too, until it has sent what rank {_own()} receives from it")
            _senders[source] = _Sender(source)
        _senders[source].wait_for(path)
    with open(path, "rb") as file:
        return file.read()


class SenderEndedError(RuntimeError):
    """A process that runs for what it sends ended before it had sent that."""

    def __init__(self, rank, status, output):
        super().__init__(
            f"rank {rank}, which runs for what rank {_own()} receives from it (xmem profile --ranks), ended with {status} "
            f"before it had sent that. Its output ends with:\n{output}"
        )
        self.reason = f"rank {rank} ended with {status} before it sent any; record it with --rank {rank} to see why"


class _Sender:
    """The command as another process of the job, in a session without `xmem profile`."""

    def __init__(self, rank):
        self.rank = rank
        depth = session.settings().get("depth", 0) + 1
        if depth > MAX_DEPTH:
            raise RuntimeError(f"rank {_own()} waits for rank {rank}, and {depth} ranks wait for each other")
        folder = tempfile.mkdtemp(prefix="rank-", dir=session.folder())
        self.output = os.path.join(folder, "output")
        # The process ends when this one does, as the pipe is closed then.
        asked, self.ask = os.pipe()
        _write_session(folder, rank, asked, depth)
        with open(self.output, "wb") as output:
            self.process = subprocess.Popen(
                _command(rank),
                env=_environment(rank, folder),
                pass_fds=(asked,),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        os.close(asked)

    def wait_for(self, path):
        """Waits until it has sent a message; raises `RuntimeError` if it ends before."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self.ask, f"{path}\n".encode())
        while not os.path.exists(path):
            status = self.process.poll()
            if status is not None and not os.path.exists(path):
                raise SenderEndedError(self.rank, status, self._end_of_output())
            time.sleep(INTERVAL)

    def _end_of_output(self):
        with open(self.output, "rb") as file:
            file.seek(max(0, os.path.getsize(self.output) - MAX_SHOWN))
            return file.read().decode(errors="replace")


def _write_session(folder, rank, asked, depth):
    os.symlink(os.path.join(session.folder(), "path"), os.path.join(folder, "path"))
    with open(os.path.join(folder, "control"), "wb"):
        pass
    answer = engine.answer()
    settings = {
        **session.settings(),
        "purpose": session.RUN,
        "rank": _place(rank),
        "plan": None,
        "messages": _folder(),
        "awaited": {"descriptor": asked},
        "depth": depth,
        "answer": answer and {**answer, "log": os.path.join(folder, "log")},
    }
    with open(os.path.join(folder, "settings.json"), "w", encoding="utf-8") as file:
        json.dump(settings, file)


def _place(rank):
    wanted = place.wanted()
    size = wanted["local_world_size"]
    return {**wanted, "rank": rank, "local_rank": rank % size, "node": rank // size}


def _command(rank):
    """The command of this process, with the local rank that some launchers put into it."""
    arguments = getattr(sys, "orig_argv", None)
    if arguments is None:
        # Python 3.9.
        with open("/proc/self/cmdline", "rb") as file:
            arguments = [os.fsdecode(argument) for argument in file.read().split(b"\0")[:-1]]
    own, other = place.wanted()["local_rank"], _place(rank)["local_rank"]
    replaced = {f"--{name}={own}": f"--{name}={other}" for name in ("local_rank", "local-rank")}
    return [sys.executable, *(replaced.get(argument, argument) for argument in arguments[1:])]


def _environment(rank, folder):
    at = _place(rank)
    environment = {**os.environ, **launchers.variables(at), "NODE_RANK": str(at["node"]), session.VARIABLE: folder}
    own = os.path.join(session.folder(), "path")
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    environment["PYTHONPATH"] = os.pathsep.join(os.path.join(folder, "path") if entry == own else entry for entry in entries)
    return environment


# ---------------------------------------------------------------------------------------------
# The process that sends
# ---------------------------------------------------------------------------------------------


class _Awaited:
    """What the process that runs this one waits for."""

    def __init__(self, descriptor):
        self.paths = []
        self.changed = threading.Condition()
        threading.Thread(target=self._listen, args=(descriptor,), daemon=True).start()

    def _listen(self, descriptor):
        with open(descriptor, encoding="utf-8") as file:
            for line in file:
                with self.changed:
                    self.paths.append(line.rstrip("\n"))
                    self.changed.notify()
        os._exit(0)

    def keep(self, path, objects):
        """Writes a message; waits if nothing else is awaited."""
        part = f"{path}.{os.getpid()}"
        with open(part, "wb") as file:
            pickle.dump(objects, file)
        os.replace(part, path)
        with self.changed:
            while all(os.path.exists(wanted) for wanted in self.paths):
                self.changed.wait()
