#!/bin/bash
# SPDX-License-Identifier: MIT
# Makes the guest's root file system: Debian userland as installed, and the kernel modules of the
# tools root. Needs root. Usage: guest-root.sh TOOLS_ROOT OUTPUT_DIR MIRROR
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
tools=$1
out=$2
mirror=$3
packages=$(grep -v '^#' "$image_dir/guest-packages.txt" | paste -sd,)
root=$out/root
mkdir -p "$out"

# rdma-core's tests are shipped as documentation, so that part of the documentation stays.
mmdebstrap --variant=minbase --include="$packages" \
  --aptopt='Acquire::Check-Valid-Until "false"' --aptopt='APT::Install-Recommends "false"' \
  --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
  --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/rdma-core*' \
  forky "$root" "deb $mirror forky main"

version=$(cat "$tools/guest-kernel/version")
mkdir -p "$root/usr/lib/modules"
cp -a "$tools/guest-kernel/modules" "$root/usr/lib/modules/$version"

mkdir -p "$root/opt/rdma-core" "$root/lab"
cp -a "$root/usr/share/doc/rdma-core/tests" "$root/opt/rdma-core/"
gunzip -r "$root/opt/rdma-core/tests"
chroot "$root" python3 -m compileall -q /usr/lib/python3 /opt/rdma-core >/dev/null || true

echo ernic-guest >"$root/etc/hostname"
printf '127.0.0.1 localhost ernic-guest\n' >"$root/etc/hosts"
: >"$root/etc/fstab"
rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/* "$root"/usr/lib/modules/"$version"/vmlinuz
printf "export PS1='guest# ' TERM=\${TERM:-linux}\n" >"$root/root/.profile"

# EROFS cannot be written to by anybody, and its module loads in a fraction of ext4's time.
"$tools/lib64/ld-linux-x86-64.so.2" --library-path "$tools/usr/lib/x86_64-linux-gnu" \
  "$tools/usr/bin/mkfs.erofs" --quiet -T0 "$out/rootfs.img" "$root"
cp "$tools/guest-kernel/vmlinux" "$tools/guest-kernel/vmlinuz" "$tools/guest-kernel/version" "$tools/guest-kernel/initrd-modules" "$out/"
mkdir -p "$out/initrd/modules"
while read -r module; do cp "$root/usr/lib/modules/$version/$module" "$out/initrd/modules/"; done <"$out/initrd-modules"
cp "$root/usr/bin/busybox" "$out/initrd/"
rm -rf "$root"
chmod -R a+rX "$out"
