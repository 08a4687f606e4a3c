#!/usr/bin/env bash
# A wheel in environments that have nothing else: the command, the package, and a recording if there is PyTorch.
#
#   installed.sh WHEEL [PYTHON-WITH-TORCH]
#
# Needs uv on the path, which brings the releases of Python that this machine lacks, where it can reach them.
set -euo pipefail
wheel=$(realpath "$1")
torch=${2:-}
cd "$(dirname "$0")/../../.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unset PYTHONPATH XMEM_PROGRAM VIRTUAL_ENV
trace=$PWD/traces/mlp_adam/trace.json.zst

for release in 3.9 3.11 3.13; do
    if ! uv python find --quiet --no-project "$release" >/dev/null && ! uv python install --quiet "$release"; then
        echo "Python $release is not available: not tried" >&2
        continue
    fi
    start=$(date +%s.%N)
    uv venv --quiet --no-project --python "$release" "$folder/$release"
    uv pip install --quiet --python "$folder/$release/bin/python" "$wheel"
    "$folder/$release/bin/xmem" replay "$trace" --device rtx3060-12g --quiet >"$folder/answer"
    grep -q '^FITS  needs 450.00 MiB of 11.63 GiB' "$folder/answer" || { cat "$folder/answer"; exit 1; }
    printf '%s: from no environment to an answer in %.1f s\n' \
        "$("$folder/$release/bin/python" --version)" "$(echo "$(date +%s.%N) - $start" | bc)"
    "$folder/$release/bin/python" -m xmem --version
    "$folder/$release/bin/python" -c "
import importlib.metadata, xmem
answer = xmem.replay('$trace', device='rtx3060-12g')
assert answer.need_bytes == 450 << 20 and len(answer.timeline()) == 277, answer
assert importlib.metadata.version('xmem-gpu') == xmem.__version__, xmem.__version__
assert importlib.metadata.requires('xmem-gpu') is None"
done

uvx --quiet --from "$wheel" xmem --version

if [ -n "$torch" ]; then
    # A link to the packages of that environment: the wheel is not installed there.
    site=$("$torch" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    uv venv --quiet --no-project --python "$torch" "$folder/torch"
    uv pip install --quiet --python "$folder/torch/bin/python" "$wheel"
    echo "$site" >"$(echo "$folder"/torch/lib/python*/site-packages)/torch.pth"
    cp crates/xmem-python/tests/jobs/train.py "$folder"
    cd "$folder"
    PATH=$folder/torch/bin:$PATH
    xmem profile --virtual-gpu t4-16g python train.py
    xmem replay trace.json.zst --device t4-16g --quiet
    # What the script writes stays out of the user's files, also by the preloaded library.
    echo 'open("written", "w").write("x")' >>train.py
    xmem profile --quiet --overlay preload --engine cpu -o cpu.json.zst python train.py
    [ ! -e written ] || { echo "the recorded script wrote a file"; exit 1; }
    xmem replay cpu.json.zst --device t4-16g --quiet
fi
