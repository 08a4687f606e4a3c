"""Integers that the script reads from the GPU where no kernel has computed them.

`Tensor.item()` gives zero, or what follows from an assumption. What the script computes from it has the same type, so that a
size can be told from a count that is only printed.
"""

import sys

from .. import errors
from . import assumptions, branches

# Functions of torch in whose arguments integers are sizes, and those in which only integers in sequences are.
SIZED = (
    *("__getitem__", "arange", "empty", "empty_strided", "expand", "eye", "linspace", "multinomial", "narrow"),
    *("new_empty", "new_ones", "new_zeros", "one_hot", "ones", "pad", "rand", "randn", "randperm", "repeat"),
    *("repeat_interleave", "reshape", "resize_", "split", "tile", "topk", "tril_indices", "triu_indices", "unfold"),
    *("view", "zeros"),
)
SHAPED = ("full", "new_full", "randint")

ARITHMETIC = (
    *("__abs__", "__add__", "__and__", "__ceil__", "__floor__", "__floordiv__", "__invert__", "__lshift__", "__mod__"),
    *("__mul__", "__neg__", "__or__", "__pos__", "__pow__", "__radd__", "__rand__", "__rfloordiv__", "__rlshift__"),
    *("__rmod__", "__rmul__", "__ror__", "__round__", "__rrshift__", "__rshift__", "__rsub__", "__rxor__"),
    *("__sub__", "__trunc__", "__xor__"),
)
COMPARISONS = ("__eq__", "__ge__", "__gt__", "__le__", "__lt__", "__ne__")

# Whether the script has read one.
exist = False
# Counts a comparison on which the script branches, by its place.
_compared = None


class Uncomputed(int):
    """An integer, the place at which it was read, and what it follows from: an assumption and its share, if any."""

    origin = None

    def __reduce__(self):
        # A file that the script writes needs no class of the recorder.
        return int, (int(self),)

    __hash__ = int.__hash__


def install(torch, compared):
    """Learns the functions of torch that are given sizes: returns what is looked for in the arguments of each."""
    global _compared
    _compared = compared
    found = {}
    for owner in (torch, torch.Tensor, torch.nn.functional, torch._C._nn):
        for names, are_alone in ((SIZED, True), (SHAPED, False)):
            for name in names:
                if hasattr(owner, name):
                    found[getattr(owner, name)] = are_alone
    return found


def read(number, place, assumption, share):
    """The integer that the script gets for one that was not computed."""
    global exist
    exist = True
    return _like(number, (place, assumption, share))


def check(func, are_alone, args, kwargs):
    """Notes that sizes among the arguments of a function of torch follow from integers that were not computed."""
    for value in (*args, *kwargs.values()):
        number = _first(value, are_alone)
        if number is not None:
            place, assumption, share = number.origin
            assumptions.use(f"Tensor.item at {place}", assumption, share)


def _first(value, is_size):
    kind = type(value)
    if kind is Uncomputed:
        return value if is_size else None
    if kind is slice:
        value = (value.start, value.stop, value.step)
    elif not isinstance(value, (tuple, list)):
        return None
    return next((one for one in value if type(one) is Uncomputed), None)


def _like(number, origin):
    result = Uncomputed(number)
    result.origin = origin
    return result


def _operation(name):
    original = getattr(int, name)

    def operate(self, *others):
        result = original(self, *others)
        return _like(result, self.origin) if type(result) is int else result

    operate.__name__ = name
    return operate


def _comparison(name):
    original = getattr(int, name)

    def compare(self, other):
        frame = sys._getframe(1)
        if branches.decides_by_comparison(frame):
            _compared(f"{errors.base_name(frame.f_code.co_filename)}:{frame.f_lineno}")
        return original(self, other)

    compare.__name__ = name
    return compare


for _name in ARITHMETIC:
    setattr(Uncomputed, _name, _operation(_name))
for _name in COMPARISONS:
    setattr(Uncomputed, _name, _comparison(_name))
