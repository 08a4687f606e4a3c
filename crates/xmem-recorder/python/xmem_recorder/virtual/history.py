"""The history of CUDA's caching allocator, for the metadata of a recording on a virtual GPU.

The profiler's memory events lack the stream and the private pool of an allocation, the size that the program
requested, and the completion of a free that waits for other streams. The allocator's own history
(`torch.cuda.memory._record_memory_history`) has all of it but the pool, which segments of a snapshot have.

A script that records a history of its own gets the history that it asks for: what it cannot see of the
recorder's is hidden, and its entries are taken over.
"""

import os
import pickle
import sys

from .. import compiler, session
from ..patching import replace
from ..recording import lines

# One letter for each action; other entries are no operation of the allocator.
ACTIONS = {
    "alloc": "a",
    "free_requested": "f",
    "free_completed": "c",
    "segment_alloc": "s",
    "segment_free": "r",
    "segment_map": "m",
    "segment_unmap": "u",
    "oom": "o",
}
# `free_requested` with `free_completed` right behind it.
FREED_AT_ONCE = "F"
# The names under which `sitecustomize` loads the recorder's files.
OWN_FILES = "torch/xmem_recorder/"
# Addresses of blocks and segments are multiples of this (c10/cuda/CUDACachingAllocator.cpp, `kMinBlockSize`).
ALIGNMENT = 512
# Positions of arguments of `torch._C._cuda_record_memory_history`.
MODE, MAX_ENTRIES, SKIPPED_ACTIONS = 0, 3, 7

_torch = None
_snapshot = None


class _State:
    """The state of the history."""

    def __init__(self):
        self.on = False
        # True while the recorder itself switches the history.
        self.switching = False
        # The arguments with which the script records; None while it does not.
        self.of_script = None
        # Entries of each device that are no longer in the allocator's buffer.
        self.earlier = {}
        # Entries of each device at the front of the buffer that were taken over before.
        self.taken = {}
        # Segments of private pools: device, position among the entries, address, size, pool.
        self.pools = []
        self.reserved = None
        self.settings = None
        self.complete = True
        # What reads the history as it goes on after the recorded steps.
        self.reader = None
        # Lines of the program (`train.py(12): forward`) with their numbers from one, in order.
        self.places = {}


_state = _State()


def install(torch):
    """Wraps what a script calls for a history of its own, and the ends of the use of private pools."""
    global _torch, _snapshot
    _snapshot = getattr(torch._C, "_cuda_memorySnapshot", None)
    if _snapshot is None or not hasattr(torch._C, "_cuda_record_memory_history"):
        return
    _torch = torch
    replace(torch._C, "_cuda_record_memory_history", _recording_of_script)
    replace(torch._C, "_cuda_record_memory_history_legacy", _recording_of_script)
    replace(torch._C, "_cuda_memorySnapshot", _snapshot_of_script)
    for owner in (torch._C, torch.cuda.memory):
        for name in ("_cuda_endAllocateToPool", "_cuda_endAllocateCurrentStreamToPool"):
            replace(owner, name, lambda original: _noting_pools(torch, original))
    graph = torch.cuda.graphs.CUDAGraph
    replace(graph, "capture_end", lambda original: _noting_pools(torch, original))


def start():
    """Begins the history, once the device is initialized."""
    if _torch is None or _state.on:
        return
    _state.on = True
    # A script may have begun before it used the device: then there is nothing yet that its history lacks.
    if _state.of_script is None:
        _record_all()


def _record_all():
    context = "all" if session.settings().get("snapshot") else None
    if context is None and session.settings()["stacks"]:
        # The lines of allocations.
        context = "alloc"
    _record("all", context, sys.maxsize)


def _record(mode, context, max_entries):
    _state.switching = True
    try:
        record = _torch.cuda.memory._record_memory_history
        record(mode, context=context, stacks="python", max_entries=max_entries)
    finally:
        _state.switching = False


def _take_snapshot():
    return _without_own_frames(_whole_snapshot())


def _whole_snapshot():
    with compiler.unseen(_torch):
        try:
            return _snapshot(None)
        except TypeError:
            # Before torch 2.8 it expects no pool.
            return _snapshot()


def _entries():
    """Takes the entries from the allocator's buffer; returns the snapshot."""
    snapshot = _take_snapshot()
    for device, trace in enumerate(snapshot["device_traces"]):
        fresh = trace[_state.taken.get(device, 0):]
        _state.earlier.setdefault(device, []).extend(fresh)
        _state.taken[device] = len(trace)
    _keep_pools(snapshot)
    return snapshot


def _keep_pools(snapshot):
    for segment in snapshot["segments"]:
        pool = tuple(segment.get("segment_pool_id", (0, 0)))
        if pool != (0, 0):
            device = segment["device"]
            position = len(_state.earlier.get(device, ()))
            place = (segment["address"], segment["total_size"])
            _state.pools.append((device, position, *place, pool))


def _noting_pools(torch, original):
    """Wraps a function after which allocations no longer go to a private pool: segments may be freed before
    the end."""

    def ending(*args, **kwargs):
        result = original(*args, **kwargs)
        if _state.on:
            reserved = [
                torch.cuda.memory_stats(device).get("reserved_bytes.all.allocated", 0)
                for device in range(torch.cuda.device_count())
            ]
            if reserved != _state.reserved:
                _state.reserved = reserved
                (_state.reader or _entries)()
        return result

    return ending


# ---------------------------------------------------------------------------------------------
# Histories of the script
# ---------------------------------------------------------------------------------------------


def _recording_of_script(original):
    def record(*args, **kwargs):
        if _state.switching:
            return original(*args, **kwargs)
        if not _state.on:
            result = original(*args, **kwargs)
            _state.of_script = args if _records(args) else None
            return result
        before = _state.of_script
        _take_over()
        if before is None:
            # The script's history begins empty.
            _clear()
        result = original(*args, **kwargs)
        if _records(args):
            _state.of_script = args
            _forget_what_was_kept()
        else:
            _state.of_script = None
            _clear()
            _record_all()
        return result

    return record


def _records(args):
    """Returns whether these arguments switch a history on; older releases take a bool."""
    return bool(args) and (args[MODE] in ("state", "all") or args[MODE] is True)


def _take_over():
    """Takes the entries, and finds out whether they are all that happened."""
    _entries()
    args = _state.of_script
    if args is None:
        return
    limit = args[MAX_ENTRIES] if len(args) > MAX_ENTRIES else 0
    skipped = args[SKIPPED_ACTIONS] if len(args) > SKIPPED_ACTIONS else ()
    if args[MODE] != "all" or skipped or max(_state.taken.values(), default=0) >= limit:
        _state.complete = False


def _clear():
    _record(None, None, 1)
    _state.taken.clear()


def _forget_what_was_kept():
    """Begins behind the entries that a new request of the script has kept (torch 2.10 and later)."""
    snapshot = _whole_snapshot()
    for device, trace in enumerate(snapshot["device_traces"]):
        _state.taken[device] = len(trace)


def _snapshot_of_script(original):
    def snapshot(*args, **kwargs):
        result = _without_own_frames(original(*args, **kwargs))
        if _state.on and _state.of_script is None:
            result["device_traces"] = [[] for _ in result["device_traces"]]
            if "external_annotations" in result:
                result["external_annotations"] = []
            for segment in result["segments"]:
                _without_frames(segment)
                for block in segment["blocks"]:
                    _without_frames(block)
        return result

    return snapshot


def _without_own_frames(snapshot):
    """Leaves the recorder's functions out of the stacks of a snapshot, which many entries share."""
    done = {}

    def leave_out(entry):
        frames = entry.get("frames")
        if frames and id(frames) not in done:
            done[id(frames)] = frames
            frames[:] = [frame for frame in frames if not frame["filename"].startswith(OWN_FILES)]

    for trace in [*snapshot["device_traces"], snapshot.get("external_annotations", ())]:
        for entry in trace:
            leave_out(entry)
    for segment in snapshot["segments"]:
        leave_out(segment)
        for block in segment["blocks"]:
            leave_out(block)
            for earlier in block.get("history", ()):
                leave_out(earlier)
    return snapshot


def _without_frames(entry):
    if "frames" in entry:
        entry["frames"] = []
    entry.pop("history", None)


# ---------------------------------------------------------------------------------------------
# After the recorded steps
# ---------------------------------------------------------------------------------------------


def is_resumable():
    """Returns whether the history was the recorder's own, which can go on after the recorded steps."""
    return _torch is not None and _state.complete and _state.of_script is None and bool(_state.earlier)


def go_on(reader):
    """Begins again after `facts`; `reader` is called where entries have to be read."""
    _state.earlier, _state.taken, _state.pools = {}, {}, []
    _state.on, _state.reader = True, reader
    _record_all()


def take_entries():
    """The entries by device since they were last taken, and the segments of private pools that are there now: device,
    address, size and pool of each."""
    _entries()
    entries, _state.earlier = _state.earlier, {}
    pools, _state.pools = _state.pools, []
    if _state.of_script is None:
        _clear()
        _record_all()
    return entries, [(device, address, size, pool) for device, _, address, size, pool in pools]


def stop():
    """Ends it."""
    _state.on, _state.reader = False, None
    _record(None, None, 1)


def rows(entries):
    """Letter, address, size, stream and the number of the line of each operation of the allocator."""
    places = {}

    def place(entry):
        frames = entry.get("frames")
        if id(frames) not in places:
            places[id(frames)] = _place(frames or ())
        return places[id(frames)]

    return [row for row in _rows(entries, place) if row[0] is not None]


def places():
    """The lines of the program by their numbers in rows, from one."""
    return list(_state.places)


def _place(frames):
    """The number of the innermost line that is not of torch or of Python; 0 if there is none."""
    for frame in frames:
        path = frame["filename"]
        if lines.is_user_file(path):
            path = path.rpartition("site-packages/")[2] if "site-packages/" in path else os.path.basename(path)
            text = f"{path}({frame['line']}): {frame['name']}"
            return _state.places.setdefault(text, len(_state.places) + 1)
    return 0


# ---------------------------------------------------------------------------------------------
# The end
# ---------------------------------------------------------------------------------------------


def facts(records=()):
    """The history, for the metadata; None if there is none. Writes the snapshot that the user asked for.

    `records` are the events that the allocator recorded: pairs of a time in ns and a moment, in order.
    """
    if not _state.on:
        return None
    _state.on = False
    _take_over_at_the_end()
    return {
        "complete": _state.complete,
        "settings": _state.settings,
        "devices": [_device(index, trace, records) for index, trace in sorted(_state.earlier.items()) if trace],
    }


def _take_over_at_the_end():
    if _state.of_script is None:
        snapshot = _entries()
    else:
        _take_over()
        snapshot = _take_snapshot()
    _record(None, None, 1)
    settings = snapshot.get("allocator_settings", {})
    _state.settings = settings.get("PYTORCH_CUDA_ALLOC_CONF", settings.get("PYTORCH_ALLOC_CONF"))
    path = session.settings().get("snapshot")
    if path:
        traces = [_state.earlier[device] for device in sorted(_state.earlier)]
        # A snapshot that is cut off replaces no file.
        part = f"{path}.part"
        with open(part, "wb") as file:
            pickle.dump({**snapshot, "device_traces": traces}, file)
        os.replace(part, path)


def _device(index, trace, records):
    """The entries of a device, as columns."""
    pools = [
        (position, address, size, list(pool))
        for device, position, address, size, pool in _state.pools
        if device == index
    ]
    found, _, awaited = columns(_rows(trace, _line), pools, "lines", _moments(trace, records))
    return {"index": index, **found, "awaited": awaited}


def _rows(entries, value_of):
    """Letter (None for what is no operation), address, size, stream, and the value of an allocation, of each entry. One about
    a lack of memory has no address."""
    for entry in entries:
        letter = ACTIONS.get(entry["action"])
        value = value_of(entry) if letter == "a" else 0
        yield letter, entry.get("addr", 0), entry.get("size", 0), entry.get("stream", 0), value


def columns(rows, pools, name, moments=()):
    """The columns of rows: letter (None for what is no operation), address, size, stream, and a value of allocations, whose
    column has this name. `pools` are segments of private pools: the row before which each was seen, address, size, pool;
    `moments` are those that frees wait for, by their rows. Returns the columns, the number of letters before each row, and
    the moments by the places of the letters."""
    letters, addresses, sizes, streams, values, positions, awaited = [], [], [], [], [], [], []
    last = 0
    for row, (letter, address, size, stream, value) in enumerate(rows):
        positions.append(len(letters))
        if letter is None:
            continue
        address = last if letter == "o" else address // ALIGNMENT
        if row in moments:
            awaited.append([len(letters), *moments[row]])
        is_awaited = awaited and awaited[-1][0] == len(letters) - 1
        if letter == "c" and letters and letters[-1] == "f" and address == last and not is_awaited:
            letters[-1] = FREED_AT_ONCE
            continue
        letters.append(letter)
        addresses.append(address - last)
        last = address
        if letter in "asrmu":
            sizes.append(size)
        if letter == "a":
            _add_to_runs(streams, stream)
            _add_to_runs(values, value)
    positions.append(len(letters))
    found = {
        "actions": "".join(letters),
        "addresses": addresses,
        "sizes": sizes,
        "streams": [[hex(stream), count] for stream, count in streams],
        "pools": [[positions[row], address // ALIGNMENT, size, pool] for row, address, size, pool in pools],
        name: values,
    }
    return found, positions, awaited


def _add_to_runs(runs, value):
    """Adds a value to runs of equal ones, each with its length."""
    if runs and runs[-1][0] == value:
        runs[-1][1] += 1
    else:
        runs.append([value, 1])


def _line(entry):
    """The line of the innermost function of an entry's stack that is not of torch or of Python; 0 if there is none."""
    for frame in entry.get("frames", ()):
        if lines.is_user_file(frame["filename"]):
            return frame["line"]
    return 0


def _moments(trace, records):
    """The moments that frees wait for, by their rows in the trace.

    The allocator records an event on each stream that used a block as the block is freed, under a lock
    (c10/cuda/CUDACachingAllocator.cpp, `insert_events`), so that nothing is between the two in the history.
    """
    found, at = {}, 0
    for row, entry in enumerate(trace):
        following = trace[row + 1] if row + 1 < len(trace) else {}
        # Whole microseconds: an event of the same one as the next entry belongs to a free that has none yet, unless
        # its end is the next entry.
        later = following.get("time_us")
        is_free = entry["action"] == "free_requested"
        ends = following.get("action") == "free_completed" and following["addr"] == entry["addr"]
        moments = []
        while at < len(records):
            time = records[at][0] // 1000
            takes_one = is_free and not ends and not moments
            if later is not None and (time > later or time == later and not takes_one):
                break
            moments.append(records[at][1])
            at += 1
        if moments and is_free:
            found[row] = moments
    return found
