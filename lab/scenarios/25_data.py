# SPDX-License-Identifier: MIT
"""Every byte of every kind of transfer, checked by our own program (lab/guest/verbs_check)."""
from ernic_lab import soft_roce
from ernic_lab.scenario import require, scenario


def check_verbs(lab, device, options="", timeout=900):
    result = lab.guest.run(f"/lab/verbs_check --device {device.ib} --gid-index {device.gid} {options}", timeout)
    (lab.run_dir / "verbs_check.log").write_text(result.out)
    bad = [line for line in result.out.splitlines() if line.startswith("FAIL")]
    return result, bad


@scenario("data-soft-roce", card=False, tier="full")
def data_soft_roce(lab):
    """The checking program on soft-RoCE: a second opinion about its plain transfers."""
    result, bad = check_verbs(lab, soft_roce.add(lab.guest), "--only send --only write --only read")
    require(result.ok, f"{bad[:10]} {result.out[-500:]}")
    return result.out.splitlines()[-1]


@scenario("data-verified")
def data_verified(lab):
    """All operations, size edges, SGE splits and errors, byte for byte on both sides."""
    result, bad = check_verbs(lab, lab.card)
    require(result.ok, f"{len(bad)} failed: {bad[:10]} {result.out[-500:]}")
    return result.out.splitlines()[-1]


@scenario("data-planted-error")
def planted_error(lab):
    """Wrong bytes, planted on purpose, are caught."""
    result, _ = check_verbs(lab, lab.card, "--corrupt")
    require(result.rc == 3, f"exit code {result.rc}, wanted 3: {result.out[-1000:]}")
    return result.out.splitlines()[-1]


@scenario("data-stress", tier="full")
def data_stress(lab):
    """Random requests on many queue pairs for a while, then messages up to the 2 GiB limit."""
    lines = []
    for options in ("--stress 60 --pairs 16", "--large"):
        result, bad = check_verbs(lab, lab.card, options)
        require(result.ok, f"{options}: {bad[:10]} {result.out[-500:]}")
        lines.append(result.out.splitlines()[-1])
    return "; ".join(lines)
