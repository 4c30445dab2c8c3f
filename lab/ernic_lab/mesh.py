# SPDX-License-Identifier: MIT
"""Several servers that form a mesh on this host, each with a virtual machine."""
import socket
from dataclasses import dataclass

from . import card, pairs, perftest
from .guest import Guest
from .scenario import Failure
from .server import Server


def free_port():
    """A TCP port nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@dataclass
class Node:
    server: Server
    guest: Guest
    card: card.Card
    address: str

    def wait_peers(self, count, timeout=20):
        """Until that many peers are connected, as the node itself sees it."""
        import time  # pylint: disable=import-outside-toplevel
        deadline = time.monotonic() + timeout
        while True:
            peers = self.server.ctl_json("peers")["peers"]
            if sum(peer["state"] == "connected" for peer in peers) == count:
                return peers
            if time.monotonic() > deadline:
                raise Failure(f"{count} connected peers expected: {peers}")
            time.sleep(0.1)


class Mesh:
    """Node 1 is the manager."""

    def __init__(self, lab, options="", extra=(), memory="2G"):
        self.lab, self.options, self.extra, self.memory = lab, options, tuple(extra), memory
        self.port = free_port()
        self.nodes = {}

    def backend(self, number):
        role = f"tcp:manager:listen:{self.port}" if number == 1 else f"tcp:worker:127.0.0.1:{self.port}"
        return f"{role},name=node{number}{self.options}"

    def start(self, number):
        """A server and its guest, with the card up."""
        address = f"10.77.0.{number}"
        server = self.lab.start_server(backend=self.backend(number), mac=f"02:00:00:00:00:{number:02x}", control=True,
                                       extra=("--stats-interval", "0.5", *self.extra))
        guest = self.lab.start_guest(server, memory=self.memory)
        node = self.nodes[number] = Node(server, guest, card.bring_up(guest, address), address)
        return node


def pair(server, client, server_command, client_command, ready, timeout=120):
    """A program in one node's guest and its counterpart in another's; both outputs."""
    return pairs.run(server.guest, server_command, client_command, ready, timeout, client_guest=client.guest)


def verbs(server, client, tool, options="", timeout=120):
    """One of ibverbs' examples or perftest between two guests; the client's output."""
    listens = pairs.TCP_LISTENER.format(port=perftest.PORT)
    flag = "-x" if tool.startswith("ib_") else "-g"
    command = [f"{tool} -d {node.card.ib} {flag} {node.card.gid} {options}".strip() for node in (server, client)]
    return pair(server, client, command[0], f"{command[1]} {server.address}", listens, timeout)[1]


def perf(server, client, tool, options=""):
    """One perftest run; its table."""
    out = verbs(server, client, tool, f"-F {options}")
    rows = perftest.parse(out)
    if not rows:
        raise Failure(f"no table in the output of {tool}: {out[-1500:]}")
    return rows
