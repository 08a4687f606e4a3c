#!/usr/bin/env bash
# Checks the recipes: fills them in for a release of made-up files, and runs what reads them here.
#
# What is not installed is skipped, and said. PYTHON names a Python with py-rattler-build (python3).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
recipes=$(dirname "$here")
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
address=https://example.org/xmem/1.20.3

fail() {
    echo "$0: $*" >&2
    exit 1
}
ok() { echo "ok: $*"; }
# Whether a program is there, or a module of Python: else says what is skipped.
has() {
    command -v "$1" >/dev/null || { echo "skipped: $1 is not installed" && return 1; }
}
has_module() {
    "$python" -c "import $1" 2>/dev/null || { echo "skipped: $2 is not installed" && return 1; }
}

# A new release, and a copy of the recipes to damage.
prepare() {
    rm -rf "$work/release" "$work/recipes" "$work/out"
    cp -r "$work/made" "$work/release"
    cp -r "$recipes" "$work/recipes"
}
fill() { "$work/recipes/fill.sh" "$work/release" "${1:-$address}" "$work/out"; }
# fill.sh fails with a message, and has written nothing: refused WHAT MESSAGE [ADDRESS]
refused() {
    local status=0
    fill "${3:-$address}" >"$work/said" 2>&1 || status=$?
    [ "$status" -eq 1 ] || fail "$1: fill.sh ended with status $status: $(cat "$work/said")"
    grep -qF -- "$2" "$work/said" || fail "$1: fill.sh does not say '$2': $(cat "$work/said")"
    [ ! -e "$work/out" ] || fail "$1: fill.sh has written recipes"
    ok "refused: $1"
    prepare
}
sums() { (cd "$work/release" && rm SHA256SUMS && sha256sum -- * >SHA256SUMS); }

"$here/release.sh" "$work/made"
archive=xmem-1.20.3-x86_64-linux.tar.gz
wheel=xmem_gpu-1.20.3-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl
sum() { sha256sum "$work/made/$1" | cut -d ' ' -f 1; }

prepare
fill "$address/" >/dev/null
filled=$(cd "$work/out" && find . -type f | sort | paste -sd ' ')
[ "$filled" = "./binstall.toml ./conda/recipe.yaml ./homebrew/xmem.rb ./nix/flake.nix" ] || fail "written: $filled"
for recipe in binstall.toml homebrew/xmem.rb nix/flake.nix; do
    grep -qF "\"$address/$archive\"" "$work/out/$recipe" || fail "$recipe does not fetch $address/$archive"
done
for recipe in homebrew/xmem.rb nix/flake.nix; do
    grep -qF "\"$(sum "$archive")\"" "$work/out/$recipe" || fail "$recipe does not have the sum of $archive"
done
grep -qF "\"$address/$wheel\"" "$work/out/conda/recipe.yaml" || fail "recipe.yaml does not fetch $address/$wheel"
grep -qF "\"$(sum "$wheel")\"" "$work/out/conda/recipe.yaml" || fail "recipe.yaml does not have the sum of $wheel"
mv "$work/out" "$work/filled"
ok "filled in: $filled"

"$work/recipes/fill.sh" "$work/release" "$address" >/dev/null
diff -r "$work/release/recipes" "$work/filled"
"$work/recipes/fill.sh" "$work/release" "$address" >/dev/null
ok "filled in twice, into the folder of the release"

prepare
echo >>"$work/release/$archive"
refused "an archive with another sum" "$archive: FAILED"
rm "$work/release/$wheel"
refused "a wheel that is listed and missing" "$wheel: FAILED open or read"
rm "$work/release/$wheel" && sums
refused "no manylinux wheel" "lists no manylinux wheel of 1.20.3"
rm "$work/release/$archive" && sums
refused "no archive" "lists no archive of the program"
cp "$work/release/$archive" "$work/release/xmem-1.20.4-x86_64-linux.tar.gz" && sums
refused "two archives" "lists several files that could be the archive of the program"
mv "$work/release/$archive" "$work/release/xmem-1.20.3-rc.1-x86_64-linux.tar.gz" && sums
refused "a version that is not X.Y.Z" "lists no archive of the program"
echo "not an archive" >"$work/release/$archive" && sums
refused "an archive that cannot be read" "cannot be read as tar.gz"
echo "not a wheel" >"$work/release/$wheel" && sums
refused "a wheel that cannot be read" "cannot be read as a wheel"
mkdir "$work/other" && tar -C "$work/other" -xf "$work/release/$archive" && rm "$work"/other/*/completions/_xmem
tar -C "$work/other" -czf "$work/release/$archive" "${archive%.tar.gz}" && sums
refused "an archive without completions" "has no file ${archive%.tar.gz}/completions/_xmem"
cp "$work"/release/*musllinux*.whl "$work/release/$wheel" && "$python" -c '
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w") as wheel:
    wheel.writestr("xmem/__init__.py", "")' "$work/release/$wheel" && sums
refused "a wheel without the program" "has no file xmem_gpu-1.20.3.data/scripts/xmem"
echo "$(sum "$archive") $archive" >>"$work/release/SHA256SUMS"
refused "a list of sums with a line that is none" "differ from"
rm "$work/release/SHA256SUMS"
refused "no list of sums" "SHA256SUMS is missing"
echo "# @NOTHING_KNOWN@" >>"$work/recipes/nix/flake.nix.in"
refused "a placeholder that is left" "# @NOTHING_KNOWN@"
refused "an address without https" "is not the address of a release" "http://example.org/xmem"
refused "an address that ends a string" "is not the address of a release" 'https://example.org/"+x'
refused "an address that is a template" "is not the address of a release" 'https://example.org/{ repo }'
refused "no address" "is not the address of a release" 'example.org'

cd "$work/filled"
mkdir "$work/unpacked" && tar -C "$work/unpacked" -xf "$work/made/$archive"
if has shellcheck; then
    shellcheck "$recipes/fill.sh" "$here"/*.sh
    ok "shellcheck $(shellcheck --version | sed -n 's/^version: //p')"
fi

if has ruby; then
    ruby -wc homebrew/xmem.rb >/dev/null
    ruby -w "$here/formula.rb" homebrew/xmem.rb "$work/unpacked/${archive%.tar.gz}" "$work/homebrew" >"$work/declared"
    diff - "$work/declared" <<DECLARED
url $address/$archive
version 1.20.3
sha256 $(sum "$archive")
DECLARED
    [ "$(find "$work/homebrew" -type f | wc -l)" -eq 8 ] || fail "the formula installs $(find "$work/homebrew" -type f)"
    ok "ruby $(ruby -e 'print RUBY_VERSION'): the formula installs and tests itself with stand-ins for Homebrew"
fi
if has rubocop; then
    rubocop --cache false --config "$here/rubocop.yml" --format quiet homebrew/xmem.rb "$here/formula.rb"
    ok "rubocop $(rubocop --version)"
fi

if has nix-instantiate; then
    # The store is not read: only values are wanted.
    export NIX_REMOTE=dummy://
    nix-instantiate --parse nix/flake.nix >/dev/null 2>"$work/said" || fail "$(cat "$work/said")"
    nix-instantiate --eval --strict --json --argstr flake "$PWD/nix/flake.nix" "$here/outputs.nix" \
        >"$work/outputs.json" 2>"$work/said" || fail "$(cat "$work/said")"
    "$python" - "$work/outputs.json" "$address/$archive" "$(sum "$archive")" >"$work/install" <<'OUTPUTS'
import json
import sys

path, url, sha256 = sys.argv[1:]
outputs = json.load(open(path))
assert outputs["src"] == {"url": url, "sha256": sha256}, outputs["src"]
assert outputs["version"] == "1.20.3", outputs["version"]
assert outputs["inputs"] == ["autoPatchelfHook", "installShellFiles", "libgcc"], outputs["inputs"]
assert outputs["app"] == {"type": "app", "program": "/out/bin/xmem"}, outputs["app"]
print(outputs["installPhase"], outputs["installCheckPhase"], sep="\n")
OUTPUTS
    # The hook of `installShellFiles` takes files and options with a value.
    (cd "$work/unpacked/${archive%.tar.gz}" && out=$work/nix version=1.20.3 bash -eu -c '
        runHook() { :; }
        installManPage() { ls "$@" >/dev/null; }
        installShellCompletion() {
            [ "$1 $2" = "--cmd xmem" ]
            for ((at = 3; at < $#; at += 2)); do
                [[ ${!at} =~ ^--(bash|fish|zsh)$ ]]
                file=$((at + 1))
                ls "${!file}" >/dev/null
            done
        }
        . "$0"' "$work/install") || fail "the phases of flake.nix fail, as said above"
    [ "$(find "$work/nix" -type f | wc -l)" -eq 3 ] || fail "the flake installs $(find "$work/nix" -type f)"
    ok "nix $(nix-instantiate --version | sed 's/.* //'): the flake is read, and installs with stand-ins for nixpkgs"
fi

if has_module rattler_build py-rattler-build; then
    "$python" -B "$here/conda.py" conda/recipe.yaml "$work/build" >"$work/rendered.json"
    "$python" -m venv "$work/venv"
    mkdir "$work/conda" && cp "$work/made/$wheel" "$work/conda"
    (cd "$work/conda" && PYTHON=$work/venv/bin/python PIP_DISABLE_PIP_VERSION_CHECK=1 bash "$work/build" >/dev/null)
    "$python" - "$work/rendered.json" "$address/$wheel" "$(sum "$wheel")" "$work" <<'RENDERED'
import json
import os
import subprocess
import sys

path, url, sha256, work = sys.argv[1:]
package = json.load(open(path))
assert package["source"] == [{"url": url, "sha256": sha256}], package["source"]
for license in package["about"]["license_file"]:
    assert os.path.isfile(f"{work}/conda/{license}"), f"there is no {license}"
programs = {**os.environ, "PATH": f"{work}/venv/bin:{os.environ['PATH']}"}
for command in package["tests"][0]["script"]:
    subprocess.run(command, shell=True, check=True, env=programs, cwd=work, stdout=subprocess.DEVNULL)
RENDERED
    version=$("$python" -c 'import rattler_build; print(rattler_build.rattler_build_version())')
    ok "rattler-build $version: the recipe is rendered, and its scripts run in an environment of Python"
fi

if has_module tomllib "Python 3.11, for binstall.toml,"; then
    "$python" - "$address/$archive" "${archive%.tar.gz}" <<'MANIFEST'
import sys
import tomllib

url, stem = sys.argv[1:]
with open("binstall.toml", "rb") as file:
    package = tomllib.load(file)["package"]
assert (package["name"], package["version"]) == ("xmem-cli", "1.20.3"), package
binstall = package["metadata"]["binstall"]
assert binstall["disabled-strategies"] == ["quick-install", "compile"], binstall
assert binstall["overrides"] == {
    "x86_64-unknown-linux-gnu": {"pkg-url": url, "pkg-fmt": "tgz", "bin-dir": f"{stem}/{{ bin }}"}
}, binstall
MANIFEST
    ok "binstall.toml is TOML with what cargo-binstall reads"
fi
