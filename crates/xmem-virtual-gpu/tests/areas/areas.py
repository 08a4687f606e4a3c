"""How each area of CUDA that PyTorch programs use behaves on the virtual GPU.

    cargo run -p xmem-virtual-gpu --example run -- h100-80g:2 python areas.py [PART OF A NAME...]
    python areas.py --quick          the areas that take a second or two
    python areas.py --table          the table of docs/reference/virtual-gpu-areas.md; does not need torch

Each area has a function that fails if the area does not behave as the table says. With two devices or more, the
areas of several devices are checked, too. `cargo xtask test-torch --engine virtual-gpu` runs it for one device, and
`--quick` for a device of each compute capability."""

import gc
import os
import subprocess
import sys
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import area  # noqa: E402
import devices  # noqa: E402,F401
import allocator  # noqa: E402,F401
import libraries  # noqa: E402,F401
import programs  # noqa: E402,F401

# Set in a process that checks one area.
INNER = "XMEM_AREA"
# Exit status of a process whose area is not there.
NOT_THERE = 77


def check(one):
    """Checks an area; gives the line to print, and whether all is well."""
    start = time.monotonic()
    try:
        if one.environment is not None and INNER not in os.environ:
            in_process(one)
        else:
            require(one.needs)
            one.check()
        word, good, remark = one.outcome, True, ""
    except area.NotThere as missing:
        word, good, remark = "not there", True, f" ({missing})"
    except Exception:
        word, good, remark = "FAILED", False, "\n" + traceback.format_exc()
    if "torch" in sys.modules:
        import torch

        gc.collect()
        if torch.cuda.is_initialized():
            torch.cuda.empty_cache()
    return f"{word:12} {one.name:32} {time.monotonic() - start:5.1f} s{remark}", good


def in_process(one):
    """Checks an area in a process with the variables that it needs."""
    done = subprocess.run(
        [sys.executable, __file__, one.name], env={**os.environ, **one.environment, INNER: "1"},
        capture_output=True, text=True,
    )
    if done.returncode == NOT_THERE:
        raise area.NotThere(done.stdout.strip())
    assert done.returncode == 0, done.stdout + done.stderr


def require(path):
    """Raises NotThere unless torch has this."""
    if path is None:
        return
    import torch

    at = torch
    for part in path.split("."):
        if not hasattr(at, part):
            raise area.NotThere(f"torch {torch.__version__} has no torch.{path}")
        at = getattr(at, part)


def main(arguments):
    if arguments == ["--table"]:
        print(area.table(), end="")
        return 0
    if INNER in os.environ:
        [one] = [one for one in area.AREAS if one.name == arguments[0]]
        try:
            require(one.needs)
            one.check()
        except area.NotThere as missing:
            print(missing)
            return NOT_THERE
        return 0
    if arguments == ["--quick"]:
        wanted = [one for one in area.AREAS if not one.slow]
    else:
        wanted = [one for one in area.AREAS if not arguments or any(part in one.name for part in arguments)]
    failed = 0
    for one in wanted:
        line, good = check(one)
        print(line, flush=True)
        failed += not good
    print(f"{len(wanted)} areas, {failed} failed")
    return 1 if failed or not wanted else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
