"""Sizes of memory as text and as numbers of bytes."""

from __future__ import annotations

import re
from typing import Union

__all__ = ["Size", "parse_size", "show_size"]

Size = Union[int, str]
"""A number of bytes, or text such as `"14GiB"` or `"500MB"`."""

_UNITS = {"": 1, "B": 1}
_UNITS.update({f"{prefix}B": 1000 ** (at + 1) for at, prefix in enumerate("KMGT")})
_UNITS.update({f"{prefix}IB": 1024 ** (at + 1) for at, prefix in enumerate("KMGT")})


def parse_size(size: Size) -> int:
    """Return a size in bytes. Raises `ValueError` for text that is none.

    >>> parse_size("14GiB"), parse_size("1.5 MB"), parse_size(512)
    (15032385536, 1500000, 512)
    """
    if isinstance(size, int):
        return size
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", size)
    unit = _UNITS.get(found[2].upper()) if found else None
    if found is None or unit is None:
        raise ValueError(f"`{size}` is no size: write a number with a unit, such as 14GiB or 500MB")
    return int(float(found[1]) * unit)


def show_size(size: int) -> str:
    """Return a size with a binary unit, as the program shows it.

    >>> show_size(471859200), show_size(512)
    ('450.00 MiB', '512 B')
    """
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024:
            return f"{size} B" if unit == "B" else f"{value:.2f} {unit}"
        value /= 1024
    return f"{value:.2f} TiB"
