# SPDX-License-Identifier: MIT
"""RDMA over jumbo frames: the path MTU grows with the interface's."""
from ernic_lab.scenario import registered, require, scenario

QUICK = ("data-verified", "cm-rping")
FULL = ("verbs-rc-pingpong", "verbs-ud-pingpong", "data-verified", "cm-rping", "cm-ucmatose", "cm-udaddy",
        "cm-rdma-server", "perftest-bandwidth", "perftest-latency", "perftest-shapes", "rdma-core-tests")


@scenario("rdma-mtu-9000")
def mtu_9000(lab):
    """An MTU of 9000 makes active_mtu 4096, and the RDMA scenarios pass at it."""
    card = lab.card
    before = lab.guest.check(f"ibv_devinfo -d {card.ib}")
    require("active_mtu:\t\t1024" in before, f"at MTU 1500: {before}")
    lab.guest.check(f"ip link set {card.net} mtu 9000")
    after = lab.guest.check(f"ibv_devinfo -d {card.ib}")
    require("active_mtu:\t\t4096" in after, f"at MTU 9000: {after}")
    others = {other.name: other for other in registered()}
    names = lab.rounds(QUICK, FULL)
    evidence = [f"{name}: {others[name].run(lab)}" for name in names]
    lab.guest.check(f"ip link set {card.net} mtu 1500")
    return "active_mtu 1024 -> 4096; " + "; ".join(evidence)
