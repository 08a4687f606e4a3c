"""Runs one suite of an attention benchmark, and writes down the memory that it shows.

    python cs336-attention.py CHECKOUT GROUP RESULTS.json

The suite runs with fewer timed calls: memory is that after one forward pass.
"""

import json
import os
import runpy
import sys
import tempfile

checkout, group, results = sys.argv[1:4]
script = os.path.join(checkout, "cs336_systems", "attention_benchmark.py")
rows = os.path.join(tempfile.mkdtemp(), "rows.jsonl")
sys.path[:0] = [checkout, os.path.join(checkout, "cs336-basics")]
sys.argv = [script, "--suite", group, "--iters", "2", "--warmup", "1", "--output", rows]
# The package asks for its own version.
metadata = tempfile.mkdtemp()
for name in ("cs336_basics", "cs336_systems"):
    os.makedirs(os.path.join(metadata, f"{name}-0.dist-info"))
    with open(os.path.join(metadata, f"{name}-0.dist-info", "METADATA"), "w") as file:
        file.write(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0\n")
sys.path.append(metadata)
found = {}
try:
    runpy.run_path(script, run_name="__main__")
except BaseException as error:
    found["*"] = {"error": f"{type(error).__name__}: {error}"[:200]}
if os.path.exists(rows):
    with open(rows) as file:
        for row in map(json.loads, file):
            key = f"{row['backend']} | {row['seq_len']} x {row['d_model']} | {row['precision']}"
            if row.get("activation_mib") is not None:
                found[key] = {"value": row["activation_mib"]}
            else:
                found[key] = {"error": str(row.get("error"))[:200]}
with open(results, "w") as file:
    json.dump(found, file)
