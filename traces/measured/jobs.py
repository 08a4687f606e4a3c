"""Runs many jobs side by side and keeps what PyTorch's CUDA allocator did in each.

    jobs.py OUT WORKERS SECONDS KINDS [PREFIX...]

KINDS: record (cases of traces/), field (convolutional networks as in published measurements), scripts (those of the recorder's
tests that need no launcher), models (models.py), configs (three models with other settings of the allocator), whole (whole.py),
unseen (unseen.py). PREFIX goes in front of each command. A job that is done is not run again: its file is in $JOBS_WORK, /tmp/jobs by default. OUT gets jobs.tar.
"""

import glob, itertools, json, lzma, os, pickle, re, shlex, subprocess, sys, tarfile, time, tomllib
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
out, workers, seconds, kinds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4].split(",")
prefix = sys.argv[5:]
only = os.environ.get("JOBS_ONLY")
W = os.environ.get("JOBS_WORK", "/tmp/jobs")
os.makedirs(W, exist_ok=True)
t0 = time.time()
jobs = []
FIELD = [
    ("mnasnet1_0", "adamw", 200),
    ("mobilenet_v2", "adamw", 251),
    ("vgg19", "adam", 339),
    ("convnext_base", "sgd", 200),
    ("convnext_tiny", "adamw", 200),
    ("mobilenet_v3_small", "sgd", 258),
    ("mobilenet_v3_large", "adam", 200),
    ("densenet121", "sgd", 64),
    ("efficientnet_b0", "adam", 64),
]
CONFS = dict(
    expandable="expandable_segments:True",
    roundup="roundup_power2_divisions:4",
    split="max_split_size_mb:64",
    collect="garbage_collection_threshold:0.5",
    asynchronous="backend:cudaMallocAsync",
)


def header(text):
    m = re.search(r"^# /// xmem\n(.*?)^# ///", text, re.M | re.S)
    h = "\n".join(l[2:] if l.startswith("# ") else "" for l in m.group(1).splitlines()) if m else ""
    return tomllib.loads(h)


SKIP = {
    "endless",
    "endless_forwards",
    "no_torch",
    "sigterm_self",
    "grows",
    "weights_larger_than_memory",
    "reexec",
    "raises_in_setup",
    "nothing_on_gpu",
    "vary_arguments",
    "vary_loader",
    "weights_missing",
    "user_sitecustomize",
    "with_sitecustomize",
    "hub_offline",
    "hub_pushes",
    "pretrained_without_weights",
    "weights_of_config",
    "pretrained_sharded",
    "trackers_offline",
}
if "record" in kinds:
    for f in sorted(glob.glob(ROOT + "/traces/*/meta.toml")):
        c = tomllib.load(open(f, "rb"))["command"]
        n = os.path.basename(os.path.dirname(f))
        words = shlex.split(c)[1:]
        jobs.append(("record-" + n, ["RECORD", *words]))
if "field" in kinds:
    for model, optimizer, batch in FIELD:
        name = f"field-{model}_{optimizer}_{batch}"
        jobs.append(
            (
                name,
                [
                    "RECORD",
                    name,
                    "--model",
                    model,
                    "--optimizer",
                    optimizer,
                    "--batch",
                    str(batch),
                    "--image",
                    "86",
                    "--keep-variables",
                ],
            )
        )
if "scripts" in kinds:
    for f in sorted(glob.glob(ROOT + "/crates/xmem-recorder/tests/scripts/*.py")):
        n = os.path.basename(f)[:-3]
        h = header(open(f).read())
        if n in SKIP or "command" in h or n.startswith("one_rank") or "two_" in n and n != "two_streams":
            continue
        jobs.append(("script-" + n, [HERE + "/counted.py", f"{W}/script-{n}.json.xz", f]))
if "models" in kinds:
    import models

    jobs += [
        (f"model-{k}-{n}", [HERE + "/counted.py", f"{W}/model-{k}-{n}.json.xz", HERE + "/models.py", n])
        for k, n in models.NAMES
    ]
if "whole" in kinds:
    import whole

    jobs += [(f"whole-{n}", [HERE + "/counted.py", f"{W}/whole-{n}.json.xz", HERE + "/whole.py", n]) for n in whole.NAMES]
if "unseen" in kinds:
    import unseen

    for m, o, b in itertools.product(unseen.MODELS, ("adamw", "sgd"), ("8", "24")):
        n = f"unseen-{m.replace('/', '_')}_{o}_{b}"
        jobs.append((n, [HERE + "/counted.py", f"{W}/{n}.json.xz", HERE + "/unseen.py", m, o, b]))
if "configs" in kinds:
    jobs += [
        (
            f"config-{c}-{n}",
            ["CONFIG", CONFS[c], HERE + "/counted.py", f"{W}/config-{c}-{n}.json.xz", HERE + "/models.py", n],
        )
        for c in CONFS
        for n in ("gpt2", "resnext50_32x4d", "t5")
    ]
if only:
    jobs = [j for j in jobs if re.search(only, j[0])]


def one(job):
    name, a = job
    if os.path.exists(f"{W}/{name}.json.xz") or time.time() - t0 > seconds - 25:
        return
    d = f"{W}/runs/{name}"
    os.makedirs(d, exist_ok=True)
    env = dict(
        os.environ,
        OMP_NUM_THREADS="2",
        TORCHINDUCTOR_COMPILE_THREADS="1",
        HF_HUB_OFFLINE="1",
        TRANSFORMERS_VERBOSITY="error",
        TORCHINDUCTOR_CACHE_DIR=d + "/inductor",
    )
    t = time.time()
    if a[0] == "RECORD":
        argv = [sys.executable, ROOT + "/traces/record.py", *a[1:], "--side", "cuda", "--out", d]
    elif a[0] == "CONFIG":
        argv = [sys.executable, *a[2:]]
        env["PYTORCH_ALLOC_CONF"] = a[1]
    else:
        argv = [sys.executable, *a]
    try:
        p = subprocess.run(
            prefix + argv,
            cwd=d if a[0] not in ("RECORD",) else ROOT,
            env=env,
            capture_output=True,
            text=True,
            timeout=float(os.environ.get("JOBS_TIMEOUT", 110)),
        )
        rc, err = p.returncode, p.stderr[-600:] if p.returncode else ""
    except subprocess.TimeoutExpired:
        rc, err = -1, "timeout"
    row = dict(job=name, rc=rc, seconds=round(time.time() - t, 1))
    if rc:
        row["error"] = err
    if a[0] == "RECORD" and rc == 0:
        s = pickle.load(open(glob.glob(d + "/*snapshot.pickle")[0], "rb"))
        ev = [(e["action"], e["size"]) for e in s["device_traces"][0]]
        r = tomllib.load(open(d + "/expected.toml", "rb"))
        body = dict(
            expected=open(d + "/expected.toml").read(),
            allocated=r["peak"]["allocated-bytes"],
            reserved=r["peak"]["reserved-bytes"],
            events=ev,
        )
        open(f"{W}/{name}.json.xz", "wb").write(lzma.compress(json.dumps(body).encode(), preset=1))
    f = f"{W}/{name}.json.xz"
    if os.path.exists(f):
        b = json.loads(lzma.decompress(open(f, "rb").read()))
        row.update({k: b.get(k) for k in ("allocated", "reserved")})
        row["events"] = len(b.get("events") or [])
    with open(f"{W}/rows.jsonl", "a") as log:
        log.write(json.dumps(row) + "\n")
    print(
        name,
        rc,
        row.get("allocated"),
        row.get("reserved"),
        row["seconds"],
        err[-160:].replace("\n", " ") if rc else "",
        flush=True,
    )


with ThreadPoolExecutor(workers) as pool:
    list(pool.map(one, jobs))
os.makedirs(out, exist_ok=True)
with tarfile.open(f"{out}/jobs.tar", "w") as t:
    for f in sorted(glob.glob(W + "/*.json.xz")) + [W + "/rows.jsonl"]:
        if os.path.exists(f):
            t.add(f, os.path.basename(f))
print("jobs", len(jobs), "jobs", round(time.time() - t0, 1), "s", os.path.getsize(f"{out}/jobs.tar"))
