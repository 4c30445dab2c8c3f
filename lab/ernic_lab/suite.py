# SPDX-License-Identifier: MIT
"""Reads what rdma-core's test suite prints and tells what lab/rdma_core_expected.json does not explain."""
import json
import re

from . import paths

_NAME = re.compile(r"\((tests\.[\w.]+)\)")
_OUTCOME = re.compile(r"(?:^|\.\.\. )(ok|FAIL|ERROR|skipped ['\"](.*)['\"])$")


def expected():
    return json.loads((paths.LAB / "rdma_core_expected.json").read_text())


def outcomes(text):
    """Test name -> (ok | FAIL | ERROR | skipped, reason). A test prints its name first and its outcome last, sometimes
    with lines of its own in between."""
    found, current = {}, None
    for line in text.splitlines():
        if line.startswith("====="):
            break  # tracebacks follow
        name = _NAME.search(line)
        if name:
            current = name[1]
        outcome = _OUTCOME.search(line)
        if outcome and current:
            found[current] = (outcome[1].split()[0], outcome[2] or "")
            current = None
    return found


def failure_message(text, test):
    """The last line of a failed test's traceback."""
    part = re.search(rf"^(?:ERROR|FAIL): .*\({re.escape(test)}\).*?\n(.*?)(?=^=====|^-----+\nRan )", text, re.M | re.S)
    lines = [line for line in part[1].splitlines() if line.strip()] if part else []
    return lines[-1] if lines else ""


def unexplained_failures(results, text, wanted):
    bad = []
    for test, (outcome, _) in results.items():
        if outcome not in ("FAIL", "ERROR"):
            continue
        message = failure_message(text, test)
        if not any(e["test"] == test and e["message"] in message for e in wanted["exempted_failures"]):
            bad.append(f"{test}: {message}")
    return bad


def unexplained_skips(results, wanted):
    bad = []
    for test, (outcome, reason) in results.items():
        if outcome == "skipped" and not any(
                re.search(rule["pattern"], reason) and re.search(rule["tests"], test)
                for rule in wanted["allowed_skips"]):
            bad.append(f"{test}: {reason}")
    return bad
