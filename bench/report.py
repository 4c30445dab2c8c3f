#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the benchmarks and prints one table: what was measured, its floor in the same run, their ratio, the target.

Every number is the median of several repetitions. A missed target is shown, not an error: timings depend on the
machine. The exit code is non-zero only when the benchmarks could not be run.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


@dataclasses.dataclass
class Row:
    """One line of the table: which counter of which benchmark, and what it should be."""

    title: str
    benchmark: str
    counter: str
    unit: str
    floor: str = ""
    target: float | None = None
    at_most: bool = False

    def met(self, value: float) -> bool:
        return value <= self.target if self.at_most else value >= self.target


def bandwidth_rows(operation: str, name: str, targets: dict[int, float]) -> list[Row]:
    sizes = {4096: "4 KiB", 65536: "64 KiB", 1 << 20: "1 MiB", 8 << 20: "8 MiB"}
    return [
        Row(f"RC {operation} {text}", f"bandwidth/{name}/{size}", "ratio", "GB/s", "memcpy", targets.get(size))
        for size, text in sizes.items()
    ]


def rate_row(title: str, queue_pairs: int, regions: int, target: float | None = None) -> Row:
    return Row(title, f"rate/qps:{queue_pairs}/mrs:{regions}", "million_per_second", "M/s", target=target)


WRITE_TARGETS = {4096: 0.50, 65536: 0.85, 1 << 20: 0.90, 8 << 20: 0.90}
BANDWIDTH = (
    bandwidth_rows("WRITE", "write", WRITE_TARGETS)
    + bandwidth_rows("SEND", "send", {})
    + bandwidth_rows("READ", "read", {})
    + bandwidth_rows("WRITE, data in cache,", "write_cached", {})
)
RATES = [
    rate_row("64 B WRITE, 32 per doorbell, 1 QP, 10 MRs", 1, 10, 2.0),
    rate_row("the same, 10 QPs", 10, 10),
    rate_row("the same, 100 QPs", 100, 10),
    rate_row("the same, 1000 QPs", 1000, 10),
    rate_row("the same, 1 QP, 1000 MRs", 1, 1000),
    rate_row("the same, 1 QP, 50000 MRs", 1, 50000),
]
ETHERNET = [
    Row("TSO packets of 64 KiB to a null port", "super_frames", "ratio", "GB/s", "memcpy", 0.8),
    Row("64 B frames out, 64 per doorbell", "small_frames/out", "million_per_second", "M/s", target=1.5),
    Row("64 B frames out and in again", "small_frames/out_and_in", "million_per_second", "M/s", target=1.5),
]


def nvmeof_row(title: str, settings: tuple[int, int, int, int, int], target: float | None = None) -> Row:
    """`settings`: write, size, queues, memory regions, depth."""
    names = zip(("write", "size", "queues", "mrs", "depth"), settings)
    name = "nvmeof/" + "/".join(f"{key}:{value}" for key, value in names)
    if settings[1] < 1 << 20:
        return Row(title, name, "thousand_per_second", "k/s", target=target)
    return Row(title, name, "ratio", "GB/s", "memcpy", target)


NVMEOF = [
    nvmeof_row("NVMe-oF 4 KiB reads, 1 queue, depth 1", (0, 4096, 1, 1, 1)),
    nvmeof_row("the same, depth 32", (0, 4096, 1, 1, 32), 400),
    nvmeof_row("the same, writes", (1, 4096, 1, 1, 32)),
    nvmeof_row("the same, reads, 8 queues", (0, 4096, 8, 1, 32)),
    nvmeof_row("the same, 64 queues", (0, 4096, 64, 1, 32)),
    nvmeof_row("the same, 1 queue, 10000 MRs", (0, 4096, 1, 10000, 32)),
    nvmeof_row("NVMe-oF 1 MiB reads, depth 8", (0, 1 << 20, 1, 1, 8), 0.8),
    nvmeof_row("the same, writes", (1, 1 << 20, 1, 1, 8)),
]
LATENCY = [
    Row("64 B WRITE, server asleep", "latency/sleeping", "ratio", "us", "wake-up", 1.5, at_most=True),
    Row("64 B WRITE, busy-poll window open", "latency/busy_poll", "ratio", "us", "the same by hand", 1.2, at_most=True),
]
MESH = [
    Row("RC WRITE over the mesh, 64 KiB", "mesh/write/65536", "ratio", "GB/s", "TCP stream", 0.7),
    Row("RC WRITE over the mesh, 1 MiB", "mesh/write/1048576", "ratio", "GB/s", "TCP stream", 0.85),
    Row("RC WRITE over the mesh, 8 MiB", "mesh/write/8388608", "ratio", "GB/s", "TCP stream", 0.85),
    Row("the stream's CPU time to the mesh's, 64 KiB", "mesh/write/65536", "cpu_ratio", "times"),
    Row("the stream's CPU time to the mesh's, 1 MiB", "mesh/write/1048576", "cpu_ratio", "times"),
    Row("the stream's CPU time to the mesh's, 8 MiB", "mesh/write/8388608", "cpu_ratio", "times"),
    Row("64 KiB over 1,000 queue pairs of one peer", "mesh/queue_pairs/1000", "ratio", "GB/s", "1 queue pair", 0.9),
    Row("64 B WRITE over the mesh, all asleep", "mesh/latency", "ratio", "us", "TCP ping-pong", 1.5, at_most=True),
    Row("64 B WRITE beside one of 1 GiB, median", "mesh/delay", "median_ms", "ms", target=5.0, at_most=True),
    Row("the same, the slowest of 100", "mesh/delay", "p99_ms", "ms"),
    Row("MSG_ZEROCOPY, 256 KiB, loopback", "zerocopy_loopback/262144", "ratio", "GB/s", "send"),
    Row("MSG_ZEROCOPY, 1 MiB, loopback", "zerocopy_loopback/1048576", "ratio", "GB/s", "send"),
    Row("MSG_ZEROCOPY, 256 KiB, veth", "zerocopy_veth/262144", "ratio", "GB/s", "send"),
    Row("MSG_ZEROCOPY, 1 MiB, veth", "zerocopy_veth/1048576", "ratio", "GB/s", "send"),
]
FOOTPRINT = [
    Row("wake-ups while idle", "idle", "wake_ups_per_second", "1/s", target=0.0, at_most=True),
    Row("resident memory beyond guest RAM", "idle", "resident_mib", "MiB", target=24.0, at_most=True),
    Row("start to listening", "start", "milliseconds", "ms", target=50.0, at_most=True),
    Row("system calls per doorbell of 32, asleep", "system_calls", "all", "calls"),
]


def run(binary: pathlib.Path, repetitions: int, only: str) -> dict:
    """Runs the benchmark binary and returns its JSON."""
    with tempfile.TemporaryDirectory() as directory:
        out = pathlib.Path(directory) / "out.json"
        command = [
            str(binary),
            f"--benchmark_repetitions={repetitions}",
            f"--benchmark_out={out}",
            "--benchmark_out_format=json",
            "--benchmark_display_aggregates_only=true",
        ]
        if only:
            command.append(f"--benchmark_filter={only}")
        subprocess.run(command, check=True, stdout=sys.stderr)
        return json.loads(out.read_text())


def medians(raw: dict) -> dict[str, dict[str, float]]:
    """Median of every counter of every benchmark over its repetitions."""
    runs: dict[str, dict[str, list[float]]] = {}
    internal = {"iterations", "real_time", "cpu_time", "repetitions", "repetition_index", "threads"}
    for entry in raw["benchmarks"]:
        if entry.get("run_type") != "iteration":
            continue
        if entry.get("error_occurred"):
            print(f"{entry['name']}: {entry.get('error_message')}", file=sys.stderr)
            continue
        name = entry["run_name"].split("/iterations:")[0]
        for counter, value in entry.items():
            if isinstance(value, (int, float)) and counter not in internal and not counter.endswith("_index"):
                runs.setdefault(name, {}).setdefault(counter, []).append(value)
    return {name: {c: statistics.median(v) for c, v in counters.items()} for name, counters in runs.items()}


def verdict(row: Row, value: float) -> tuple[str, str]:
    if row.target is None:
        return "", ""
    sign = "<=" if row.at_most else ">="
    return f"{sign} {row.target:g}", "pass" if row.met(value) else "MISS"


def line_of(row: Row, numbers: dict[str, float]) -> list[str]:
    value = numbers[row.counter]
    target, result = verdict(row, value)
    if row.floor:
        measured = f"{numbers['measured']:.2f} {row.unit}"
        floor = f"{numbers['floor']:.2f} {row.unit} ({row.floor})"
        ratio = f"{value:.2f}"
    else:
        measured, floor, ratio = f"{value:.2f} {row.unit}", "", ""
    cpu = f"{numbers['server_cpu_ns']:.0f}" if "server_cpu_ns" in numbers else ""
    return [row.title, measured, floor, ratio, cpu, target, result]


def table(lines: list[list[str]]) -> str:
    head = ["what", "measured", "floor", "ratio", "server CPU ns", "target", ""]
    widths = [max(len(line[i]) for line in [head, *lines]) for i in range(len(head))]

    def form(line: list[str]) -> str:
        return "| " + " | ".join(text.ljust(width) for text, width in zip(line, widths)) + " |"

    return "\n".join([form(head), "|" + "|".join("-" * (w + 2) for w in widths) + "|", *map(form, lines)])


def machine() -> dict[str, str]:
    model = "unknown"
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    return {"cpu": model, "cpus": str(os.cpu_count()), "kernel": platform.release(), "load": load}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="build folder (default: build)")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--filter", default="", help="regular expression of benchmarks to run")
    parser.add_argument("--json", type=pathlib.Path, help="write the medians here (default: BUILD/bench/report.json)")
    arguments = parser.parse_args()
    binary = arguments.build / "bench" / "ernic_bench"
    if not binary.exists():
        print(f"{binary} is missing: build with Google Benchmark installed", file=sys.stderr)
        return 1
    before = machine()
    try:
        raw = run(binary, arguments.repetitions, arguments.filter)
    except (subprocess.CalledProcessError, OSError, json.JSONDecodeError) as problem:
        print(f"the benchmarks failed: {problem}", file=sys.stderr)
        return 1
    numbers = medians(raw)
    rows = [row for row in BANDWIDTH + RATES + ETHERNET + NVMEOF + LATENCY + MESH + FOOTPRINT if row.benchmark in numbers]
    print(f"{before['cpu']}, {before['cpus']} CPUs, Linux {before['kernel']}, load before {before['load']}\n")
    print(table([line_of(row, numbers[row.benchmark]) for row in rows]))
    targets = [(row, row.met(numbers[row.benchmark][row.counter])) for row in rows if row.target is not None]
    print(f"\n{sum(met for _, met in targets)} of {len(targets)} targets met")
    out = arguments.json or arguments.build / "bench" / "report.json"
    report = {
        "machine": before,
        "benchmarks": numbers,
        "targets": {row.title: {"target": row.target, "met": met} for row, met in targets},
    }
    out.write_text(json.dumps(report, indent=2, sort_keys=True) + "\n")
    print(f"all numbers: {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
