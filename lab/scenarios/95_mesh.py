# SPDX-License-Identifier: MIT
"""Virtual machines of several servers as one fabric."""
import os
import re
import statistics
import time

from ernic_lab import mesh, pairs, soft_roce
from ernic_lab.lab import LeakWatch
from ernic_lab.scenario import require, scenario


def ping(node, to, options=""):
    out = node.guest.check(f"ping -c 3 -i 0.2 -W 5 {options} {to.address}")
    require(" 0% packet loss" in out, out)
    return re.search(r"= [\d.]+/([\d.]+)/", out).group(1)


def iperf(server, client, options=""):
    ready = "ss -Hltn 'sport = :5201' | grep -q ."
    out = mesh.pair(server, client, "iperf3 -s -1", f"iperf3 -c {server.address} -t 2 -f m {options}", ready)[1]
    return re.search(r"([\d.]+) Mbits/sec.*receiver", out).group(1)


@scenario("mesh-two-guests", boot="none")
def two_guests(lab):
    """Two guests of two servers: ping, TCP, rdma_cm, RC, UD, reads, writes, atomics."""
    fabric = mesh.Mesh(lab)
    one, two = fabric.start(1), fabric.start(2)
    lab.server = one.server
    one.wait_peers(1)
    evidence = [f"ping {ping(one, two)} and {ping(two, one)} ms"]
    evidence.append(mesh.verbs(one, two, "ibv_rc_pingpong", "-n 500 -c").splitlines()[-1])
    evidence.append(mesh.verbs(two, one, "ibv_ud_pingpong", "-n 200 -s 1024").splitlines()[-1])
    evidence.append(f"iperf3 {iperf(one, two)} and {iperf(one, two, '-R')} Mb/s")
    a = one.address
    out = mesh.pair(one, two, f"rping -s -a {a} -C 100 -S 4096 -V", f"rping -c -a {a} -C 100 -S 4096 -V -v",
                    pairs.CM_LISTENER)[1]
    require(sum(line.startswith("ping data") for line in out.splitlines()) == 100, out)
    mesh.pair(one, two, f"ucmatose -b {a} -c 10 -C 10", f"ucmatose -s {a} -c 10 -C 10", pairs.CM_LISTENER)
    evidence.append("rping, ucmatose")
    for tool, options in (("ib_write_bw", "-s 65536 -n 200"), ("ib_write_bw", "-s 1048576 -n 50"),
                          ("ib_read_bw", "-s 65536 -n 200"), ("ib_send_bw", "-s 4096 -n 200")):
        row = mesh.perf(one, two, tool, options)[-1]
        evidence.append(f"{tool} {row.size}: {row.average_mbs:.0f} MB/s")
    for tool, options in (("ib_write_lat", "-s 64 -n 200"), ("ib_read_lat", "-s 64 -n 200"),
                          ("ib_send_lat", "-s 64 -n 200"), ("ib_atomic_lat", "-n 100")):
        row = mesh.perf(two, one, tool, options)[-1]
        evidence.append(f"{tool}: {row.typical_us:.0f} us")
    peers = two.wait_peers(1)
    require(peers[0]["name"] == "node1" and peers[0]["reconnects"] == 0, f"peers: {peers}")
    return "; ".join(evidence)


@scenario("mesh-data-verified", boot="none", tier="full")
def data_verified(lab):
    """Every kind of transfer between two guests, byte for byte, first at an MTU of 1500, then with jumbo frames."""
    fabric = mesh.Mesh(lab)
    one, two = fabric.start(1), fabric.start(2)
    lab.server = one.server
    one.wait_peers(1)
    evidence = [f"MTU 1500: {mesh.verified(one, two)}"]
    for node in (one, two):
        node.guest.check(f"ip link set {node.card.net} mtu 9000")
        require("active_mtu:\t\t4096" in node.guest.check(f"ibv_devinfo -d {node.card.ib}"), "active_mtu did not grow")
    for here, there in ((one, two), (two, one)):
        ping(here, there, "-s 8972 -M do")
    too_long = one.guest.run(f"ping -c 1 -W 5 -s 8973 -M do {two.address}")
    require(not too_long.ok, f"a longer packet passes too: {too_long.out}")
    mesh.verbs(one, two, "ibv_rc_pingpong", "-m 4096 -n 200 -c")
    evidence.append(f"active_mtu 4096, ping -s 8972 -M do; {mesh.verified(two, one)}; "
                    f"iperf3 {iperf(one, two)} Mb/s")
    staged = two.server.ctl_json("stats")["mesh"]
    require(staged["messages_dropped"] == staged["protocol_errors"] == 0, f"{staged}")
    return "; ".join(evidence)


def write_until_killed(client, server):
    """ib_write_bw from one guest to the other for as long as it lasts; returns once bytes move."""
    command = [f"ib_write_bw -d {node.card.ib} -x {node.card.gid} -F -s 65536 -D 60" for node in (server, client)]
    listener = server.guest.spawn(command[0])
    require(pairs.wait_for(server.guest, pairs.TCP_LISTENER.format(port=18515)), "no listener")
    writer = client.guest.spawn(f"exec {command[1]} {server.address}")
    # Queue pair 1 is always there.
    require(pairs.wait_for(client.guest, "[ $(rdma resource show qp | grep -c 'state RTS') -ge 2 ]"), "no connection")
    before = client.server.ctl_json("stats")["rdma"]["tx_bytes"]
    client.guest.run("sleep 1")
    require(client.server.ctl_json("stats")["rdma"]["tx_bytes"] > before, "no bytes move")
    return listener, writer


def works(one, two):
    ping(one, two)
    mesh.verbs(one, two, "ibv_rc_pingpong", "-n 50 -c")
    return mesh.perf(one, two, "ib_write_bw", "-s 65536 -n 50")[-1].average_mbs


def kill_and_replace(lab, fabric, one, two, victim):
    """Kills node two's server with its virtual machine, or the virtual machine alone, mid-transfer, and brings it
    back. Returns the new node two and what the other side saw."""
    _, writer = write_until_killed(one, two)
    if victim == "server":
        two.server.kill()
    two.guest.kill()
    ended = writer.wait(60)
    require(not ended.ok, f"the writer noticed nothing: {ended.out[-500:]}")
    if victim == "server":
        one.wait_peers(0)
    # Its own card goes on working: a transfer to itself.
    one.guest.check("! pgrep ib_write_bw || pkill -9 ib_write_bw; true")
    mesh.verbs(one, one, "ibv_rc_pingpong", "-n 50 -c")
    if victim == "server":
        two = fabric.start(2)
    else:
        two.guest = lab.start_guest(two.server, memory=fabric.memory)
        two.card = mesh.card.bring_up(two.guest, two.address)
    one.wait_peers(1)
    speed = works(one, two)
    why = next((line.strip() for line in ended.out.splitlines() if "status" in line.lower()), f"exit code {ended.rc}")
    return two, f"{victim} killed: {why}; back with {speed:.0f} MB/s"


@scenario("mesh-peer-killed", boot="none", complaints=True)
def peer_killed(lab):
    """A server and a virtual machine are killed mid-transfer: the other side gets errors and works on."""
    fabric = mesh.Mesh(lab)
    one, two = fabric.start(1), fabric.start(2)
    lab.server = one.server
    one.wait_peers(1)
    works(one, two)
    before = one.server.footprint().fds
    evidence = []
    for victim in ("server", "guest"):
        two, seen = kill_and_replace(lab, fabric, one, two, victim)
        evidence.append(seen)
        after = one.server.footprint().fds
        require(after <= before, f"descriptors left: {before}, then {after}")
    return "; ".join(evidence)


@scenario("mesh-peer-killed-often", boot="none", tier="full", complaints=True)
def peer_killed_often(lab):
    """The same in 20 rounds: the other side's server has as many descriptors and as much memory as before."""
    rounds = int(os.environ.get("ERNIC_MESH_KILLS", "20"))
    fabric = mesh.Mesh(lab)
    one, two = fabric.start(1), fabric.start(2)
    lab.server = one.server
    one.wait_peers(1)
    works(one, two)
    two, _ = kill_and_replace(lab, fabric, one, two, "server")
    watch = LeakWatch(one.server)
    for turn in range(rounds):
        two, seen = kill_and_replace(lab, fabric, one, two, ("server", "guest")[turn % 2])
    return f"{rounds} rounds; {watch.check()}; the last: {seen}"


@scenario("mesh-compare-soft-roce", boot="none", tier="full")
def compare_soft_roce(lab):
    """ib_write_bw between two guests: over the mesh, and with soft-RoCE over TAPs on a bridge of the host."""
    fabric = mesh.Mesh(lab)
    with mesh.Hosts(1, taps=2) as network:
        nodes = []
        for number in (1, 2):
            lan = network.netdev(number)
            nodes.append(fabric.start(number, qemu_args=lan, prefix=network.at_switch()))
        one, two = nodes
        lab.server = one.server
        one.wait_peers(1)
        soft = [soft_roce.add_on(node.guest, "virtio_net", f"10.81.0.{number}")
                for number, node in enumerate(nodes, 1)]
        table, missed = [], []
        for size, count in ((65536, 200), (1 << 20, 50)):
            ours, theirs = (
                statistics.median(mesh.perf(one, two, "ib_write_bw", f"-s {size} -n {n}", devices)[-1].average_mbs
                                  for _ in range(3))
                for n, devices in ((count, None), (count // 5, soft)))
            table.append(f"{size} B: mesh {ours:.0f} MB/s, soft-RoCE {theirs:.1f} MB/s, x{ours / theirs:.1f}")
            if ours < 10 * theirs:
                missed.append(f"{size} B: {ours / theirs:.1f} times soft-RoCE, wanted 10")
        require(not missed, "; ".join(missed + table))
        return "; ".join(table)


@scenario("mesh-hosts", boot="none", card=False, tier="full")
def hosts(lab):
    """Servers in three network namespaces, with a key: they meet, a partition is noticed and heals."""
    key = lab.run_dir / "mesh.key"
    key.write_text("0123456789abcdef" * 4 + "\n")
    key.chmod(0o600)
    options = f",key={key},heartbeat=100,dead-after=1000"
    with mesh.Hosts(3) as network:
        servers = {}
        for number in (3, 2, 1):  # the manager comes last
            role = f"manager:{network.address(1)}" if number == 1 else f"worker:{network.address(1)}"
            servers[number] = lab.start_server(backend=f"tcp:{role}:7000,name=host{number}{options}", control=True,
                                               mac=f"02:00:00:00:00:{number:02x}", prefix=network.inside(number))
        for server in servers.values():
            peers = mesh.wait_peers(server, 2)
            require(all(peer["address"].startswith("10.80.0.") for peer in peers), f"addresses: {peers}")
        network.cable(3, up=False)
        mesh.wait_peers(servers[1], 1)
        mesh.wait_peers(servers[2], 1)
        mesh.wait_peers(servers[3], 0)
        network.cable(3, up=True)
        begin = time.monotonic()
        for server in servers.values():
            mesh.wait_peers(server, 2)
        seconds = time.monotonic() - begin
        for server in servers.values():
            numbers = server.ctl_json("stats")["mesh"]
            require(numbers["forged"] == numbers["wrong_key"] == numbers["protocol_errors"] == 0, f"{numbers}")
    return f"three hosts joined, one cut off and back after {seconds:.1f} s"
