# SPDX-License-Identifier: MIT
# Shared by the image scripts: where things are cached, progress lines, privileges.
# shellcheck shell=bash disable=SC2034 # the names are used by the scripts that read this

image_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
lab_dir=$(dirname "$image_dir")
cache_dir=${ERNIC_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/rocm-ernic}

# Everything printed goes to stderr: the callers read results from stdout.
started=$SECONDS
say() { printf '[%4ds] image: %s\n' "$((SECONDS - started))" "$*" >&2; }
die() { printf 'image: %s\n' "$*" >&2; exit 1; }

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -- "$@"; fi
}

# One short key for a set of files: a changed byte in any of them names a new artefact.
content_key() { cat -- "$@" | sha256sum | cut -c1-12; }

# The Debian mirror this machine already uses, so that a local mirror is honoured.
debian_mirror() {
  local uri
  if [ -n "${ERNIC_MIRROR:-}" ]; then echo "$ERNIC_MIRROR"; return; fi
  # shellcheck disable=SC2016 # apt expands this itself
  uri=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
    grep -m1 -E '/debian/?$') || true
  echo "${uri:-http://deb.debian.org/debian}"
}

# A long step with its output in a log, and a line every ten seconds so that nobody thinks it hangs.
quiet_step() {
  local label=$1 log=$2 pid waited=0
  shift 2
  say "$label (log: $log)"
  "$@" >"$log" 2>&1 </dev/null &
  pid=$!
  while kill -0 "$pid" 2>/dev/null; do
    sleep 1
    waited=$((waited + 1))
    [ $((waited % 10)) -ne 0 ] || say "  ... $label, ${waited}s: $(tail -n1 "$log" | tr '\r' '\n' | tail -n1 | cut -c1-80)"
  done
  wait "$pid" || { tail -n 20 "$log" >&2; die "'$label' failed, the whole log is $log"; }
}
