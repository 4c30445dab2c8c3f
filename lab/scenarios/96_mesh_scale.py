# SPDX-License-Identifier: MIT
"""A mesh of many servers. Their guests are in miniature (tests/guest_sim), which is what one host can carry."""
import os
import subprocess

from ernic_lab import paths
from ernic_lab.scenario import require, scenario

PROGRAM = paths.REPO / "build/tests/guest_sim/mesh_tests"


def run_test(lab, name, timeout, **settings):
    """Runs one test of the program and returns what it says of itself."""
    require(os.access(PROGRAM, os.X_OK), f"{PROGRAM} is not there; run './dev build' first")
    env = {**os.environ, **{key: str(value) for key, value in settings.items()}}
    log = lab.run_dir / f"{name}.log"
    with open(log, "wb") as out:
        done = subprocess.run([PROGRAM, f"--gtest_filter=MeshScale.{name}"], env=env, stdout=out,
                              stderr=subprocess.STDOUT, timeout=timeout, check=False)
    text = log.read_text(errors="replace")
    require(done.returncode == 0, f"{log}: {text[-1500:]}")
    evidence = [line.split(": ", 1)[1] for line in text.splitlines() if line.startswith("evidence: ")]
    require(evidence, f"{log} has no evidence")
    return "; ".join(evidence)


@scenario("mesh-64-nodes", tier="full", boot="none")
def many_nodes(lab):
    """64 servers, joins and leaves, random pairs for 5 minutes: all data verified, memory and descriptors flat."""
    return run_test(lab, "RandomPairsExchangeDataWhileNodesComeAndGo", 1800, ERNIC_MESH_NODES=64,
                    ERNIC_MESH_SECONDS=300)


@scenario("mesh-256-nodes", tier="full", boot="none")
def many_joins(lab):
    """256 servers join, each is connected to each; most leave and their numbers are used again."""
    return run_test(lab, "ManyJoinAndTheirNumbersAreUsedAgain", 1800, ERNIC_MESH_JOIN_NODES=256)
