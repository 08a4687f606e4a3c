"""Counters of an allocator that is not there, on the CPU: `torch.cuda.max_memory_allocated()` and its like.

No number is known while the script runs. A counter is therefore "not a number", which a script can print, format and
compare, but which nobody takes for a measurement. Where only an integer will do (`int(counter)`), it is 0: the script
must not fail for it.
"""

import collections
import math

from .. import session

NOTE = (
    "torch.cuda's counters of memory are not known on the CPU: they are nan, and 0 as integers; `xmem replay` gives the "
    "peaks, and --virtual-gpu counts while the script runs"
)
_OPERATORS = "add sub mul truediv floordiv mod pow lshift rshift and or xor".split()


class Unknown(float):
    """A number that is not known, with everything that is computed of it."""

    def __new__(cls, *_args):
        return super().__new__(cls, math.nan)

    def __int__(self):
        return 0

    __trunc__ = __floor__ = __ceil__ = __index__ = __int__

    def __round__(self, digits=None):
        return 0 if digits is None else self

    def __divmod__(self, _other):
        return self, self

    __rdivmod__ = __divmod__

    def __neg__(self):
        return self

    __pos__ = __abs__ = __neg__

    def __format__(self, form):
        # Also by the forms of integers (`:d`, `:,d`).
        return super().__format__(form[:-1] + "f" if form[-1:] in tuple("bcdoxXn") else form)

    def __reduce__(self):
        return float, ("nan",)


def _of_operator(name):
    def operator(self, other, *_modulus):
        return self if isinstance(other, (int, float)) else NotImplemented

    return operator


for _name in _OPERATORS:
    for _method in (f"__{_name}__", f"__r{_name}__"):
        setattr(Unknown, _method, _of_operator(_method))


class UnknownStatistics(collections.OrderedDict):
    """Statistics of an allocator, each of which is not known."""

    def __missing__(self, key):
        return Unknown()

    def get(self, key, default=None):
        return self[key]


def memory(*_args, **_kwargs):
    """Bytes of memory."""
    session.note(NOTE)
    return Unknown()


def statistics(*_args, **_kwargs):
    """What `torch.cuda.memory_stats()` returns."""
    session.note(NOTE)
    return UnknownStatistics()
