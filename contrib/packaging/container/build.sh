#!/bin/sh
# Builds an image of the program in a musllinux wheel: build.sh WHEEL TAG
#
# With buildah, podman or docker, the first of them that is installed; CONTAINER_TOOL names another. Nothing is pulled: the image has
# one file.
set -eu

[ $# -eq 2 ] || { echo "usage: $0 WHEEL TAG" >&2; exit 2; }
wheel=$1 tag=$2
case $wheel in
*musllinux*) ;;
*) echo "$0: $wheel is no musllinux wheel: its program needs a C library, which the image does not have" >&2; exit 2 ;;
esac
here=$(cd "$(dirname "$0")" && pwd)
if [ -z "${CONTAINER_TOOL:-}" ]; then
    for tool in buildah podman docker; do
        command -v "$tool" >/dev/null && CONTAINER_TOOL=$tool && break
    done
fi
[ -n "${CONTAINER_TOOL:-}" ] || { echo "$0: install buildah, podman or docker" >&2; exit 2; }
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
python3 - "$wheel" "$context/xmem" <<'PROGRAM'
import os
import sys
import zipfile

wheel, to = sys.argv[1:]
with zipfile.ZipFile(wheel) as files:
    names = [name for name in files.namelist() if name.endswith(".data/scripts/xmem")]
    with open(to, "wb") as file:
        file.write(files.read(names[0]))
os.chmod(to, 0o755)
PROGRAM
"$CONTAINER_TOOL" build --tag "$tag" --file "$here/Containerfile" "$context"
