# SPDX-License-Identifier: MIT
"""The card's Ethernet beside QEMU's own network cards: same guest, same TAP, one boot each in turn."""
import json
import statistics
from dataclasses import dataclass

from ernic_lab.namespaces import TAP, Namespaces
from ernic_lab.scenario import require, scenario
from ernic_lab.traffic import IperfServer, bring_up, guest_net, megabits

CARDS = {"rocm-ernic": "ionic", "e1000e": "e1000e", "igb": "igb", "virtio-net-pci": "virtio_net"}
# What is measured: name, MTU, options of iperf3.
MEASUREMENTS = (("TCP out, MTU 1500", 1500, ""), ("TCP in, MTU 1500", 1500, "-R"),
                ("TCP out, MTU 9000", 9000, ""), ("TCP in, MTU 9000", 9000, "-R"),
                ("UDP of 64 B out", 1500, "-u -b 0 -l 64"))


@dataclass
class Goal:
    """At least `factor` times the best of `others`."""
    factor: float
    others: tuple


GOALS = {
    "TCP out, MTU 1500": Goal(1.0, ("e1000e", "igb")),
    "TCP in, MTU 1500": Goal(1.0, ("e1000e", "igb")),
    "TCP out, MTU 9000": Goal(1.0, ("virtio-net-pci",)),
    "TCP in, MTU 9000": Goal(0.7, ("virtio-net-pci",)),
    "UDP of 64 B out": Goal(1.0, ("virtio-net-pci",)),
}


def start(lab, wire, card):
    """A server where needed and a guest with that card on the TAP."""
    inside = wire.inside(wire.near)
    if card == "rocm-ernic":
        server = lab.start_server(prefix=inside, extra=("--tap", TAP))
        return lab.start_guest(server)
    # No vhost: the comparison is between devices in user space.
    return lab.start_guest(prefix=inside, qemu_args=(
        "-netdev", f"tap,id=net0,ifname={TAP},script=no,downscript=no,vhost=off",
        "-device", f"{card},netdev=net0,bus=rp0,mac=02:00:00:00:00:01"))


def value(end, options):
    """MB/s of TCP, thousands of datagrams received per second of UDP."""
    if "-u" not in options:
        return megabits(end) / 8
    received = end["sum"]["packets"] - end["sum"]["lost_packets"]
    return received / end["sum"]["seconds"] / 1000


@scenario("compare-ethernet", boot="none", tier="full", card=False)
def compare_ethernet(lab):
    """Bandwidth and datagram rate of four cards, alternating boots."""
    seen = {name: {card: [] for card in CARDS} for name, _, _ in MEASUREMENTS}
    for _ in range(lab.rounds(1, 3)):
        for card, driver in CARDS.items():
            with Namespaces(mtu=1500) as wire:
                guest = start(lab, wire, card)
                net = guest_net(guest, driver)
                with IperfServer(wire) as server:
                    for name, mtu, options in MEASUREMENTS:
                        wire.set_mtu(mtu)
                        bring_up(guest, net, mtu)
                        server.measure(guest, options, 1)
                        seen[name][card].append(value(server.measure(guest, options, 4), options))
                guest.shutdown()
                lab.close()
    table = {name: {card: statistics.median(values) for card, values in by_card.items()}
             for name, by_card in seen.items()}
    (lab.run_dir / "compare-ethernet.json").write_text(json.dumps(seen, indent=2) + "\n")
    return judge(table, lab.run_dir / "compare-ethernet.json")


def judge(table, path):
    lines, missed = [f"     {'':<20}" + "".join(f"{card:>16}" for card in CARDS)], []
    for name, by_card in table.items():
        goal = GOALS[name]
        best = max(by_card[card] for card in goal.others)
        factor = by_card["rocm-ernic"] / best
        lines.append(f"     {name:<20}" + "".join(f"{by_card[card]:>16.1f}" for card in CARDS)
                     + f"   x{factor:.2f} of {'/'.join(goal.others)}, goal {goal.factor}")
        if factor < goal.factor:
            missed.append(f"{name}: {factor:.2f} times the best of {goal.others}, wanted {goal.factor}")
    text = "\n".join(lines)
    require(not missed, "; ".join(missed) + f" ({path})\n{text}")
    return f"MB/s and 1000 datagrams/s ({path})\n{text}"
