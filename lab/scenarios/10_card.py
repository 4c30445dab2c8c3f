# SPDX-License-Identifier: MIT
"""What the guest's own tools say about the card."""
import json

from ernic_lab import golden
from ernic_lab.scenario import require, scenario


@scenario("card-lspci")
def lspci(lab):
    """lspci -vv shows the function as kept in lab/golden."""
    out = lab.guest.check(f"lspci -vv -s {lab.card.pci}")
    golden.compare("lspci", golden.hide_addresses(out))
    require("Kernel driver in use: ionic" in out, f"ionic is not bound:\n{out}")
    return lab.guest.check(f"lspci -nn -s {lab.card.pci}").strip()


@scenario("card-interface")
def interface(lab):
    """The stock ionic driver shows an interface with carrier; statistics can be read."""
    net = lab.card.net
    driver = lab.guest.check(f"ethtool -i {net}")
    require("driver: ionic" in driver, driver)
    speed = lab.guest.check(f"ethtool {net}")
    require("Speed: 100000Mb/s" in speed and "Link detected: yes" in speed, speed)
    require(len(lab.guest.check(f"ethtool -S {net}").splitlines()) > 20, "ethtool -S shows next to nothing")
    lab.guest.check(f"ethtool -m {net} && ip -s link show {net}")
    return " ".join(lab.guest.check(f"ip -br link show {net}").split())


@scenario("card-mtu")
def mtu(lab):
    """The interface takes every MTU up to 9194 and refuses a larger one."""
    net = lab.card.net
    for size in (68, 1500, 4200, 9000, 9194):
        lab.guest.check(f"ip link set {net} mtu {size}")
    refused = not lab.guest.run(f"ip link set {net} mtu 9195").ok
    lab.guest.check(f"ip link set {net} mtu 1500")
    lab.forget_card()
    require(refused, "an MTU of 9195 was accepted")
    return "68 to 9194 accepted, 9195 refused"


@scenario("verbs-information")
def information(lab):
    """ibv_devinfo -v, rdma link, rdma statistic and ibstat are as kept in lab/golden."""
    ib = lab.card.ib
    statistic = json.loads(lab.guest.check(f"rdma -j statistic show link {ib}/1"))
    outputs = {
        "ibv_devinfo": lab.guest.check(f"ibv_devinfo -v -d {ib}"),
        "rdma-link": lab.guest.check(f"rdma link show {ib}/1"),
        # Values move; the names of the counters are what users rely on.
        "rdma-statistic": "".join(f"{key}\n" for key in sorted(statistic[0])),
        "ibstat": lab.guest.check(f"ibstat {ib}"),
    }
    require("PORT_ACTIVE" in outputs["ibv_devinfo"], outputs["ibv_devinfo"])
    for name, text in outputs.items():
        golden.compare(name, golden.hide_addresses(text))
    return f"{ib}: PORT_ACTIVE, {len(outputs)} golden files agree"
