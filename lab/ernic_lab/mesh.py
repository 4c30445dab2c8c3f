# SPDX-License-Identifier: MIT
"""Several servers that form a mesh on this host, each with a virtual machine."""
import contextlib
import os
import random
import socket
import subprocess
import time
from dataclasses import dataclass

from . import card, pairs, perftest
from .guest import Guest
from .namespaces import Namespaces, run
from .scenario import Failure, require
from .server import Server


def free_port():
    """A TCP port nobody listens on now, and that Linux gives to no client (net.ipv4.ip_local_port_range): workers
    dial while nobody listens."""
    for port in random.sample(range(20000, 30000), 100):
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no port is free")


def wait_peers(server, count, timeout=20):
    """Until that many peers are connected, as the server itself sees it; all it knows."""
    deadline = time.monotonic() + timeout
    while True:
        peers = server.ctl_json("peers")["peers"]
        if sum(peer["state"] == "connected" for peer in peers) == count:
            return peers
        if time.monotonic() > deadline:
            raise Failure(f"{count} connected peers expected: {peers}")
        time.sleep(0.1)


@dataclass(eq=False)
class Node:
    server: Server
    guest: Guest
    card: card.Card
    address: str

    def wait_peers(self, count, timeout=20):
        return wait_peers(self.server, count, timeout)


class Mesh:
    """Node 1 is the manager."""

    def __init__(self, lab, options="", extra=(), memory="2G"):
        self.lab, self.options, self.extra, self.memory = lab, options, tuple(extra), memory
        self.port = free_port()
        self.nodes = {}

    def backend(self, number):
        role = f"tcp:manager:listen:{self.port}" if number == 1 else f"tcp:worker:127.0.0.1:{self.port}"
        return f"{role},name=node{number}{self.options}"

    def start(self, number, **guest_options):
        """A server and its guest, with the card up."""
        address = f"10.77.0.{number}"
        server = self.lab.start_server(backend=self.backend(number), mac=f"02:00:00:00:00:{number:02x}", control=True,
                                       extra=("--stats-interval", "0.5", *self.extra))
        guest = self.lab.start_guest(server, memory=self.memory, **guest_options)
        node = self.nodes[number] = Node(server, guest, card.bring_up(guest, address), address)
        return node


def pair(server, client, server_command, client_command, ready, timeout=120):
    """A program in one node's guest and its counterpart in another's; both outputs."""
    return pairs.run(server.guest, server_command, client_command, ready, timeout, client_guest=client.guest)


def verbs(server, client, tool, options="", timeout=120, devices=None):
    """One of ibverbs' examples or perftest between two guests, with their cards or other `devices` of theirs; the
    client's output."""
    listens = pairs.TCP_LISTENER.format(port=perftest.PORT)
    flag = "-x" if tool.startswith("ib_") else "-g"
    devices = devices or (server.card, client.card)
    command = [f"{tool} -d {device.ib} {flag} {device.gid} {options}".strip() for device in devices]
    return pair(server, client, command[0], f"{command[1]} {devices[0].address}", listens, timeout)[1]


def verified(listener, leader, timeout=600):
    """verbs_check in both guests, each in turn as the requester; what the leader says it has done."""
    ready = pairs.TCP_LISTENER.format(port=18600)
    command = [f"/lab/verbs_check --device {node.card.ib} --gid-index {node.card.gid} --across"
               for node in (listener, leader)]
    return pair(listener, leader, f"{command[0]} listen", f"{command[1]} {listener.address}", ready,
                timeout)[1].splitlines()[-1]


def perf(server, client, tool, options="", devices=None):
    """One perftest run; its table."""
    out = verbs(server, client, tool, f"-F {options}", devices=devices)
    rows = perftest.parse(out)
    if not rows:
        raise Failure(f"no table in the output of {tool}: {out[-1500:]}")
    return rows


class Hosts:
    """Network namespaces with one address each, 10.80.0.1 and so on, on one Ethernet switch, which may have TAP
    interfaces for virtual machines too. Needs root."""

    def __init__(self, count, taps=0):
        require(os.geteuid() == 0, "this needs root: it makes network namespaces")
        self.switch = f"ernic-{os.getpid()}-switch"
        self.names = {number: f"ernic-{os.getpid()}-host{number}" for number in range(1, count + 1)}
        self.taps = taps

    def __enter__(self):
        try:
            for name in (self.switch, *self.names.values()):
                run("ip", "netns", "add", name)
                Namespaces.ip(name, "link set lo up")
            Namespaces.ip(self.switch, "link add br0 type bridge")
            Namespaces.ip(self.switch, "link set br0 up")
            for number, name in self.names.items():
                Namespaces.ip(self.switch, f"link add port{number} type veth peer name eth0 netns {name}")
                Namespaces.ip(self.switch, f"link set port{number} master br0 up")
                Namespaces.ip(name, f"addr add {self.address(number)}/24 dev eth0")
                Namespaces.ip(name, "link set eth0 up")
            for number in range(1, self.taps + 1):
                Namespaces.ip(self.switch, f"tuntap add dev tap{number} mode tap")
                Namespaces.ip(self.switch, f"link set tap{number} master br0 up")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in (*self.names.values(), self.switch):
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)

    @staticmethod
    def address(number):
        return f"10.80.0.{number}"

    def inside(self, number):
        return Namespaces.inside(self.names[number])

    def at_switch(self):
        """What to put in front of a command that uses the switch's TAP interfaces."""
        return Namespaces.inside(self.switch)

    @staticmethod
    def netdev(number):
        """A virtio network card on a TAP interface, for QEMU."""
        return ("-netdev", f"tap,id=lan,ifname=tap{number},script=no,downscript=no,vhost=off",
                "-device", f"virtio-net-pci,netdev=lan,mac=02:00:00:00:01:{number:02x}")

    def cable(self, number, up):
        """Pulls the plug of one host, or puts it in again."""
        Namespaces.ip(self.switch, f"link set port{number} {'up' if up else 'down'}")
