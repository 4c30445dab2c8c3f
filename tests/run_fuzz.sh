#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds the libFuzzer targets of fuzz/ (clang, AddressSanitizer, UndefinedBehaviorSanitizer, assertions on), replays
# every input that once broke something, and looks for new ones. See fuzz/README.md.
set -euo pipefail

usage() {
  cat <<'HELP'
usage: tests/run_fuzz.sh [--seconds N | --full] [--target NAME]... [--build-dir DIR]
  --seconds N      how long to fuzz each target (default 60; 0 only replays what is known)
  --full           ten minutes per target
  --target NAME    only this target (the file is fuzz/NAME_fuzz.cpp); may be repeated
  --build-dir DIR  default build-asan-ubsan; found inputs are left in DIR/findings/NAME, the grown corpus in DIR/corpus/NAME
Two bare arguments are taken as DIR and N.
HELP
}

die() {
  printf 'run_fuzz.sh: %s\n' "$*" >&2
  exit 2
}

seconds=60
build_dir=
targets=()
bare=()
while [ $# -gt 0 ]; do
  case $1 in
    --seconds) seconds=${2:?--seconds needs a number}; shift ;;
    --full) seconds=600 ;;
    --target) targets+=("${2:?--target needs a name}"); shift ;;
    --build-dir) build_dir=${2:?--build-dir needs a folder}; shift ;;
    -h | --help) usage; exit 0 ;;
    -*) usage >&2; die "unknown option '$1'" ;;
    *) bare+=("$1") ;;
  esac
  shift
done
[ ${#bare[@]} -le 2 ] || die "unexpected argument '${bare[2]}'"
build_dir=${build_dir:-${bare[0]:-build-asan-ubsan}}
seconds=${bare[1]:-$seconds}
case $seconds in '' | *[!0-9]*) die "'$seconds' is no number of seconds" ;; esac

cd "$(dirname "$0")/.."
if [ ${#targets[@]} -eq 0 ]; then
  for source in fuzz/*_fuzz.cpp; do
    name=$(basename "$source" _fuzz.cpp)
    targets+=("$name")
  done
fi
for target in "${targets[@]}"; do
  [ -e "fuzz/${target}_fuzz.cpp" ] || die "there is no target '$target'"
done

mkdir -p "$build_dir"
# Assertions stay in: a guest that reaches one has found a fault of ours.
if ! cmake --preset asan-ubsan -B "$build_dir" -Wno-dev >"$build_dir/configure.log" 2>&1; then
  cat "$build_dir/configure.log"
  die "configuring $build_dir failed"
fi
cmake --build "$build_dir" --target "${targets[@]/#/fuzz_}" -- --quiet

export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
# Sockets and whatever else a target leaves behind when it dies.
TMPDIR=$(mktemp -d)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT

# The newest value of a libFuzzer statistic, or a dash.
statistic() { sed -n "s/^stat::$1: *//p" "$2" | tail -n 1 | grep . || echo -; }

# Any input that takes ten seconds, or a gigabyte, has found something, too.
limits=(-timeout=10 -rss_limit_mb=1024 -malloc_limit_mb=256)
# One target; prints its line, returns whether it held.
fuzz() {
  local target=$1 findings=$build_dir/findings/$1 corpus=$build_dir/corpus/$1 folder how known
  local log=$findings/log
  mkdir -p "$findings" "$corpus"
  known=("$corpus")
  for folder in "fuzz/corpus/$target" "fuzz/crashes/$target"; do
    [ ! -d "$folder" ] || known+=("$folder")
  done
  if [ "$seconds" -eq 0 ]; then
    how=(-runs=0)
  else
    how=("-max_total_time=$seconds" -max_len=4096)
  fi
  if "$build_dir/fuzz/fuzz_$target" "${limits[@]}" "${how[@]}" -print_final_stats=1 -artifact_prefix="$findings/" \
    "${known[@]}" >"$log" 2>&1; then
    printf 'PASS fuzz %-20s %9s inputs, %6s per second\n' "$target" "$(statistic number_of_executed_units "$log")" \
      "$(statistic average_exec_per_sec "$log")"
  else
    printf 'FAIL fuzz %s, see %s\n' "$target" "$log"
    grep -m 8 -E 'ERROR|BROKEN PROMISE|runtime error|Test unit written' "$log" || tail -n 20 "$log"
    return 1
  fi
}

# As many at once as there are processors.
broken=0
running=0
for target in "${targets[@]}"; do
  if [ "$running" -eq "$(nproc)" ]; then
    wait -n || broken=$((broken + 1))
    running=$((running - 1))
  fi
  fuzz "$target" &
  running=$((running + 1))
done
while [ "$running" -gt 0 ]; do
  wait -n || broken=$((broken + 1))
  running=$((running - 1))
done
if [ "$broken" -ne 0 ]; then
  echo "Run again: $build_dir/fuzz/fuzz_NAME FILE. When it is mended, keep the file in fuzz/crashes/NAME/."
  exit 1
fi
