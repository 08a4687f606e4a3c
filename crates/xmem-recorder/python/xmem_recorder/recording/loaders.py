"""Batches that are left out after the recorded iterations, where all of them would take too long: those with tensors of
sizes that were seen. Batches with larger tensors than any before are kept, and the last one.
"""

import time

from .. import session
from ..patching import replace
from . import abridged, batches, growth, rest, run

# The share of the time for the rest of the script after which batches of a pass over a loader are left out, if those that
# are left would take as long.
SHARE_OF_PASS = 0.04
# Different lengths of the batches of a data set that are counted.
MAX_LENGTHS = 20000
# The share in which further ones are loaded only to look at them.
SHARE_OF_LOOKING = 0.04


class _Loaders:
    """What was left out."""

    def __init__(self):
        # The batches, and of these the ones whose sizes the script did not have.
        self.left_out = 0
        self.unlike = 0
        # Whether a batch was asked for, also in the rest of the script, and whether a pass has ended behind the recorded
        # iterations.
        self.are_used = False
        self.are_used_in_rest = False
        self.has_ended_pass = False
        # By the data set of a loader: the sizes of batches that the script had, and the largest extents of each tensor.
        self.had = {}
        self.largest = {}
        # By the data set: how many of its batches had which length, also of those that were left out. The data set of the
        # last batch, and those with whose batches steps were made.
        self.lengths = {}
        self.last = None
        self.trained = set()


_loaders = _Loaders()
_torch = None


def install(torch):
    """Wraps the iterators of DataLoaders."""
    global _torch
    if not run.goes_on():
        return
    _torch = torch
    from torch.utils.data import dataloader

    replace(dataloader._BaseDataLoaderIter, "__next__", _leaving_out)


def facts():
    """The number of batches that were left out, and of those with sizes that the script did not have; the lengths of
    batches of training."""
    lengths = {}
    for key in _loaders.trained:
        for length, count in _loaders.lengths.get(key, {}).items():
            lengths[length] = lengths.get(length, 0) + count
    return {"left_out": _loaders.left_out, "unlike": _loaders.unlike, "lengths": sorted(lengths.items())}


def lengths_vary():
    """Returns whether batches of training have different lengths, and the first pass over them has not ended."""
    lengths = (_loaders.lengths.get(key, ()) for key in _loaders.trained)
    return not _loaders.has_ended_pass and any(len(known) > 1 for known in lengths)


def stepped():
    """Handles a step of an optimizer."""
    if _loaders.last is not None:
        _loaders.trained.add(_loaders.last)


def is_in_first_pass():
    """Returns whether the rest of the script has not come to the end of a pass over a loader that it uses."""
    return _loaders.are_used_in_rest and not _loaders.has_ended_pass


def is_behind_iterations():
    """Returns whether the recorded iterations are complete and the script still runs: batches may be left out."""
    return rest.is_running() or abridged.is_running()


def are_used():
    """Returns whether the script has asked a loader for a batch."""
    return _loaders.are_used


class _Pass:
    """A pass over a loader."""

    def __init__(self, iterator):
        # The time of the first batch after the recorded iterations, and the number of batches that were kept since.
        self.began = None
        self.kept = 0
        # The time in which batches were looked at.
        self.looked = 0
        try:
            self.length = len(iterator)
        except TypeError:
            # Of an iterable data set.
            self.length = None
        self.given = 0
        self.growth = growth.Growth(_torch)

    def is_to_be_cut(self):
        """Returns whether batches may be left out, as all that are left would take too long."""
        return self.is_long() and not self.growth.is_seen(self.length)

    def is_long(self):
        """Returns whether the batches that are left would take too long."""
        if abridged.is_running():
            return self.given > abridged.BATCHES
        if self.began is None:
            self.began = time.monotonic()
        took = time.monotonic() - self.began - self.looked
        limit = session.settings()["rest"] * SHARE_OF_PASS
        if took <= limit or self.length is None:
            return took > limit
        return took / self.kept * (self.length - self.given) > limit

    def is_last(self):
        """Returns whether the batch that was given last is the last one."""
        return self.length is not None and self.given >= self.length

    def looks(self):
        """Returns whether there is time to look at more batches."""
        return self.looked < session.settings()["rest"] * SHARE_OF_LOOKING


def _leaving_out(original):
    def next_batch(self):
        if not run.on_thread() or not (run.is_recording() or rest.is_running()):
            return original(self)
        current = self._xmem_pass = getattr(self, "_xmem_pass", None) or _Pass(self)
        unused = None
        if is_behind_iterations():
            current.growth.measure()
        _loaders.are_used = True
        _loaders.are_used_in_rest |= rest.is_running()
        while True:
            begun = time.monotonic()
            try:
                batch = original(self)
            except StopIteration:
                _loaders.has_ended_pass |= is_behind_iterations()
                if unused is None:
                    raise
                # The last one of an iterable data set.
                _have(self, _sizes(list(batches.tensors(_torch, unused))))
                return unused
            current.given += 1
            tensors = list(batches.tensors(_torch, batch))
            sizes = _sizes(tensors)
            _add_length(self, tensors)
            runs = is_behind_iterations()
            if not runs or not current.is_to_be_cut() or current.is_last() or _is_larger(self, sizes):
                current.kept += runs
                _have(self, sizes)
                return batch
            current.looked += time.monotonic() - begun
            unused = batch if current.length is None else None
            _leave_out(self, sizes)
            if not current.looks():
                _skip_to_last(self, current)

    return next_batch


def _key(iterator):
    return id(getattr(iterator, "_dataset", None))


def _add_length(iterator, tensors):
    length = batches.length(_torch, tensors)
    _loaders.last = _key(iterator)
    known = _loaders.lengths.setdefault(_loaders.last, {})
    if length is not None and (length in known or len(known) < MAX_LENGTHS):
        known[length] = known.get(length, 0) + 1


def _leave_out(iterator, sizes):
    _loaders.left_out += 1
    _loaders.unlike += sizes not in _loaders.had.get(_key(iterator), ())


def _have(iterator, sizes):
    _loaders.had.setdefault(_key(iterator), set()).add(sizes)
    largest = _loaders.largest.setdefault(_key(iterator), {})
    for place, extents in enumerate(sizes):
        known = largest.get(place, ())
        pairs = zip(known + (0,) * (len(extents) - len(known)), extents)
        largest[place] = tuple(max(pair) for pair in pairs)


def _is_larger(iterator, sizes):
    """Returns whether a tensor has a larger extent than any in its place."""
    largest = _loaders.largest.get(_key(iterator), {})
    return any(
        len(extents) > len(largest.get(place, ()))
        or any(extent > known for extent, known in zip(extents, largest.get(place, ())))
        for place, extents in enumerate(sizes)
    )


def _sizes(tensors):
    """The shapes of the tensors of a batch."""
    return tuple(tuple(tensor.shape) for tensor in tensors)


def _skip_to_last(iterator, current):
    """Goes on with the last batch of a data set that is indexed, without loading those before it."""
    indices = getattr(iterator, "_sampler_iter", None)
    if indices is None or current.length is None:
        return
    last, count = None, 0
    for index in indices:
        last, count = index, count + 1
    if count > 1:
        _loaders.left_out += count - 1
        _loaders.unlike += count - 1
    # Workers may have been told of batches that were not given yet.
    iterator._sampler_iter = iter(() if last is None else (last,))
    current.given += max(count - 1, 0)
