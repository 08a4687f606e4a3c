#!/usr/bin/env bash
# The Debian package of a built program: /usr/bin/xmem with man pages, completions, a unit for `xmem serve` and examples.
#
#   DEBFULLNAME=… DEBEMAIL=… build.sh PROGRAM [OUT]
#
# PROGRAM is what `cargo xtask dist` builds, or the one of a wheel; OUT is a folder, and the names are those of the packager.
# The man pages beside it (man/, of `cargo xtask dist`) are taken if they are there; else the program prints the one of
# `xmem`. Needs dpkg-dev and binutils. Two runs with the same program, and SOURCE_DATE_EPOCH, give the same
# bytes.
set -euo pipefail
program=$(realpath "$1")
out=$(realpath "${2:-.}")
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct)}
version=$("$program" --version | cut -d ' ' -f 2)
# Who packages it.
maintainer="${DEBFULLNAME:?} <${DEBEMAIL:?}>"
architecture=$(dpkg --print-architecture)
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
chmod 755 "$stage"

# The directory of a file is made with it.
add() { install -D -m "$1" "$2" "$stage$3"; }
# Without a time in it.
compressed() { gzip -9 --no-name --stdout >"$stage$1" && chmod 644 "$stage$1"; }

add 755 "$program" /usr/bin/xmem
strip --strip-unneeded --remove-section=.comment --remove-section=.note "$stage/usr/bin/xmem"
install -d "$stage"/usr/share/{man/man1,bash-completion/completions,zsh/vendor-completions,fish/vendor_completions.d}
if [ -d "$(dirname "$program")/man" ]; then
    for page in "$(dirname "$program")"/man/*.1; do
        compressed "/usr/share/man/man1/$(basename "$page").gz" <"$page"
    done
else
    "$program" man | compressed /usr/share/man/man1/xmem.1.gz
fi
"$program" completions bash >"$stage/usr/share/bash-completion/completions/xmem"
"$program" completions zsh >"$stage/usr/share/zsh/vendor-completions/_xmem"
"$program" completions fish >"$stage/usr/share/fish/vendor_completions.d/xmem.fish"
add 644 "$here/xmem-serve.service" /usr/lib/systemd/system/xmem-serve.service
add 644 "$here/site.toml" /usr/share/doc/xmem-gpu/examples/site.toml
add 644 "$here/copyright" /usr/share/doc/xmem-gpu/copyright
add 644 "$here/lintian-overrides" /usr/share/lintian/overrides/xmem-gpu
compressed /usr/share/doc/xmem-gpu/changelog.gz <"$root/CHANGELOG.md"
compressed /usr/share/doc/xmem-gpu/changelog.Debian.gz <<CHANGES
xmem-gpu ($version-1) unstable; urgency=medium

  * Version $version: /usr/share/doc/xmem-gpu/changelog.gz has its changes.

 -- $maintainer  $(date --utc --rfc-email --date="@$SOURCE_DATE_EPOCH")
CHANGES

# The newest symbol that the program takes from the C library is the release that it needs.
libc=$(objdump -T "$stage/usr/bin/xmem" | grep -o 'GLIBC_2\.[0-9.]*' | sort -uV | tail -n 1 | cut -d _ -f 2)
libraries="libc6 (>= $libc)"
if objdump -p "$stage/usr/bin/xmem" | grep -q 'NEEDED *libgcc_s'; then
    libraries+=", libgcc-s1"
fi
install -d "$stage/DEBIAN"
size=$(du -sk --apparent-size "$stage" | cut -f 1)
cat >"$stage/DEBIAN/control" <<CONTROL
Package: xmem-gpu
Version: $version-1
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $size
Depends: $libraries
Suggests: python3
Section: science
Priority: optional
Description: GPU memory of PyTorch training jobs, predicted without a GPU
 xmem reads the CPU profiler trace of a training job, or the graph of its model,
 and replays the memory requests of the same job on a GPU through an exact model
 of PyTorch's CUDA caching allocator: how much the job needs, and whether it
 fits.
 .
 It has gates for Slurm and Kubernetes. The unit xmem-serve.service is installed
 and not started.
CONTROL
(cd "$stage" && find usr -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
find "$stage" -print0 | xargs -0 touch --no-dereference --date="@$SOURCE_DATE_EPOCH"
package="$out/xmem-gpu_$version-1_$architecture.deb"
dpkg-deb --root-owner-group -Zxz --build "$stage" "$package" >/dev/null
echo "$package"
