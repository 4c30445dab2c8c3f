# SPDX-License-Identifier: MIT
"""Services of the server itself as peers of a stock guest: no TAP, no root, nothing on the host's network."""
import re
import time

from ernic_lab import pairs
from ernic_lab.scenario import require, scenario

ECHO, ECHO6 = "10.0.0.2", "fd00::2"
SECOND = "10.0.0.3"
FIRST_LEASE, LAST_LEASE = "10.0.0.100", "10.0.0.110"
GUEST6 = "fd00::10"

# What busybox's DHCP client calls with the lease in the environment.
LEASE_SCRIPT = """#!/bin/sh
case $1 in
bound|renew)
  ip addr replace $ip/$mask dev $interface
  [ -z "$mtu" ] || ip link set $interface mtu $mtu
  echo "lease ip=$ip mask=$mask router=$router dns=$dns mtu=$mtu lease=$lease server=$serverid" ;;
deconfig) ip link set $interface up ;;
esac
"""

# Sends pseudo-random bytes to a TCP echo, reads them back at the same time, and compares the digests.
TCP_ECHO = """
import hashlib, random, socket, sys, threading
peer = socket.create_connection((sys.argv[1], 7), timeout=60)
block = random.Random(1).randbytes(1 << 20)
sent, got = hashlib.sha256(), hashlib.sha256()
def send():
    for i in range(int(sys.argv[2])):
        part = block[i * 4099 % 65536:]
        peer.sendall(part)
        sent.update(part)
    peer.shutdown(socket.SHUT_WR)
thread = threading.Thread(target=send)
thread.start()
size = 0
while data := peer.recv(1 << 18):
    got.update(data)
    size += len(data)
thread.join()
assert sent.digest() == got.digest(), (size, sent.hexdigest(), got.hexdigest())
print(size)
"""

# Reads from chargen and compares with the pattern of RFC 864; then UDP echo of every size up to 300 bytes and some
# large ones, the last of which is sent in fragments.
SOURCE_AND_UDP = """
import hashlib, os, socket, sys
line = bytes(range(32, 127))
pattern = b"".join((line[i:] + line)[:72] + b"\\r\\n" for i in range(95))
peer = socket.create_connection((sys.argv[1], 19), timeout=60)
want, got, size = hashlib.sha256(), hashlib.sha256(), int(sys.argv[2]) * len(pattern)
left = size
while left:
    data = peer.recv(min(left, 1 << 18))
    assert data, "the source has ended"
    got.update(data)
    left -= len(data)
for _ in range(int(sys.argv[2])):
    want.update(pattern)
assert want.digest() == got.digest()
peer.close()
s = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(5)
s.connect((sys.argv[1], 7))
for length in [*range(301), 1400, 8000, 9600]:
    data = os.urandom(length)
    s.send(data)
    assert s.recv(65535) == data, length
print(size)
"""


def guest_net(guest):
    return guest.check("for d in /sys/class/net/*; do [ \"$(cat $d/device/vendor 2>/dev/null)\" = 0x1dd8 ] "
                       "&& echo ${d##*/}; done; true").split()[0]


def put(guest, path, text):
    guest.check(f"cat >{path} <<'EOF'\n{text}\nEOF\nchmod +x {path}")


def get_lease(guest, net):
    put(guest, "/tmp/lease.sh", LEASE_SCRIPT)
    out = guest.check(f"busybox udhcpc -i {net} -n -q -f -t 5 -T 1 -O mtu -O dns -s /tmp/lease.sh 2>&1", 40)
    lease = re.search(r"lease ip=(\S+) mask=(\S+) router=(\S*) dns=(\S*) mtu=(\S*) lease=(\S+) server=(\S+)", out)
    require(lease, f"no lease: {out}")
    return lease.groups()


def ping(guest, address, options=""):
    out = guest.check(f"ping -c 3 -i 0.2 -W 5 {options} {address}")
    require(" 0% packet loss" in out, out)
    return out.splitlines()[-1].split("=")[-1].strip()


def guest_counter(guest, net, pattern):
    """Sum of the driver's counters whose names match."""
    out = guest.check(f"ethtool -S {net}")
    return sum(int(value) for name, value in re.findall(r"^\s*(\S+): (\d+)$", out, re.M) if re.fullmatch(pattern, name))


def stats(server):
    """The statistics file, once what was done before is in it."""
    time.sleep(0.5)
    return server.stats()


@scenario("ethernet-echo", boot="none")
def ethernet_echo(lab):
    """A lease, ping, jumbo frames, TCP and UDP with equal digests between a guest and services, without a TAP."""
    lab.server = server = lab.start_server(extra=(
        "--stats-interval", "0.1",
        "--target", f"echo:ip={ECHO}/24,ip={ECHO6}/64,mtu=9000", "--target", f"echo:ip={SECOND}/24",
        "--dhcp", f"{FIRST_LEASE}-{LAST_LEASE},router={ECHO},dns={SECOND},mtu=9000,lease=600"))
    lab.guest = guest = lab.start_guest(server)
    net = guest_net(guest)
    guest.check(f"ip link set {net} up")
    require(pairs.wait_for(guest, f'[ "$(cat /sys/class/net/{net}/carrier)" = 1 ]', 10), "no carrier")
    lease = get_lease(guest, net)
    require(lease == (FIRST_LEASE, "24", ECHO, SECOND, "9000", "600", "10.0.0.1") or
            lease == (FIRST_LEASE, "255.255.255.0", ECHO, SECOND, "9000", "600", "10.0.0.1"), f"lease {lease}")
    require(get_lease(guest, net)[0] == FIRST_LEASE, "the second time it got another address")
    guest.check(f"ip addr replace {GUEST6}/64 dev {net} nodad")
    evidence = [f"lease {lease[0]}, mtu {lease[4]}", f"ping {ping(guest, ECHO)}", f"ping6 {ping(guest, ECHO6)}"]
    for address in (SECOND, "10.0.0.1"):
        ping(guest, address)
    ping(guest, ECHO, "-M do -s 8972")
    ping(guest, ECHO6, "-M do -s 8952")
    evidence.append("9000-byte pings with DF")

    put(guest, "/tmp/echo.py", TCP_ECHO)
    put(guest, "/tmp/source.py", SOURCE_AND_UDP)
    before = stats(server)
    begin = time.monotonic()
    moved = int(guest.check(f"python3 /tmp/echo.py {ECHO} 64", 120))
    seconds = time.monotonic() - begin
    after = stats(server)
    ports = [s["segment"]["ports"]["guest"] for s in (before, after)]
    frame = (ports[1]["bytes_in"] - ports[0]["bytes_in"]) / max(ports[1]["frames_in"] - ports[0]["frames_in"], 1)
    require(guest_counter(guest, net, r"tx_\d+_tso|tx_tso|tx_\d+_tso_bytes") > 0, "the guest has not used TSO")
    require(after["stack"]["malformed"] == 0 and after["stack"]["no_memory"] == 0, f"{after['stack']}")
    evidence.append(f"{moved >> 20} MiB echoed at {2 * moved * 8 / seconds / 1e6:.0f} Mb/s, "
                    f"{frame:.0f} bytes per frame from the guest")
    guest.check(f"python3 /tmp/echo.py {ECHO6} 16", 120)
    for address in (ECHO, ECHO6):
        made = int(guest.check(f"python3 /tmp/source.py {address} 4000", 120))
    evidence.append(f"{made >> 20} MiB of chargen and 304 datagrams right, twice")
    errors = guest.check("nstat -asz TcpInCsumErrors UdpInCsumErrors Udp6InCsumErrors IpInHdrErrors "
                         "| awk 'NR > 1 && $2 != 0'")
    require(not errors.strip(), f"the guest found wrong checksums: {errors}")

    # Nothing is open any more, so nothing wakes the server.
    guest.check(f"ip link set {net} down")
    time.sleep(1)
    ticks = stats(server)["stack"]["timer_ticks"]
    time.sleep(1.5)
    require(stats(server)["stack"]["timer_ticks"] == ticks, "the TCP timer runs without a connection")
    require(server.alive, "the server ended")
    return "; ".join(evidence)
