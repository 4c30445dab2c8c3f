#!/bin/bash
# SPDX-License-Identifier: MIT
# Makes the tools root: QEMU, a compiler and the guest's kernel with ionic_rdma.ko built from the
# distribution's own source. Debian does not build that one driver, so we do, without touching it.
# Needs root. Usage: tools-root.sh OUTPUT_DIR MIRROR
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "$0")/common.sh"
out=$1
mirror=$2
packages=$(grep -v '^#' "$image_dir/tools-packages.txt" | paste -sd,)

# The suite moves every day and a mirror may be a few days behind, hence Check-Valid-Until.
mmdebstrap --variant=apt --include="$packages" \
  --aptopt='Acquire::Check-Valid-Until "false"' --aptopt='APT::Install-Recommends "false"' \
  --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
  --dpkgopt='path-exclude=/usr/share/doc/*' \
  --customize-hook="'$image_dir/kernel.sh' \"\$1\"" \
  forky "$out" "deb $mirror forky main"
