# SPDX-License-Identifier: MIT
"""rdma-core's own test suite, as Debian ships it."""
import collections
import re

from ernic_lab.scenario import require, scenario

# Tests for other vendors' providers; they skip by themselves, but importing them takes minutes here.
OTHER_VENDORS = "tests/test_mlx5* tests/test_efa* tests/test_irdma* tests/test_cuda* tests/test_hns*"


@scenario("rdma-core-tests")
def rdma_core_tests(lab):
    """run_tests.py has no failure; the skips and their reasons are kept beside the logs."""
    command = (f"rm -rf /tmp/suite && cp -r /opt/rdma-core /tmp/suite && cd /tmp/suite && rm -f {OTHER_VENDORS} && "
               f"python3 -W ignore tests/run_tests.py --dev {lab.card.ib} --gid {lab.card.gid} -v 2>&1")
    result = lab.guest.run(command, 1500)
    (lab.run_dir / "rdma-core-tests.log").write_text(result.out)
    skips = collections.Counter(re.findall(r"skipped ['\"](.*)['\"]$", result.out, re.M))
    (lab.run_dir / "rdma-core-skips.txt").write_text("".join(f"{n:4d}  {why}\n" for why, n in skips.most_common()))
    bad = re.findall(r"^(\S+ \(\S+\)).*\.\.\. (FAIL|ERROR)$", result.out, re.M)
    bad += re.findall(r"^((?:FAIL|ERROR): .*)$", result.out, re.M)
    ran = re.search(r"^Ran (\d+) tests", result.out, re.M)
    require(ran, f"the suite did not finish: {result.out[-1500:]}")
    require(result.ok and not bad, f"{len(bad)} bad: {bad[:20]} (log in {lab.run_dir})")
    skipped = sum(skips.values())
    return f"{ran[1]} ran: {int(ran[1]) - skipped} passed, {skipped} skipped ({len(skips)} reasons), 0 failed"
