# SPDX-License-Identifier: MIT
"""Runs perftest between two processes of one guest and reads its tables."""
import re
from dataclasses import dataclass

from . import pairs
from .scenario import Failure

PORT = 18515


@dataclass
class Row:
    size: int
    iterations: int
    values: list  # bandwidth: peak, average MB/s, Mpps; latency: min, max, typical, average, stdev, 99%, 99.9% us

    @property
    def average_mbs(self):
        return self.values[1]

    @property
    def typical_us(self):
        return self.values[2]


def parse(text):
    rows = []
    for line in text.splitlines():
        if re.fullmatch(r"\s*\d+\s+\d+(\s+\d+\.\d+)+\s*", line):
            size, iterations, *values = line.split()
            rows.append(Row(int(size), int(iterations), [float(v) for v in values]))
    return rows


def run(guest, tool, ib, gid, options="", timeout=300):
    """One perftest run; returns (rows, client output)."""
    command = f"{tool} -d {ib} -x {gid} -F {options}"
    _, out = pairs.run(guest, command, f"{command} localhost", pairs.TCP_LISTENER.format(port=PORT), timeout)
    rows = parse(out)
    if not rows:
        raise Failure(f"no table in the output of: {command}\n{out[-1500:]}")
    return rows, out
