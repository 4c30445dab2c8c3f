# SPDX-License-Identifier: MIT
"""Virtual machines of several servers as one fabric."""
import re
import time

from ernic_lab import mesh, pairs
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


@scenario("mesh-peer-killed", boot="none", complaints=True)
def peer_killed(lab):
    """A server and a virtual machine are killed mid-transfer: the other side gets errors and works on."""
    fabric = mesh.Mesh(lab)
    one, two = fabric.start(1), fabric.start(2)
    lab.server = one.server
    one.wait_peers(1)
    evidence = []
    for victim in ("server", "guest"):
        works(one, two)
        before = one.server.footprint().fds
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
        after = one.server.footprint().fds
        require(after <= before, f"descriptors left: {before}, then {after}")
        why = next((line.strip() for line in ended.out.splitlines() if "status" in line.lower()), f"exit code {ended.rc}")
        evidence.append(f"{victim} killed: {why}; back with {speed:.0f} MB/s")
    return "; ".join(evidence)


@scenario("mesh-hosts", boot="none", card=False)
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
