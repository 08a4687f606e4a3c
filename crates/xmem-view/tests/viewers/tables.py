"""Reads the tables that `xmem report --format parquet` wrote with pandas and pyarrow, and holds them against the JSON answer.

python tables.py FILES: the folder with what `cargo xtask test-views` writes, and facts.json.
Prints one line for each check; exits with 1 if one fails.
"""

import json
import sys
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

FAILED = []


def check(what, found, expected):
    fine = found == expected
    print(f"{'ok' if fine else 'FAILED'}: {what}" + ("" if fine else f": {found!r}, not {expected!r}"))
    if not fine:
        FAILED.append(what)


files = Path(sys.argv[1])
facts = json.loads((files / "facts.json").read_text())
tables = {name: pd.read_parquet(files / f"{name}.parquet") for name in ("blocks", "moments", "segments")}
blocks, moments, segments = tables.values()

for name in tables:
    metadata = pq.read_metadata(files / f"{name}.parquet").metadata
    check(f"{name}: schema", metadata[b"xmem.schema"].decode(), f"xmem.{name}/1")
    check(f"{name}: peak in the metadata", int(metadata[b"xmem.peak_allocated_bytes"]), facts["allocated"])

peak = blocks[blocks.at_peak]
check("blocks at the peak: bytes", int(peak.size_bytes.sum()), facts["allocated"])
check("blocks at the peak: requested bytes", int(peak.requested_bytes.sum()), facts["requested"])
by_role = {role: int(size) for role, size in peak.groupby("role").size_bytes.sum().items()}
check("blocks at the peak: bytes by role", by_role, facts["by_role"])
check("moments: highest allocated bytes", int(moments.allocated_bytes.max()), facts["allocated"])
check("moments: highest reserved bytes", int(moments.reserved_bytes.max()), facts["reserved"])
check("moments: times go on", bool(moments.time_ns.is_monotonic_increasing), True)
held = segments[segments.end.isna()].size_bytes.sum()
check("segments at the end: bytes", int(held), int(moments.reserved_bytes.iloc[-1]))
inside = blocks.dropna(subset="segment").merge(segments, on="segment", suffixes=("", "_segment"))
fits = (inside.address >= inside.address_segment) & (
    inside.address + inside.size_bytes <= inside.address_segment + inside.size_bytes_segment
)
check("blocks: all inside their segments", bool(fits.all()) and len(inside) == len(blocks), True)
texts = pq.read_table(files / "blocks.parquet", read_dictionary=["role", "op"])
check("blocks: dictionaries of roles", str(texts.schema.field("role").type).startswith("dictionary"), True)
# What changed between two moments is one block.
change = moments.allocated_bytes.diff().fillna(moments.allocated_bytes)
born = blocks.set_index("start").size_bytes
check("blocks: their sizes are the changes of moments", bool((change[born.index] == born).all()), True)

sys.exit(1 if FAILED else 0)
