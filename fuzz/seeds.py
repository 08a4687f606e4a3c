"""Cuts small traces out of the recorded ones, as the first inputs of the fuzz target `verdict`.

    python3 fuzz/seeds.py

Of each trace in RECORDED it keeps the optimizer steps and iterations of the first two iterations, and of
every operator (by name and element types) the outermost call in which it appears first, with all that lies
in it and the memory that is allocated and freed there. What a call has in common with one that is kept
already is left out, so that the files stay small. Writes fuzz/seeds/verdict/NAME.json; needs zstdcat.
"""

import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent
RECORDED = {
    "mlp_adam": 20_000,
    "gru_seq2seq_nadam": 50_000,
    "bert_fp16_scaler_adamw": 50_000,
    "moe_clip_adamw": 50_000,
    "resnet18_sgdm": 50_000,
    "audio_conv1d_radam": 50_000,
    "whisper_ampbf16_adamw": 60_000,
    "detector_adamw": 60_000,
    "dlrm_adagrad": 40_000,
    "swin_t_rprop": 50_000,
    "pythia_ckpt_ampbf16_adafactor": 60_000,
}


def cut(trace: dict, limit: int) -> dict:
    """The trace with the first call of each operator, up to about `limit` bytes."""
    events = [event for event in trace["traceEvents"] if event.get("cat") != "python_function"]
    spans = sorted(
        (e for e in events if e.get("ph") == "X" and e.get("cat") in ("cpu_op", "user_annotation")),
        key=lambda e: (e["tid"], e["ts"], -e["dur"]),
    )
    memory = sorted((e for e in events if e.get("name") == "[memory]"), key=lambda e: e["ts"])
    calls, end = [], {}
    for span in spans:
        is_frame = span["cat"] == "user_annotation"
        if not is_frame and span["ts"] < end.get(span["tid"], -1):
            calls[-1].append(span)
            continue
        calls.append([span])
        if not is_frame:
            end[span["tid"]] = span["ts"] + span["dur"]
    kept, seen, size = [], set(), 0
    for call in sorted(calls, key=lambda call: len(call)):
        frame = call[0]["cat"] == "user_annotation"
        kinds = {(e["name"], str(e.get("args", {}).get("Input type"))) for e in call}
        text = sum(len(json.dumps(e)) for e in call)
        if frame or (not kinds <= seen and size + text < limit):
            seen |= kinds
            size += text
            kept.append(call)
    addresses = set()
    chosen = [event for call in kept for event in call]
    for call in kept:
        first = call[0]
        if first["cat"] == "user_annotation":
            continue
        inside = [m for m in memory if first["ts"] <= m["ts"] <= first["ts"] + first["dur"]]
        chosen += inside
        addresses |= {m["args"]["Addr"] for m in inside if m["args"]["Bytes"] > 0}
    chosen += [e for e in events if e.get("ph") in ("s", "f") and any(
        c[0]["ts"] <= e["ts"] <= c[0]["ts"] + c[0]["dur"] for c in kept)][:40]
    chosen.sort(key=lambda e: e["ts"])
    for event in chosen:
        event.get("args", {}).pop("Call stack", None)
    return {
        **{key: value for key, value in trace.items() if key not in ("traceEvents", "traceName")},
        "traceEvents": chosen,
    }


def main() -> None:
    folder = ROOT / "seeds" / "verdict"
    folder.mkdir(parents=True, exist_ok=True)
    for name, limit in RECORDED.items():
        path = ROOT.parent / "traces" / name / "trace.json.zst"
        text = subprocess.run(["zstdcat", path], check=True, capture_output=True).stdout
        small = cut(json.loads(text), limit)
        (folder / f"{name}.json").write_text(json.dumps(small, separators=(",", ":")))


if __name__ == "__main__":
    main()
