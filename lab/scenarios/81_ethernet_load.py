# SPDX-License-Identifier: MIT
"""The guest's interface under load: many streams, settings changed in the middle, RDMA beside it."""
import re
import sys
import time

from ernic_lab import namespaces, pairs, perftest, traffic
from ernic_lab.namespaces import GUEST, NEAR, TAP
from ernic_lab.scenario import require, scenario
from ernic_lab.traffic import IperfServer, carrier, megabits, on_tap, ping, report

# A file of repeatable bytes, as pieces of 1 MiB that differ from each other.
PATTERN = """
import hashlib
def pieces(mebibytes):
    block = bytes(hashlib.sha256(b"%d" % i).digest()[0] for i in range(1 << 16)) * 17
    for i in range(mebibytes):
        start = i * 4099 % 65536
        yield block[start:start + (1 << 20)]
"""

# An HTTP server for one GET of N MiB and one PUT, whose digest it answers with.
HTTP_SERVER = PATTERN + """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        size = int(self.path[1:])
        self.send_response(200)
        self.send_header("Content-Length", str(size << 20))
        self.end_headers()
        for piece in pieces(size):
            self.wfile.write(piece)
    def do_PUT(self):
        left, digest = int(self.headers["Content-Length"]), hashlib.sha256()
        while left:
            data = self.rfile.read1(min(left, 1 << 18))
            if not data:
                return
            digest.update(data)
            left -= len(data)
        answer = digest.hexdigest().encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)
    def log_message(self, *_):
        pass
server = http.server.ThreadingHTTPServer((sys.argv[1], 8080), Handler)
print("listening", flush=True)
server.serve_forever()
"""

HTTP_CLIENT = PATTERN + """
import http.client, sys
size = int(sys.argv[2])
wanted = hashlib.sha256()
for piece in pieces(size):
    wanted.update(piece)
connection = http.client.HTTPConnection(sys.argv[1], 8080, timeout=120)
connection.request("GET", f"/{size}")
response, seen, count = connection.getresponse(), hashlib.sha256(), 0
while data := response.read1(1 << 18):
    seen.update(data)
    count += len(data)
response.read()
assert count == size << 20 and seen.digest() == wanted.digest(), (count, seen.hexdigest())
connection.request("PUT", "/", body=pieces(size), headers={"Content-Length": str(size << 20)})
answer = connection.getresponse().read().decode()
assert answer == wanted.hexdigest(), (answer, wanted.hexdigest())
print(wanted.hexdigest()[:16])
"""


def no_wrong_frames(lab):
    counters = lab.server.stats()["tap"]
    wrong = {name: counters[name] for name in ("read_errors", "malformed", "write_errors") if counters[name]}
    require(not wrong, f"the TAP saw errors: {wrong}")


@scenario("ethernet-iperf", boot="none")
def ethernet_iperf(lab):
    """iperf3 over a TAP with several queues: TCP and UDP, both ways, both ways at once, eight streams."""
    seconds = lab.rounds(2, 10)
    with on_tap(lab, queues=True) as (wire, guest, _), IperfServer(wire) as server:
        results = []
        for name, options in (("out", ""), ("in", "-R"), ("bidirectional", "--bidir"), ("8 streams out", "-P 8"),
                              ("8 streams in", "-P 8 -R")):
            end = server.measure(guest, options, seconds)
            results.append(f"{name} {megabits(end):.0f}")
            if options == "--bidir":
                back = end["sum_received_bidir_reverse"]["bits_per_second"] / 1e6
                require(back > 1, "nothing came back")
                results[-1] += f" + {back:.0f}"
        for name, options in (("UDP out", "-u -b 50M -l 1400"), ("UDP in", "-u -b 50M -l 1400 -R")):
            end = server.measure(guest, options, seconds)
            lost = end["sum"]["lost_percent"]
            require(lost < 20, f"{name}: {lost:.1f} % lost at 50 Mb/s")
            results.append(f"{name} 50 (lost {lost:.2f} %)")
        no_wrong_frames(lab)
        return ", ".join(results) + " Mb/s"


@scenario("ethernet-http", boot="none")
def ethernet_http(lab):
    """A file by HTTP each way, guest as server and as client, with equal digests."""
    mebibytes = lab.rounds(64, 1024)
    with on_tap(lab) as (wire, guest, _):
        for name, text in (("server", HTTP_SERVER), ("client", HTTP_CLIENT)):
            guest.check(f"cat >/tmp/http_{name}.py <<'EOF'\n{text}\nEOF")
        results = []
        host = wire.spawn(wire.near, sys.executable, "-c", HTTP_SERVER, NEAR)
        try:
            traffic.wait_line(host, "listening")
            digest = guest.check(f"python3 /tmp/http_client.py {NEAR} {mebibytes}", 600).strip()
            results.append(f"guest as client {digest}")
        finally:
            host.kill()
            host.wait()
        job = guest.spawn(f"python3 /tmp/http_server.py {GUEST}")
        require(pairs.wait_for(guest, pairs.TCP_LISTENER.format(port=8080)), "the guest does not listen")
        client = wire.spawn(wire.near, sys.executable, "-c", HTTP_CLIENT, GUEST, mebibytes)
        out, _ = client.communicate(timeout=600)
        require(client.returncode == 0, f"guest as server: {out[-1500:]}")
        job.kill()
        require(out.strip() == digest, f"'{out.strip()}' is not '{digest}'")
        results.append("as server the same")
        return f"{mebibytes} MiB each way, " + ", ".join(results)


def exact(guest, net, wire):
    """Counters of guest, TAP and what was sent agree to the frame."""
    quiet = f"""ip -6 addr flush dev {net}; sysctl -qw net.ipv6.conf.{net}.disable_ipv6=1
ip neigh replace {NEAR} lladdr $(ping -c 1 {NEAR} >/dev/null; ip neigh show {NEAR} | awk '{{print $5}}') dev {net} nud permanent"""
    guest.check(quiet)
    mac = guest.check(f"cat /sys/class/net/{net}/address").strip()
    wire.ip(wire.near, f"neigh replace {GUEST} lladdr {mac} dev {TAP} nud permanent")
    namespaces.run(*wire.inside(wire.near), sys.executable, "-c",
                   f"open('/proc/sys/net/ipv6/conf/{TAP}/disable_ipv6', 'w').write('1')")
    time.sleep(1)

    def read():
        fields = dict(re.findall(r"^\s*(\S+): (\d+)$", guest.check(f"ethtool -S {net}"), re.MULTILINE))
        return {name: int(fields[name]) for name in ("tx_packets", "tx_bytes", "rx_packets", "rx_bytes")}

    before = read()
    reply = guest.check(f"ping -q -c 200 -i 0.002 -s 958 {NEAR}", 60)
    require("200 received" in reply, reply)
    after = read()
    moved = {name: after[name] - before[name] for name in after}
    wanted = {"tx_packets": 200, "tx_bytes": 200 * 1000, "rx_packets": 200, "rx_bytes": 200 * 1000}
    require(moved == wanted, f"ethtool -S says {moved} for 200 pings of 1000 bytes")
    return "counters exact"


@scenario("ethernet-settings", boot="none")
def ethernet_settings(lab):
    """ethtool -K, -L, -G, -X, -C and the link up and down while iperf3 runs; exact counters."""
    with on_tap(lab) as (wire, guest, net), IperfServer(wire) as server:
        evidence = [exact(guest, net, wire)]
        toggles = [f"ethtool -K {net} {word} {value}" for word in ("tso", "tx", "rx", "sg", "rxhash")
                   for value in ("off", "on")]
        changes = [f"ethtool -L {net} combined 1", f"ethtool -L {net} combined 4", f"ethtool -G {net} rx 256 tx 256",
                   f"ethtool -G {net} rx 4096 tx 4096", f"ethtool -X {net} weight 1 0 3 0", f"ethtool -X {net} default",
                   f"ethtool -C {net} rx-usecs 64", f"ethtool -C {net} rx-usecs 8"]
        loops = [f"ip link set {net} down; sleep 0.1; ip link set {net} up"] * lab.rounds(3, 20)
        for name, commands in (("-K", toggles), ("-L -G -X -C", changes), ("up/down", loops)):
            for options in ("-P 4", "-P 4 -R"):
                alive_through(guest, server, net, commands, options)
            evidence.append(f"{len(commands)} times {name}")
        ping(guest, NEAR)
        no_wrong_frames(lab)
        return ", ".join(evidence) + " under load both ways"


def alive_through(guest, server, net, commands, options):
    """Traffic still flows after each of the commands, in the connections it flowed in before."""
    counter = f"cat /sys/class/net/{net}/statistics/{'rx' if '-R' in options else 'tx'}_bytes"
    job = guest.spawn(server.command(options, 3600))

    def flows():
        deadline = time.monotonic() + 40
        before = int(guest.check(counter))
        while time.monotonic() < deadline:
            time.sleep(0.1)
            if abs(int(guest.check(counter)) - before) > 100_000:
                return True
        return False

    try:
        require(flows(), f"iperf3 {options} does not start: {job.out}")
        for command in commands:
            guest.check(command)
            require(carrier(guest, net, 1), f"no carrier after: {command}")
            require(flows(), f"iperf3 {options} stalled after: {command}")
            require(job.running, f"iperf3 {options} ended after '{command}': {job.out[-800:]}")
    finally:
        job.kill(2)
        job.wait(30)


@scenario("ethernet-mixed", boot="none")
def mixed(lab):
    """Eight iperf3 streams, ib_write_bw and rping at the same time: no error, no stall."""
    seconds = lab.rounds(10, 60)
    with on_tap(lab, mtu=9000) as (wire, guest, _), IperfServer(wire) as server:
        card = lab.card
        streams = guest.spawn(server.command("-P 8", seconds))
        back = "rping -s -P -a {0} -p 7000".format(card.address)
        rping_server = guest.spawn(back)
        require(pairs.wait_for(guest, pairs.CM_LISTENER), f"rping does not listen: {rping_server.out}")
        command = f"ib_write_bw -d {card.ib} -x {card.gid} -F -s 65536 -D {seconds}"
        writer = guest.spawn(command)
        require(pairs.wait_for(guest, pairs.TCP_LISTENER.format(port=18515)), f"no listener: {writer.out}")
        client = guest.spawn(f"{command} localhost")
        rounds = 0
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            result = guest.run(f"rping -c -a {card.address} -p 7000 -C 20 -V -S 1000", 60)
            require(result.ok, f"rping failed after {rounds} rounds: {result.out[-800:]}")
            rounds += 1
        rows = client.wait(60)
        require(rows.ok, f"ib_write_bw: {rows.out[-800:]}")
        end = report(streams.wait(seconds + 60).out)
        slowest = min(stream["receiver"]["bytes"] for stream in end["streams"])
        require(slowest > 0, "a stream moved nothing")
        rping_server.kill()
        writer.wait(30)
        average = perftest.parse(rows.out)[0].average_mbs
        require(rounds > 1 and average > 1, f"{rounds} rounds of rping, {average} MB/s")
        no_wrong_frames(lab)
        return (f"{seconds} s: iperf3 -P 8 {megabits(end):.0f} Mb/s, slowest stream {slowest >> 10} KiB; "
                f"ib_write_bw {average:.0f} MB/s; rping {rounds} x 20")
