#!/bin/bash
# SPDX-License-Identifier: MIT
# Runs inside the making of the tools root: fetches the kernel and its modules, builds ionic_rdma
# beside them, and leaves the result in ROOT/guest-kernel. Usage: kernel.sh ROOT
set -euo pipefail
root=$1

headers=$(basename "$root"/usr/src/linux-headers-*-amd64)
version=${headers#linux-headers-}

# Unpacked, not installed: installing would pull in and run an initramfs generator.
chroot "$root" bash -euc "
  mkdir -p /guest-kernel && cd /guest-kernel
  apt-get -q download linux-binary-$version linux-modules-$version
  for package in *.deb; do dpkg-deb -x \$package .; done
  rm -f *.deb"

# The driver exactly as in the distribution's source; the two configuration values are what
# 'make menuconfig' would have set.
chroot "$root" bash -euc "
  cd /guest-kernel
  source=\$(basename /usr/src/linux-source-*.tar.xz .tar.xz)
  tar -xf /usr/src/\$source.tar.xz \$source/drivers/infiniband/hw/ionic \$source/drivers/net/ethernet/pensando/ionic
  make -s -j\$(nproc) -C /usr/src/$headers M=\$PWD/\$source/drivers/infiniband/hw/ionic \
    CONFIG_INFINIBAND_IONIC=m \
    KCPPFLAGS=\"-I\$PWD/\$source/drivers/net/ethernet/pensando/ionic\" modules
  install -D -m 644 -t /guest-kernel/usr/lib/modules/$version/updates \$source/drivers/infiniband/hw/ionic/ionic_rdma.ko
  rm -rf \$source /usr/src/linux-source-*.tar.xz"

# One flat folder: guest-kernel/{version,vmlinuz,vmlinux,modules/}.
mv "$root/guest-kernel/usr/lib/modules/$version" "$root/guest-kernel/modules"
mv "$root"/guest-kernel/modules/vmlinuz "$root/guest-kernel/vmlinuz"
"$(dirname "$0")/unpack-kernel.py" "$root/guest-kernel/vmlinuz" | chroot "$root" zstd -dcq >"$root/guest-kernel/vmlinux" 2>/dev/null ||
  [ -s "$root/guest-kernel/vmlinux" ] # zstd complains about the bytes behind the kernel
cp "$root/lib/modules/$version"/modules.* "$root/guest-kernel/modules/"
rm -rf "$root"/guest-kernel/usr
echo "$version" >"$root/guest-kernel/version"

# Nothing the guest could use, and most of the size.
rm -rf "$root"/guest-kernel/modules/kernel/{sound,drivers/{gpu,media,staging,iio,hid,isdn,mtd,accel,comedi}} \
  "$root"/guest-kernel/modules/kernel/drivers/net/{wireless,wwan,can}

# Unpacked once here instead of at each boot by an emulated processor.
find "$root/guest-kernel/modules" -name '*.ko.xz' -print0 | xargs -0 -r -n 64 -P "$(nproc)" unxz
rm -rf "$root/lib/modules/$version"
ln -s /guest-kernel/modules "$root/lib/modules/$version"
chroot "$root" depmod "$version"

# What the initrd must load, in order, before it can mount the root file system.
for module in virtio_pci virtio_blk erofs overlay virtio_console; do
  chroot "$root" modprobe -S "$version" --show-depends "$module"
done | awk -v prefix="/lib/modules/$version/" '$1 == "insmod" && !seen[$2]++ { print substr($2, length(prefix) + 1) }' \
  >"$root/guest-kernel/initrd-modules"
