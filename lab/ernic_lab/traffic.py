# SPDX-License-Identifier: MIT
"""Traffic between a guest's interface and the network namespaces of the host."""
import contextlib
import json
import sys
import time

from . import namespaces, pairs
from .namespaces import GUEST, GUEST6, NEAR, NEAR6, TAP, Namespaces
from .scenario import require

# A TCP server for one connection; reads until the other end is done, then answers with the digest.
SINK = """
import hashlib, socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
server = socket.socket(family)
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind((sys.argv[1], int(sys.argv[2])))
server.listen()
print("listening", flush=True)
peer, _ = server.accept()
digest, size = hashlib.sha256(), 0
while data := peer.recv(1 << 18):
    digest.update(data)
    size += len(data)
peer.sendall(f"{size} {digest.hexdigest()}".encode())
"""

# Sends pseudo-random bytes and compares the digest the other end answers with.
SOURCE = """
import hashlib, random, socket, sys
peer = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=30)
digest, size = hashlib.sha256(), 0
block = random.Random(1).randbytes(1 << 20)
for i in range(int(sys.argv[3])):
    part = block[i * 4099 % 65536:]
    peer.sendall(part)
    digest.update(part)
    size += len(part)
peer.shutdown(socket.SHUT_WR)
answer = b""
while data := peer.recv(4096):
    answer += data
assert answer.decode() == f"{size} {digest.hexdigest()}", (answer, size, digest.hexdigest())
print(size)
"""

# UDP datagrams of every size up to 300 bytes, and a few large ones.
DATAGRAMS = """
import os, socket, sys
s = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)
for size in [*range(301), 1471, 1472, 8000, 8191]:
    s.sendto(os.urandom(size), (sys.argv[1], 9))
"""


def put_programs(guest):
    for name, text in (("sink", SINK), ("source", SOURCE), ("datagrams", DATAGRAMS)):
        guest.check(f"cat >/tmp/{name}.py <<'EOF'\n{text}\nEOF")


def bring_up(guest, card_net, mtu):
    guest.check(f"""ip link set {card_net} mtu {mtu} up
ip addr replace {GUEST}/24 dev {card_net}
ip addr replace {GUEST6}/64 dev {card_net} nodad
ip route replace 10.79.0.0/24 via {NEAR}
ip -6 route replace fd79::/64 via {NEAR6}""")
    require(carrier(guest, card_net, 1), "no carrier")


def carrier(guest, net, wanted):
    return pairs.wait_for(guest, f'[ "$(cat /sys/class/net/{net}/carrier)" = {wanted} ]', 10)


def guest_net(guest, driver="ionic"):
    """The name of the guest's interface with this driver."""
    guest.check(f"modprobe {driver} && udevadm settle")
    names = guest.check("cd /sys/class/net; for n in *; do echo $n $(readlink $n/device/driver); done")
    found = [name for name, *path in (line.split() for line in names.splitlines())
             if path and path[0].rsplit("/", 1)[-1] == driver]
    require(len(found) == 1, f"no single interface with driver {driver}: {names}")
    return found[0]


def wait_line(process, wanted):
    line = process.stdout.readline().strip()
    require(line == wanted, f"'{line}' instead of '{wanted}': {process.stdout.read() if process.poll() else ''}")


def ping(guest, address, options=""):
    out = guest.check(f"ping -c 3 -i 0.2 -W 5 {options} {address}")
    require(" 0% packet loss" in out, out)
    return out.splitlines()[-1].split("=")[-1].strip()


def transfer_from_guest(guest, wire, where, address, blocks):
    sink = wire.spawn(where, sys.executable, "-c", SINK, address, 5000)
    try:
        wait_line(sink, "listening")
        return int(guest.check(f"python3 /tmp/source.py {address} 5000 {blocks}", 60))
    finally:
        sink.kill()
        sink.wait()


def transfer_to_guest(guest, wire, where, address, blocks):
    job = guest.spawn(f"python3 /tmp/sink.py {address} 5000")
    require(pairs.wait_for(guest, pairs.TCP_LISTENER.format(port=5000)), "the guest does not listen")
    source = wire.spawn(where, sys.executable, "-c", SOURCE, address, 5000, blocks)
    out, _ = source.communicate(timeout=60)
    require(source.returncode == 0, f"to the guest: {out}")
    require(job.wait(20).ok, job.out)
    return int(out)


@contextlib.contextmanager
def on_tap(lab, mtu=1500, extra=(), **kinds):
    """A guest whose card is on the TAP of two namespaces, up and with addresses."""
    with Namespaces(mtu=mtu, **kinds) as wire:
        lab.server = server = lab.start_server(prefix=wire.inside(wire.near),
                                               extra=("--tap", TAP, "--stats-interval", "0.1", *extra))
        lab.guest = guest = lab.start_guest(server)
        net = guest_net(guest)
        bring_up(guest, net, mtu)
        ping(guest, NEAR)
        yield wire, guest, net


class IperfServer:
    """iperf3 in the near namespace, which one client after the other may use."""

    def __init__(self, wire, port=5201):
        self.wire, self.port = wire, port

    def __enter__(self):
        self.process = self.wire.spawn(self.wire.near, "iperf3", "-s", "-B", NEAR, "-p", self.port)
        deadline = time.monotonic() + 10
        while not namespaces.run("ip", "netns", "exec", self.wire.near, "ss", "-Hltn", f"sport = :{self.port}"):
            require(time.monotonic() < deadline and self.process.poll() is None, "iperf3 does not listen")
            time.sleep(0.1)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def command(self, options="", seconds=3):
        """What the guest runs."""
        return f"iperf3 -J -t {seconds} -c {NEAR} -p {self.port} {options}"

    def measure(self, guest, options="", seconds=3):
        """iperf3's own report of one run, the guest being the client."""
        result = guest.run(self.command(options, seconds), seconds + 60)
        return report(result.out, options)


def report(text, what=""):
    """The "end" part of iperf3's JSON. Fails when the run ended with an error."""
    try:
        parsed = json.loads(text)
    except ValueError:
        parsed = {"error": text[-500:]}
    require("error" not in parsed, f"iperf3 {what}: {parsed.get('error')}")
    return parsed["end"]


def megabits(end):
    return end["sum_received"]["bits_per_second"] / 1e6


def iperf(guest, wire, options="", seconds=3):
    """Mbit/s of TCP between the guest and the near namespace; the guest is the client."""
    with IperfServer(wire) as server:
        return megabits(server.measure(guest, options, seconds))
