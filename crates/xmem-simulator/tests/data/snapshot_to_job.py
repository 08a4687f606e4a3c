#!/usr/bin/env python3
"""A recorded training run as a test case: its allocator requests and what PyTorch's allocator did.

    snapshot_to_job.py SNAPSHOT.pickle RESULT.json OUT.json

SNAPSHOT is `torch.cuda.memory._dump_snapshot` of a run recorded from an empty allocator on, RESULT
holds `memory_stats` (`torch.cuda.memory_stats()`) and `torch` or nothing. Addresses are written
relative to the first segment."""
import json
import pickle
import sys

snapshot = pickle.load(open(sys.argv[1], "rb"))
result = json.load(open(sys.argv[2]))
trace = snapshot["device_traces"][0]
base = next(e["addr"] for e in trace if e["action"] == "segment_alloc")
streams, ids, ops = {0: 0}, {}, []
for e in trace:
    stream = streams.setdefault(e["stream"], len(streams))
    if e["action"] == "alloc":
        ids[e["addr"]] = len(ops)
        ops.append([len(ops), e["size"], stream])
    elif e["action"] == "free_completed":
        ops.append([ids.pop(e["addr"])])
events = [
    [e["action"], e["addr"] - base, e["size"], streams[e["stream"]]]
    for e in trace
    if e["action"] != "snapshot"
]
segments = [
    [s["address"] - base, s["total_size"], s["segment_type"], [[b["size"], b["state"] == "active_allocated"] for b in s["blocks"]]]
    for s in snapshot["segments"]
]
case = {"ops": ops, "events": events, "segments": segments, "memory_stats": result["memory_stats"]}
json.dump(case, open(sys.argv[3], "w"), separators=(",", ":"))
