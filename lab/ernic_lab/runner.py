# SPDX-License-Identifier: MIT
"""Runs scenarios, one line of result each, and writes summary.json beside the logs."""
import importlib.util
import json
import time
import traceback
from dataclasses import asdict, dataclass, field

from . import image, paths
from .lab import Lab
from .scenario import registered


@dataclass
class Outcome:
    name: str
    passed: bool
    seconds: float
    evidence: str
    logs: list = field(default_factory=list)


def load():
    """Imports every scenario file, in the order of the file names."""
    for path in sorted((paths.LAB / "scenarios").glob("*.py")):
        spec = importlib.util.spec_from_file_location(f"scenarios.{path.stem}", path)
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    return registered()


class Runner:
    def __init__(self, full=False, backend="loopback"):
        self.image = image.ensure()
        self.full, self.backend = full, backend
        self.run_dir = paths.new_run_dir("scenarios")
        self.outcomes = []
        self.shared = {}  # with card / without -> Lab

    def run(self, scenarios):
        begin = time.monotonic()
        # Scenarios that share a boot come first, so that one boot serves them all.
        order = sorted(scenarios, key=lambda s: (s.boot != "shared", not s.card))
        try:
            for scenario in order:
                self._run_one(scenario)
        finally:
            for with_card in list(self.shared):
                for problem in self._close_shared(with_card):
                    self._report(Outcome("server-shutdown", False, 0.0, problem, [str(self.run_dir)]))
            self._write_summary(time.monotonic() - begin)
        return self.outcomes

    def _run_one(self, scenario):
        begin = time.monotonic()
        lab = None
        try:
            lab = self._lab_for(scenario)
            for guest in lab.guests():
                guest.console.mark()
            evidence = scenario.run(lab) or ""
            self._look_for_faults(scenario, lab)
            if scenario.boot != "shared":
                problems = lab.close()
                if problems:
                    raise RuntimeError("; ".join(problems))
            outcome = Outcome(scenario.name, True, time.monotonic() - begin, evidence)
        except Exception as error:  # pylint: disable=broad-except  # any error is this scenario's failure
            outcome = Outcome(scenario.name, False, time.monotonic() - begin,
                              self._explain(error, lab), [str(self.run_dir)])
            # What it left behind cannot be trusted by the next one.
            if lab and scenario.boot == "shared":
                self._close_shared(scenario.card)
        finally:
            if lab and scenario.boot != "shared":
                lab.close()
        self._report(outcome)

    def _lab_for(self, scenario):
        if scenario.boot != "shared":
            lab = Lab(self.image, self._folder(scenario.name), self.full, self.backend)
            try:
                if scenario.boot == "own":
                    lab.open(scenario.card)
            except BaseException:
                lab.close()
                raise
            return lab
        lab = self.shared.get(scenario.card)
        healthy = lab and lab.guest.alive and (lab.server is None or lab.server.alive)
        if not healthy:
            self._close_shared(scenario.card)
            kind = "card" if scenario.card else "plain"
            lab = self.shared[scenario.card] = Lab(self.image, self._folder(f"shared-{kind}"), self.full, self.backend)
            try:
                lab.open(scenario.card)
            except BaseException:
                self._close_shared(scenario.card)
                raise
            print(f"     guest is up after {lab.guest.boot_seconds:.1f} s ({kind})", flush=True)
        return lab

    def _close_shared(self, with_card):
        lab = self.shared.pop(with_card, None)
        return lab.close() if lab else []

    def _folder(self, name):
        folder = self.run_dir / f"{len(list(self.run_dir.iterdir())):02d}-{name}"
        folder.mkdir()
        return folder

    @staticmethod
    def _look_for_faults(scenario, lab):
        for guest in lab.guests():
            faults = guest.console.faults()
            if not scenario.complaints:
                faults += guest.console.complaints()
            if faults:
                raise RuntimeError(f"kernel log of {guest.name}: " + " | ".join(faults[:5]))
        if lab.server and not lab.server.alive and not lab.server.expected_end:
            raise RuntimeError(f"the server ended by itself with code {lab.server.process.returncode}")

    @staticmethod
    def _explain(error, lab):
        text = f"{type(error).__name__}: {error}"
        if not str(error) or isinstance(error, (TypeError, KeyError, AttributeError, IndexError)):
            text += "\n" + traceback.format_exc()
        if lab:
            for guest in lab.guests():
                state = "alive" if guest.alive else "ended"
                text += f"\n  {guest.name} ({state}), end of {guest.console.path}:\n    " + \
                    guest.console.tail(12).replace("\n", "\n    ")
            if lab.server:
                state = "alive" if lab.server.alive else f"ended with {lab.server.process.returncode}"
                text += f"\n  server ({state}), end of {lab.server.log}:\n    " + \
                    lab.server.log_tail(12).replace("\n", "\n    ")
        return text

    def _report(self, outcome):
        self.outcomes.append(outcome)
        word = "PASS" if outcome.passed else "FAIL"
        print(f"{word} {outcome.name} ({outcome.seconds:.1f} s) {outcome.evidence}", flush=True)
        if outcome.logs:
            print(f"     logs: {' '.join(outcome.logs)}", flush=True)

    def _write_summary(self, seconds):
        passed = sum(o.passed for o in self.outcomes)
        summary = {"passed": passed, "failed": len(self.outcomes) - passed, "seconds": round(seconds, 1),
                   "scenarios": [asdict(o) for o in self.outcomes]}
        (self.run_dir / "summary.json").write_text(json.dumps(summary, indent=2) + "\n")
