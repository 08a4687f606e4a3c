#!/usr/bin/env bash
# A wheel and a Debian package in a Debian that has nothing else, neither Rust nor PyTorch: from nothing to the first answer.
#
#   clean-root.sh WHEEL DEB [SUITE]
#
# Needs root, debootstrap and a mirror of Debian (MIRROR). The root is made below TMPDIR and removed at the end; the
# seconds that are printed begin when it is there.
set -euo pipefail
wheel=$(realpath "$1")
deb=$(realpath "$2")
suite=${3:-bookworm}
trace=$(cd "$(dirname "$0")/../.." && pwd)/traces/mlp_adam/trace.json.zst
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
debootstrap --variant=minbase --include=python3,python3-venv "$suite" "$root" "${MIRROR:-http://deb.debian.org/debian}" >/dev/null
cp "$wheel" "$deb" "$trace" "$root/tmp"

within() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin HOME=/root bash -euc "$1"; }
timed() {
    local start
    start=$(date +%s.%N)
    within "$2"
    printf '%s: %.1f s\n' "$1" "$(echo "$(date +%s.%N) $start" | awk '{ print $1 - $2 }')"
}
wanted='^FITS  needs 450.00 MiB of 11.63 GiB'

timed "the wheel: an environment, pip install, the first answer" "
    python3 -m venv /opt/xmem
    /opt/xmem/bin/pip install --quiet --no-index --disable-pip-version-check /tmp/$(basename "$wheel")
    /opt/xmem/bin/xmem replay /tmp/trace.json.zst --device rtx3060-12g --quiet | grep '$wanted'"
timed "import xmem, replay and the timeline" "
    /opt/xmem/bin/python -c \"
import xmem
answer = xmem.replay('/tmp/trace.json.zst', device='rtx3060-12g')
assert answer.need_bytes == 450 << 20 and len(answer.timeline()) == 277\""
timed "the Debian package: dpkg, the first answer" "
    dpkg --install /tmp/$(basename "$deb") >/dev/null
    xmem replay /tmp/trace.json.zst --device rtx3060-12g --quiet | grep '$wanted'"
within "
    test -s /usr/share/man/man1/xmem.1.gz || test -e /etc/dpkg/dpkg.cfg.d/excludes
    test -s /usr/share/bash-completion/completions/xmem
    XMEM_SITE=/usr/share/doc/xmem-gpu/examples/site.toml xmem config | grep -q 't4-16g'
    dpkg --purge xmem-gpu >/dev/null
    ! command -v xmem >/dev/null"
echo "purged: nothing is left"
