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


def miscounted(text, results):
    """What the suite's own totals say against `results`; empty when they agree."""
    ran = re.search(r"^Ran (\d+) tests?", text, re.M)
    said = re.search(r"^(?:OK|FAILED)(?: \((.*)\))?$", text, re.M)
    if not ran or not said:
        return ["the totals are missing"]
    totals = {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", said[1] or "")}
    wanted = {"tests": int(ran[1]), "FAIL": totals.get("failures", 0), "ERROR": totals.get("errors", 0),
              "skipped": totals.get("skipped", 0)}
    found = {kind: sum(outcome == kind for outcome, _ in results.values()) for kind in ("FAIL", "ERROR", "skipped")}
    found["tests"] = len(results)
    return [f"{kind}: the suite says {wanted[kind]}, its lines {found[kind]}" for kind in wanted
            if wanted[kind] != found[kind]]


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
