"""Runs a script and keeps what the allocator did: counted.py OUT.json.xz SCRIPT [ARGUMENT...]"""

import atexit, json, lzma, os, runpy, sys, time

out, script = sys.argv[1], sys.argv[2]
sys.argv = sys.argv[2:]
sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
import torch

own = "_record_memory_history" in open(script).read()
t0 = time.time()
pid = os.getpid()
if not own:
    try:
        torch.cuda.memory._record_memory_history("all", context=None, max_entries=1 << 20)
    except Exception as e:
        print(e)


def end():
    if os.getpid() != pid:
        return
    row = dict(seconds=round(time.time() - t0, 1), torch=torch.__version__, devices=torch.cuda.device_count())
    try:
        if torch.cuda.is_initialized():
            s = torch.cuda.memory_stats()
            row.update(
                allocated=torch.cuda.max_memory_allocated(),
                reserved=torch.cuda.max_memory_reserved(),
                requested=s.get("requested_bytes.all.peak"),
                active=s.get("active_bytes.all.peak"),
                retries=s.get("num_alloc_retries"),
                ooms=s.get("num_ooms"),
                inactive=s.get("inactive_split_bytes.all.peak"),
                segments=s.get("segment.all.peak"),
                now=[torch.cuda.memory_allocated(), torch.cuda.memory_reserved()],
            )
            if not own:
                row["events"] = [(e["action"], e["size"]) for e in torch.cuda.memory._snapshot()["device_traces"][0]]
    except Exception as e:
        row["error"] = repr(e)
    open(out, "wb").write(lzma.compress(json.dumps(row).encode(), preset=1))


atexit.register(end)
runpy.run_path(script, run_name="__main__")
