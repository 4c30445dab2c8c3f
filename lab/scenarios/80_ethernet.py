# SPDX-License-Identifier: MIT
"""The guest's interface as a NIC: through a TAP to network namespaces of the host."""
import json
import subprocess
import sys
import time
from pathlib import Path

from ernic_lab import namespaces
from ernic_lab.namespaces import FAR, FAR6, GUEST, GUEST6, NEAR, NEAR6, TAP, Namespaces
from ernic_lab.scenario import require, scenario
from ernic_lab.traffic import (bring_up, carrier, guest_net, iperf, on_tap, ping, put_programs, transfer_from_guest,
                               transfer_to_guest, wait_line)

WIRE_CHECK = Path(namespaces.__file__).parent / "wire_check.py"
VLAN_PEER = Path(namespaces.__file__).parent / "vlan_peer.py"
VLAN_MAC = "02:00:00:00:00:99"


class WireCheck:
    """Checksums of the guest's packets as they arrive in the far namespace."""

    def __init__(self, wire):
        self.process = subprocess.Popen(
            [*wire.inside(wire.far), sys.executable, str(WIRE_CHECK), "wire1", GUEST, GUEST6],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        wait_line(self.process, "ready")

    def result(self):
        out, _ = self.process.communicate(timeout=30)
        require(self.process.returncode == 0, out)
        return json.loads(out)


def ports(server):
    """The statistics file, once what was sent before is in it."""
    time.sleep(0.5)
    return server.stats()["segment"]["ports"]


@scenario("ethernet-tap", boot="none")
def ethernet_tap(lab):
    """ping, TCP both ways, large packets and right checksums between guest and a TAP."""
    with Namespaces(mtu=9000) as wire:
        lab.server = server = lab.start_server(prefix=wire.inside(wire.near),
                                               extra=("--tap", TAP, "--stats-interval", "0.1"))
        lab.guest = guest = lab.start_guest(server)
        net = guest_net(guest)
        bring_up(guest, net, 9000)
        put_programs(guest)
        evidence = [f"ping {ping(guest, NEAR)}", f"ping6 {ping(guest, NEAR6)}"]
        ping(guest, NEAR, "-M do -s 8972")
        ping(guest, NEAR6, "-M do -s 8952")
        require(not guest.run(f"ping -c 1 -W 2 -M do -s 8973 {NEAR}").ok, "a packet larger than the MTU got through")

        # Correct sums on the far side, where the host has completed them from what the card told.
        for address in (FAR, FAR6):  # finds the neighbours, so that no datagram waits for them and is lost
            ping(guest, address)
        check = WireCheck(wire)
        for address in (FAR, FAR6):
            guest.check(f"python3 /tmp/datagrams.py {address}")
            transfer_from_guest(guest, wire, wire.far, address, 4)
        seen = check.result()
        require(seen["faulty"] == 0 and seen["missed"] == 0, f"wrong checksums on the wire: {seen}")
        require(seen["seen"].get("udp4", 0) >= 305 and seen["seen"].get("udp6", 0) >= 305, f"datagrams missing: {seen}")
        require(seen["seen"].get("tcp4", 0) > 100 and seen["seen"].get("tcp6", 0) > 100, f"TCP missing: {seen}")
        require(seen["largest"] <= 9000, f"a segment was not cut: {seen}")
        evidence.append(f"sums right: {seen['seen']}")

        # Digests, at the usual MTU, where most packets are segments of larger ones.
        bring_up(guest, net, 1500)
        wire.set_mtu(1500)
        before = ports(server)
        moved = transfer_from_guest(guest, wire, wire.near, NEAR, 48)
        after = ports(server)
        frames = after["guest"]["frames_in"] - before["guest"]["frames_in"]
        size = (after["guest"]["bytes_in"] - before["guest"]["bytes_in"]) / max(frames, 1)
        require(size > 3000, f"TCP from the guest was cut before the TAP: {size:.0f} bytes per frame")
        evidence.append(f"{moved >> 20} MiB out in frames of {size:.0f} bytes")
        for address, where in ((NEAR6, wire.near), (FAR, wire.far)):
            transfer_from_guest(guest, wire, where, address, 8)
        for address, where in ((GUEST, wire.near), (GUEST6, wire.near), (GUEST, wire.far)):
            transfer_to_guest(guest, wire, where, address, 16)
        evidence.append(f"iperf3 out {iperf(guest, wire):.0f}, in {iperf(guest, wire, '-R'):.0f} Mb/s")
        errors = guest.check("nstat -asz TcpInCsumErrors UdpInCsumErrors Udp6InCsumErrors IpInHdrErrors "
                             "| awk 'NR > 1 && $2 != 0'")
        require(not errors.strip(), f"the guest found wrong checksums: {errors}")

        evidence.append(follow_link(guest, wire, server, net))
        return "; ".join(evidence)


def follow_link(guest, wire, server, net):
    """The TAP goes down and comes back, then is deleted and made anew."""
    wire.ip(wire.near, f"link set {TAP} down")
    require(carrier(guest, net, 0), "the TAP is down and the guest does not see it")
    wire.ip(wire.near, f"link set {TAP} up")
    require(carrier(guest, net, 1), "the TAP is up again and the guest does not see it")
    ping(guest, NEAR)
    wire.ip(wire.near, f"link delete {TAP}")
    require(carrier(guest, net, 0), "the TAP is gone and the guest does not see it")
    wire.make_tap()
    require(carrier(guest, net, 1), "the TAP is there again and the guest does not see it")
    ping(guest, NEAR)
    require(server.alive, "the server ended")
    return "link followed TAP down/up and deleted/remade"


@scenario("ethernet-offloads", boot="none", tier="full")
def offloads(lab):
    """Each offload switched off, a VLAN, and fewer queues: every byte still arrives both ways."""
    with on_tap(lab) as (wire, guest, net):
        put_programs(guest)

        def both_ways(near, guest_address):
            transfer_from_guest(guest, wire, wire.near, near, 4)
            transfer_to_guest(guest, wire, wire.near, guest_address, 4)

        words = ("tso", "tx", "rx", "sg", "rxvlan", "txvlan", "rxhash")
        for word in words:
            guest.check(f"ethtool -K {net} {word} off")
            both_ways(NEAR, GUEST)
        for word in reversed(words):
            guest.check(f"ethtool -K {net} {word} on")
        for word in ("on", "off"):
            guest.check(f"ethtool -K {net} txvlan {word} rxvlan {word}")
            vlan(guest, wire, net)
        guest.check(f"ethtool -L {net} combined 1 && ethtool -G {net} rx 64 tx 64")
        require(carrier(guest, net, 1), "no carrier with one queue")
        both_ways(NEAR, GUEST)
        counters = lab.server.stats()["tap"]
        require(counters["malformed"] == 0 and counters["write_errors"] == 0, f"{counters}")
        return f"{', '.join(words)} off; VLAN in hardware and software; one queue of 64"


def vlan(guest, wire, net):
    """Pings a tagged peer, whose frames come back only with the right tag both ways."""
    peer = wire.spawn(wire.near, sys.executable, VLAN_PEER, TAP, 5, VLAN_MAC)
    try:
        wait_line(peer, "ready")
        guest.check(f"ip link add link {net} name vlan5 type vlan id 5; ip link set vlan5 up; "
                    "ip addr add 10.80.0.2/24 dev vlan5; "
                    f"ip neigh replace 10.80.0.1 lladdr {VLAN_MAC} dev vlan5")
        ping(guest, "10.80.0.1", "-s 1400")
        require(not guest.run(f"ip link set vlan5 down; ip link delete vlan5; "
                              f"ip link add link {net} name vlan6 type vlan id 6; ip link set vlan6 up; "
                              "ip addr add 10.80.0.2/24 dev vlan6; "
                              f"ip neigh replace 10.80.0.1 lladdr {VLAN_MAC} dev vlan6; "
                              "ping -c 1 -W 1 10.80.0.1").ok, "another tag was answered too")
        guest.check("ip link delete vlan6")
    finally:
        peer.kill()
        peer.wait()


@scenario("ethernet-tap-refused", boot="none")
def refused(lab):
    """A TAP that is not there, or is none, ends the start with one sentence."""
    binary = lab.start_server().binary
    for name, words in (("no-such-tap", "no such interface"), ("lo", "not a TAP")):
        path = lab.run_dir / "never.sock"
        done = subprocess.run([str(binary), "--socket", str(path), "--tap", name], capture_output=True,
                              text=True, timeout=20, check=False)
        require(done.returncode == 1 and words in done.stderr and len(done.stderr.splitlines()) == 1,
                f"{name}: exit code {done.returncode}: {done.stderr}")
        require(not path.exists(), "the socket exists")
    return "no such interface; not a TAP"
