"""Memory that grows from one batch of a pass to the next, as where an evaluation gathers what a model returns: the peak is at
the end of such a pass, and none of its batches can be left out.
"""

import gc

from .. import engine

# Increases in a row from which on memory grows, with an allocator that counts and on the CPU.
INCREASES = 5
INCREASES_ON_CPU = 2
# Growth over a whole pass that does not count: bytes, and the share of all memory.
SMALL = 1 << 20
SMALL_SHARE = 0.002
# Batches of a pass of unknown length.
UNKNOWN = 1000


class Growth:
    """Memory at the beginnings of the last batches."""

    def __init__(self, torch):
        self._torch = torch
        self._values = []
        self._count = INCREASES if engine.is_virtual() else INCREASES_ON_CPU

    def measure(self):
        """Measures it, before the next batch."""
        memory = self._torch.cuda.memory_allocated() if engine.is_virtual() else _of_tensors(self._torch)
        self._values = [*self._values[-self._count :], memory]

    def is_seen(self, batches):
        """Returns whether it grows considerably in a pass of so many batches; None if their number is not known."""
        increases = [after - before for before, after in zip(self._values, self._values[1:])]
        if len(increases) < self._count or min(increases) <= 0:
            return False
        growth = min(increases) * (batches or UNKNOWN)
        return growth > max(SMALL, self._values[-1] * SMALL_SHARE)


def _of_tensors(torch):
    """Bytes of the tensors that exist, without those that only C++ has, as saved tensors."""
    storages = {}
    for value in gc.get_objects():
        # `isinstance` would call properties of objects that stand for others.
        if type(value) is torch.Tensor and value.layout is torch.strided:
            storage = value.untyped_storage()
            storages[storage.data_ptr()] = storage.nbytes()
    return sum(storages.values())
