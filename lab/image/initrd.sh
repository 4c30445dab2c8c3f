#!/bin/bash
# SPDX-License-Identifier: MIT
# Packs the small initrd: busybox, the modules that reach the disk, our init and the agent.
# Apart from the image, so that a change to the agent costs a second. Usage: initrd.sh GUEST_DIR OUTPUT_FILE
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
guest=$1
out=$2
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

mkdir -p "$tree"/{proc,dev,ro,rw,new,lab}
cp -r "$guest/initrd/modules" "$tree/modules"
cp "$guest/initrd-modules" "$tree/initrd-modules"
cp "$guest/initrd/busybox" "$tree/busybox"
install -m 755 "$lab_dir/guest/initrd-init" "$tree/init"
install -m 755 "$lab_dir/guest/init" "$tree/lab/init"
gcc -O2 -Wall -static -s -o "$tree/lab/agent" "$lab_dir/guest/agent.c"
(cd "$tree" && find . -print0 | cpio --quiet -0 -o -H newc --owner=0:0) >"$out"
