#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds an optimised server and the benchmarks beside the ordinary build, runs them, prints the table.
# Arguments go to bench/report.py (--repetitions, --filter, --json).
set -euo pipefail
cd "$(dirname "$0")/.."

build=build/release
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DERNIC_BENCH=ON >/dev/null
cmake --build "$build" --target ernic_bench
exec python3 bench/report.py --build "$build" --json build/bench.json "$@"
