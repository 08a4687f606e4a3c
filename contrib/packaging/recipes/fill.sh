#!/usr/bin/env bash
# The recipes of package managers for a release: every `.in` file beside this script, filled in.
#
#   fill.sh FOLDER ADDRESS [OUT]
#
# FOLDER is what `cargo xtask release` makes, ADDRESS the URL below which its files are published. The recipes are
# written to OUT (FOLDER/recipes). Nothing is written if the folder is damaged or lacks what a recipe installs.
# Needs coreutils, tar, gzip and Python 3.
set -euo pipefail

fail() {
    echo "$0: $*" >&2
    exit 1
}

if [ $# -lt 2 ] || [ $# -gt 3 ]; then
    echo "usage: $0 FOLDER ADDRESS [OUT]" >&2
    exit 2
fi
folder=$1
address=${2%/}
out=${3:-$folder/recipes}
here=$(cd "$(dirname "$0")" && pwd)
sums=$folder/SHA256SUMS

# Nothing in an address may end a string of YAML, TOML, Ruby or Nix, or be a template of one of them.
[[ $address =~ ^(https://|file:///)[A-Za-z0-9._~:/%+-]+$ ]] ||
    fail "'$2' is not the address of a release: begin with https:// (or file:///, to try the recipes)," \
        "and use letters, digits and ._~:/%+- alone"
[ -f "$sums" ] || fail "$sums is missing: name a folder that \`cargo xtask release\` has made"
(cd "$folder" && sha256sum --check --strict --quiet SHA256SUMS) >&2 ||
    fail "files in $folder differ from $sums: make the release again with \`cargo xtask release\`"

# The name of the one file of a release that a pattern is for: named WHAT PATTERN.
named() {
    local names
    # sha256sum has read every line.
    names=$(cut -c 67- "$sums" | grep -E "^$2$" || true)
    [ -n "$names" ] || fail "$sums lists no $1: make the release again with \`cargo xtask release\`"
    [ "$(wc -l <<<"$names")" -eq 1 ] ||
        fail "$sums lists several files that could be the $1: keep one of" "$(paste -sd ' ' <<<"$names")"
    echo "$names"
}
sum_of() { awk -v name="$1" 'substr($0, 67) == name { print $1 }' "$sums"; }

number='(0|[1-9][0-9]*)'
archive=$(named "archive of the program (xmem-X.Y.Z-x86_64-linux.tar.gz)" \
    "xmem-$number\.$number\.$number-x86_64-linux\.tar\.gz")
stem=${archive%.tar.gz}
version=${stem#xmem-}
version=${version%-x86_64-linux}
wheel=$(named "manylinux wheel of $version (xmem_gpu-$version-*manylinux*_x86_64.whl)" \
    "xmem_gpu-${version//./\\.}-[A-Za-z0-9_.-]*manylinux[A-Za-z0-9_.]*_x86_64[A-Za-z0-9_.]*\.whl")

# What the recipes install has to be there: has FILE LIST NAME...
has() {
    local file=$1 list=$2 name
    shift 2
    for name in "$@"; do
        grep -qxF -- "$name" <<<"$list" ||
            fail "$folder/$file has no file $name, which recipes install:" \
                "change the recipes in $here, or make the release again"
    done
}
files=$(tar -tzf "$folder/$archive") || fail "$folder/$archive cannot be read as tar.gz: make the release again"
has "$archive" "$files" "$stem"/{xmem,man/xmem.1,completions/{xmem.bash,xmem.fish,_xmem},LICENSE-{APACHE,MIT}}
files=$(python3 -c 'import sys, zipfile; print(*zipfile.ZipFile(sys.argv[1]).namelist(), sep="\n")' \
    "$folder/$wheel") || fail "$folder/$wheel cannot be read as a wheel: make the release again"
has "$wheel" "$files" xmem/__init__.py "xmem_gpu-$version".{data/scripts/xmem,dist-info/licenses/LICENSE-{APACHE,MIT}}

stage=$(mktemp -d)
trap 'rm -rf -- "$stage"' EXIT
while IFS= read -r template; do
    mkdir -p "$stage/$(dirname "$template")"
    sed -e "s|@VERSION@|$version|g" \
        -e "s|@ADDRESS@|$address|g" \
        -e "s|@ARCHIVE@|$archive|g" \
        -e "s|@ARCHIVE_SHA256@|$(sum_of "$archive")|g" \
        -e "s|@WHEEL@|$wheel|g" \
        -e "s|@WHEEL_SHA256@|$(sum_of "$wheel")|g" \
        "$here/$template" >"$stage/${template%.in}"
    if left=$(grep -nE '@[A-Z][A-Z0-9_]*@' "$stage/${template%.in}"); then
        fail "$here/$template has a placeholder that $0 does not know: correct it, or add it to the script" \
            $'\n'"$left"
    fi
done < <(cd "$here" && find . -name '*.in' | sed 's|^\./||' | sort)

mkdir -p "$out"
(cd "$stage" && find . -type f) | sed 's|^\./||' | sort | while IFS= read -r recipe; do
    install -D -m 644 "$stage/$recipe" "$out/$recipe"
    echo "$out/$recipe"
done
