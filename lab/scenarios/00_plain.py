# SPDX-License-Identifier: MIT
"""The lab itself: these hold without our card, so a failure here is not the card's."""
from ernic_lab import soft_roce
from ernic_lab.scenario import require, scenario


@scenario("lab-plain-boot", card=False)
def plain_boot(lab):
    """A guest without the card boots, runs commands and has the drivers."""
    guest = lab.guest
    kernel = guest.check("uname -r").strip()
    guest.check("modprobe ionic_rdma && lsmod | grep -q ^ionic_rdma && rmmod ionic_rdma")
    require(guest.run("exit 7").rc == 7, "exit codes do not arrive")
    return f"kernel {kernel}, boot {guest.boot_seconds:.1f} s, ionic_rdma loads"


@scenario("lab-soft-roce", card=False, tier="full")
def soft_roce_pingpong(lab):
    """Soft-RoCE, the measuring stick, does RDMA in the same guest."""
    rxe = soft_roce.add(lab.guest)
    out = soft_roce.pingpong(lab.guest, rxe)
    return out.splitlines()[-1]
