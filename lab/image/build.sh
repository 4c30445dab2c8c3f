#!/bin/bash
# SPDX-License-Identifier: MIT
# Makes whatever part of the guest lab is missing and prints where the parts are, as NAME=PATH lines:
# TOOLS (QEMU and its libraries), GUEST (kernel and root file system), INITRD.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"

case ${1:-} in
  '') ;;
  --key) ;;
  *) cat >&2 <<'HELP'
usage: lab/image/build.sh [--key]
Builds the guest image where needed (a few minutes the first time, nothing after that).
  --key   only print the names of the parts, build nothing
HELP
    [ "$1" = --help ] && exit 0 || exit 2 ;;
esac

cd "$image_dir"
tools_key=$(content_key common.sh tools-root.sh kernel.sh unpack-kernel.py tools-packages.txt)
guest_key=$({ echo "$tools_key"; cat guest-root.sh guest-packages.txt; } | sha256sum | cut -c1-12)
initrd_key=$({ echo "$guest_key"; cat initrd.sh ../guest/initrd-init ../guest/init ../guest/agent.c; } | sha256sum | cut -c1-12)
tools=$cache_dir/tools-$tools_key
guest=$cache_dir/guest-$guest_key
initrd=$cache_dir/initrd-$initrd_key.cpio
printf 'TOOLS=%s\nGUEST=%s\nINITRD=%s\n' "$tools" "$guest" "$initrd"
[ "${1:-}" != --key ] || exit 0
[ ! -d "$tools" ] || [ ! -d "$guest" ] || [ ! -f "$initrd" ] || exit 0

mkdir -p "$cache_dir/logs"
# One builder at a time; the second one waits and then finds everything made.
exec 9>"$cache_dir/lock"
flock -n 9 || { say "another build is running, waiting for it"; flock 9; }

for tool in mmdebstrap cpio gcc; do
  PATH=$PATH:/usr/sbin:/sbin command -v "$tool" >/dev/null || die "$tool is not installed; run './dev setup' first"
done

# Made under a temporary name and renamed: a half-made part is never mistaken for a whole one.
make_part() {
  local label=$1 final=$2
  shift 2
  [ ! -e "$final" ] || return 0
  as_root rm -rf "$final.tmp"
  quiet_step "$label" "$cache_dir/logs/$(basename "$final").log" "$@"
  as_root mv "$final.tmp" "$final"
  say "$label: done"
}

mirror=$(debian_mirror)
make_part 'QEMU, kernel and ionic_rdma (about 3 minutes)' "$tools" as_root ./tools-root.sh "$tools.tmp" "$mirror"
make_part 'guest root file system (about 3 minutes)' "$guest" as_root ./guest-root.sh "$tools" "$guest.tmp" "$mirror"
make_part 'initrd' "$initrd" ./initrd.sh "$guest" "$initrd.tmp"
