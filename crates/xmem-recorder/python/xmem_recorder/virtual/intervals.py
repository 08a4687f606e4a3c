"""The allocator's history after the recorded steps, as intervals between moments of the script.

Of a long history, equal intervals are reduced: the first ones are kept as they are, and of the others only what stays,
blocks that outlive them and frees of older blocks. Of equal intervals in a row that raise the peak, the last one is kept
as it is, too. So the history of a script of any length has a bounded size, and every peak.
"""

from . import history

# Equal intervals that are kept as they are, where not all of them are.
MAX_EQUAL = 2
# Actions up to which all intervals are kept: where blocks lie depends on every one of them.
MAX_WHOLE = 500_000
# Actions of the allocator after which its history is read.
MAX_UNREAD = 30_000
# Actions that are kept, of all devices; from then on, all intervals are reduced.
MAX_KEPT = 3_000_000


class _Device:
    """What is kept of a device."""

    def __init__(self):
        # The part of the script, the time in microseconds at which it begins, and the rows of each interval.
        self.chunks = []
        # Segments of private pools: the number of chunks before each was seen, address, size, pool.
        self.pools = []
        # Bytes that the program has requested, and their peak.
        self.requested = 0
        self.peak = 0
        # The interval that is kept as it is as long as no equal one has a higher peak: its chunk and its key.
        self.highest = None
        # The moments since the history was last read: the number of actions before each, and the part that begins.
        self.moments = []
        # The actions that were read.
        self.read = 0
        self.part = None
        self.start = 0


class _State:
    """What is kept of all devices."""

    def __init__(self):
        self.torch = None
        self.devices = {}
        # The number of intervals of each kind, by device, part and actions.
        self.seen = {}
        self.kept = 0
        self.reduced = 0
        # Steps up to the interval that is added, and up to the last one that was new.
        self.steps = 0
        self.changed = 0
        # The time in microseconds of that one, and the number of intervals since.
        self.changed_at = 0
        self.unchanged = 0


_state = _State()


def begin(torch, part, now):
    """Begins with the history, which goes on."""
    _state.torch = torch
    for index in range(torch.cuda.device_count()):
        device = _Device()
        stats = torch._C._cuda_memoryStats(index)
        device.requested = device.peak = stats["requested_bytes"]["all"]["current"]
        device.read = _actions(stats)
        device.part, device.start = part, now
        _state.devices[index] = device
    history.go_on(_read)
    # The private pools that are there.
    _read()


def mark(part, now, steps):
    """Begins an interval of a part of the script, after a number of steps."""
    unread = 0
    for index, device in _state.devices.items():
        actions = _actions(_state.torch._C._cuda_memoryStats(index))
        device.moments.append((actions, part, now, steps))
        unread = max(unread, actions - device.read)
    if unread > MAX_UNREAD:
        _read()


def reduced():
    """The number of intervals of which only what stays was kept."""
    return _state.reduced


def settled():
    """The number of steps since an interval was new, or had a new peak."""
    return _state.steps - _state.changed


def unchanged():
    """The number of intervals since then."""
    return _state.unchanged


def changed_at():
    """The beginning of that interval, in seconds since that of the history."""
    return _state.changed_at / 1e6


def kinds(part):
    """The number of different intervals of a part of the script, and of all of them."""
    counts = [count for (_, of, _), count in _state.seen.items() if of == part]
    return len(counts), sum(counts)


def facts():
    """What was kept, as columns by device. Ends the history."""
    _read()
    for device in _state.devices.values():
        _keep_part(device)
    history.stop()
    return [_columns(index, device) for index, device in _state.devices.items() if device.chunks]


def _columns(index, device):
    rows, bounds, parts = [], [], []
    for part, start, of_chunk in device.chunks:
        bounds.append(len(rows))
        rows.extend(of_chunk)
        if not (parts and parts[-1][0] == part):
            parts.append([part, start, bounds[-1]])
    bounds.append(len(rows))
    pools = [[bounds[chunk], address, size, list(pool)] for chunk, address, size, pool in device.pools]
    columns, positions, _ = history.columns(rows, pools, "places")
    # The part, its beginning in microseconds and its first action.
    parts = [[part, start, positions[row]] for part, start, row in parts]
    return {"index": index, **columns, "parts": parts}


def _actions(stats):
    """The number of allocations and frees up to now."""
    counts = stats["allocation"]["all"]
    return counts["allocated"] + counts["freed"]


def _read():
    """Reads the history, and divides it into intervals."""
    traces, pools = history.take_entries()
    for index, device in _state.devices.items():
        entries = traces.get(index, [])
        moments, device.moments = device.moments, []
        at = 0
        for actions, part, now, steps in moments:
            begin = at
            _state.steps = steps
            while at < len(entries) and device.read < actions:
                device.read += _is_action(entries[at])
                at += 1
            # What follows of itself from the last action.
            while at < len(entries) and entries[at]["action"] == "free_completed":
                at += 1
            _add(index, device, entries[begin:at])
            if part != device.part:
                _keep_part(device)
            device.part, device.start = part, now
        device.read += sum(map(_is_action, entries[at:]))
        _add(index, device, entries[at:])
    for index, address, size, pool in pools:
        device = _state.devices.get(index)
        if device is not None:
            device.pools.append((len(device.chunks), address, size, pool))


def _keep_part(device):
    """Keeps a part that asked for nothing."""
    if device.chunks and device.chunks[-1][0] != device.part:
        device.chunks.append([device.part, device.start, []])


def _is_action(entry):
    return entry["action"] in ("alloc", "free_requested")


def _add(index, device, entries):
    """Adds an interval, or what the history has of it so far."""
    rows = history.rows(entries)
    if not rows:
        return
    key = index, device.part, hash(tuple([(row[0], row[2], row[3], row[4]) for row in rows]))
    count = _state.seen[key] = _state.seen.get(key, 0) + 1
    peak = _peak(device, rows)
    chunk = [device.part, device.start, rows]
    device.chunks.append(chunk)
    is_higher = peak > device.peak
    if _state.kept < MAX_WHOLE or count <= MAX_EQUAL and _state.kept < MAX_KEPT:
        device.highest = None
        _state.kept += len(rows)
    elif is_higher:
        if device.highest is not None and device.highest[1] == key:
            _reduce(device.highest[0])
        device.highest = chunk, key
    else:
        _reduce(chunk)
    if is_higher or count <= MAX_EQUAL:
        _change(device)
    else:
        _state.unchanged += 1
    device.peak = max(device.peak, peak)


def _change(device):
    _state.changed, _state.changed_at, _state.unchanged = _state.steps, device.start, 0


def _peak(device, rows):
    """The highest requested bytes within an interval."""
    peak = device.requested
    for letter, _, size, _, _ in rows:
        if letter == "a":
            device.requested += size
            peak = max(peak, device.requested)
        elif letter == "f":
            device.requested -= size
    return peak


def _reduce(chunk):
    """Keeps of an interval what stays."""
    _state.reduced += 1
    rows = chunk[2]
    # The rows of each block that is made here.
    made = {}
    dropped = set()
    for at, (letter, address, *_) in enumerate(rows):
        if letter == "a":
            made[address] = [at]
        elif letter == "f" and address in made:
            made[address].append(at)
        elif letter == "c" and address in made:
            dropped.update(made.pop(address))
            dropped.add(at)
        elif letter not in "fc":
            dropped.add(at)
    chunk[2] = [row for at, row in enumerate(rows) if at not in dropped]
