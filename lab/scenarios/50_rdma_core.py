# SPDX-License-Identifier: MIT
"""rdma-core's own test suite, as Debian ships it."""
from ernic_lab import suite
from ernic_lab.scenario import require, scenario

# Tests for other vendors' providers; they skip by themselves, but importing them takes minutes here.
OTHER_VENDORS = "tests/test_mlx5* tests/test_efa* tests/test_irdma* tests/test_cuda* tests/test_hns*"


def run(lab, only=None, timeout=1500):
    names = f" -k {only.rsplit('.', 1)[1]}" if only else ""
    return lab.guest.run(f"cd /tmp/suite && python3 -W ignore tests/run_tests.py --dev {lab.card.ib} "
                         f"--gid {lab.card.gid} -v{names} 2>&1", timeout)


@scenario("rdma-core-tests")
def rdma_core_tests(lab):
    """run_tests.py: every failure and skip is one that lab/rdma_core_expected.json explains."""
    wanted = suite.expected()
    for step in wanted["guest_setup"]:
        lab.guest.check(step["command"])
    lab.guest.check(f"rm -rf /tmp/suite && cp -r /opt/rdma-core /tmp/suite && cd /tmp/suite && rm -f {OTHER_VENDORS}")
    result = run(lab)
    (lab.run_dir / "rdma-core-tests.log").write_text(result.out)
    require("\nRan " in result.out, f"the suite did not finish: {result.out[-1500:]}")
    results = suite.outcomes(result.out)
    wrong = suite.miscounted(result.out, results)
    require(not wrong, f"tests were overlooked: {wrong}")
    # These choose at random whether they ask for something the provider lacks.
    for rule in wanted["repeat_until_run"]:
        for test in rule["tests"]:
            for _ in range(rule["attempts"]):
                if results.get(test, ("skipped", ""))[0] != "skipped":
                    break
                again = suite.outcomes(run(lab, test, 120).out)
                results.update({name: outcome for name, outcome in again.items() if name == test})
    failures = suite.unexplained_failures(results, result.out, wanted)
    skips = suite.unexplained_skips(results, wanted)
    require(len(results) > 200, f"only {len(results)} tests were seen")
    require(not failures and not skips,
            f"{len(failures)} failures and {len(skips)} skips unexplained: {failures[:8]} {skips[:8]}")
    count = {kind: sum(outcome == kind for outcome, _ in results.values()) for kind in ("ok", "FAIL", "ERROR", "skipped")}
    return (f"{len(results)} tests: {count['ok']} passed, {count['FAIL'] + count['ERROR']} failed as the driver or "
            f"provider must, {count['skipped']} skipped for stated reasons; 0 unexplained")
