#!/usr/bin/env bash
# A release of made-up files: release.sh FOLDER
#
# Its names are those of `cargo xtask release`. The program is a script that answers what the recipes ask. The wheel can
# be installed.
set -euo pipefail
version=1.20.3
mkdir -p "$1"
cd "$1"

stem=xmem-$version-x86_64-linux
mkdir -p "$stem"/{man,completions}
cat >"$stem/xmem" <<PROGRAM
#!/bin/sh
case \$1 in
--version) echo "xmem $version" ;;
devices) echo "  a100-40g  39.56 GiB" ;;
*) exit 2 ;;
esac
PROGRAM
chmod 755 "$stem/xmem"
for file in man/xmem{,-replay}.1 completions/{xmem.bash,xmem.fish,_xmem,xmem.elv,_xmem.ps1} \
    LICENSE-{APACHE,MIT} README.md; do
    echo "made up: $file" >"$stem/$file"
done
tar -czf "$stem.tar.gz" "$stem"

for platform in manylinux2014_x86_64.manylinux_2_17_x86_64 musllinux_1_2_x86_64; do
    python3 - "$stem/xmem" "$version" "$platform" <<'WHEEL'
import stat
import sys
import zipfile

program, version, platform = sys.argv[1:]
about = f"xmem_gpu-{version}.dist-info"
tags = "".join(f"Tag: py3-none-{one}\n" for one in platform.split("."))
files = {
    "xmem/__init__.py": f'__version__ = "{version}"\n',
    f"xmem_gpu-{version}.data/scripts/xmem": open(program).read(),
    f"{about}/METADATA": f"Metadata-Version: 2.4\nName: xmem-gpu\nVersion: {version}\nRequires-Python: >=3.9\n",
    f"{about}/WHEEL": f"Wheel-Version: 1.0\nGenerator: made-up\nRoot-Is-Purelib: false\n{tags}",
    f"{about}/licenses/LICENSE-APACHE": "made up\n",
    f"{about}/licenses/LICENSE-MIT": "made up\n",
}
files[f"{about}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{about}/RECORD"])
with zipfile.ZipFile(f"xmem_gpu-{version}-py3-none-{platform}.whl", "w") as wheel:
    for name, text in files.items():
        entry = zipfile.ZipInfo(name)
        entry.external_attr = (stat.S_IFREG | (0o755 if "/scripts/" in name else 0o644)) << 16
        wheel.writestr(entry, text)
WHEEL
done
echo "made up" >"xmem-gpu_$version-1_amd64.deb"
rm -r "$stem"
sha256sum -- * >SHA256SUMS
