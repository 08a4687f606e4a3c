"""Tables of a run: rows as dicts, and Arrow or pandas where these are installed."""

from __future__ import annotations

import json
import os
import tempfile
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Optional, Sequence, Union, overload

from ._program import fail, run

if TYPE_CHECKING:
    import pandas
    import pyarrow

__all__ = ["Row", "Table"]

Row = Dict[str, Any]
"""A row by the names of its columns: numbers, truths and texts; `None` is what is not known."""


class Table(Sequence[Row]):
    """A table of a run: a sequence of rows that are dicts.

    It is read when it is first used. Sizes are bytes, times are nanoseconds since the recording began. The columns are
    those of `xmem report --format parquet` (page "Export" of the documentation).

    >>> import xmem
    >>> blocks = xmem.replay("traces/mlp_adam/trace.json.zst", device="rtx3060-12g").blocks()
    >>> sum(block["size_bytes"] for block in blocks if block["at_peak"])
    228864000
    """

    def __init__(self, name: str, report: Sequence[str], trace: Sequence[str]) -> None:
        self._name = name
        self._report = [*report, "--table", name]
        self._trace = list(trace)
        self._rows: Optional[List[Row]] = None

    @property
    def name(self) -> str:
        """The name of the table: `blocks`, `moments` or `segments`."""
        return self._name

    def rows(self) -> List[Row]:
        """Return all rows, each a new list of the same dicts.

        Raises `xmem.InputError` if the recording cannot be read any more.
        """
        if self._rows is None:
            ran = run([*self._report, "--format", "jsonl", *self._trace])
            if ran.code not in (0, 4):
                fail(ran)
            self._rows = [json.loads(line) for line in ran.stdout.splitlines()]
        return list(self._rows)

    def __len__(self) -> int:
        return len(self.rows())

    @overload
    def __getitem__(self, index: int) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> List[Row]: ...

    def __getitem__(self, index: Union[int, slice]) -> Union[Row, List[Row]]:
        return self.rows()[index]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows())

    def __repr__(self) -> str:
        return f"<xmem.Table {self._name}>"

    def to_arrow(self) -> "pyarrow.Table":
        """Return the table as a `pyarrow.Table`, with the peaks and the device in its metadata.

        Raises `ImportError` without pyarrow, and what `rows` raises.
        """
        import pyarrow.parquet

        return self._parquet(pyarrow.parquet.read_table)

    def to_pandas(self) -> "pandas.DataFrame":
        """Return the table as a `pandas.DataFrame`. Columns with missing values have pandas' nullable types.

        Raises `ImportError` without pandas, and what `rows` raises.
        """
        import pandas

        return pandas.DataFrame(self.rows()).convert_dtypes()

    def to_parquet(self, path: "Union[str, os.PathLike[str]]") -> None:
        """Write the table as a Parquet file, which needs no other package.

        Raises `xmem.XmemError` if it cannot be written.
        """
        ran = run([*self._report, "--format", "parquet", "--output", os.fspath(path), *self._trace])
        if ran.code not in (0, 4):
            fail(ran)

    def _parquet(self, read: Callable[[str], Any]) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "table.parquet")
            self.to_parquet(path)
            return read(path)
