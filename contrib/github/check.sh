#!/usr/bin/env bash
# The step of action.yml: checks traces, annotates the run and writes its summary.
#
# Reads XMEM_ACTION_* as set by action.yml. Each line of XMEM_ACTION_TRACES is a file, folder or pattern.
# Without xmem on the PATH, it is built from the sources beside this script.
# Answers are kept in a folder of this step alone: on a runner that keeps its home folder, every job is the same user,
# and could have written what is there.
set -euo pipefail

here=$(cd "$(dirname "$0")/../.." && pwd)
if ! command -v xmem >/dev/null; then
    root=${RUNNER_TEMP:-$(mktemp -d)}/xmem
    cargo install --quiet --locked --path "$here/crates/xmem-cli" --root "$root"
    PATH=$root/bin:$PATH
fi

cache=$(mktemp -d "${RUNNER_TEMP:-${TMPDIR:-/tmp}}/xmem-cache.XXXXXXXX")
trap 'rm -rf -- "$cache"' EXIT
export XDG_CACHE_HOME=$cache

arguments=()
while IFS= read -r line; do
    [ -n "$line" ] && arguments+=("$line")
done <<<"${XMEM_ACTION_TRACES:-}"
option() {
    [ -z "$2" ] || arguments+=("$1" "$2")
}
option --device "${XMEM_ACTION_DEVICE:-}"
option --request "${XMEM_ACTION_REQUEST:-}"
option --site "${XMEM_ACTION_SITE:-}"
option --margin "${XMEM_ACTION_MARGIN:-}"
option --policy "${XMEM_ACTION_POLICY:-}"
option --baseline "${XMEM_ACTION_BASELINE:-}"
option --tolerance "${XMEM_ACTION_TOLERANCE:-}"

status=0
xmem check "${arguments[@]}" --format github || status=$?
if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then
    # The answers were kept a moment ago. An error has been printed.
    xmem check "${arguments[@]}" --format markdown >>"$GITHUB_STEP_SUMMARY" 2>/dev/null || true
fi
exit "$status"
