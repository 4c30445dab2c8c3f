# SPDX-License-Identifier: MIT
"""Faults on the segment (--fault, docs/faults.md): each does what its name says, and software sees what the verbs say."""
import re
import time

from ernic_lab import namespaces, pairs, perftest, traffic
from ernic_lab.namespaces import NEAR, TAP, Namespaces
from ernic_lab.scenario import require, scenario

PERFTEST_LISTENS = pairs.TCP_LISTENER.format(port=perftest.PORT)


def with_faults(*specs):
    return ("--stats-interval", "0.1", *(word for spec in specs for word in ("--fault", spec)))


def numbers(server):
    """The statistics file, once what was done before is in it."""
    time.sleep(0.5)
    return server.stats()["faults"]


def verbs_check(lab, options):
    return lab.guest.run(f"/lab/verbs_check --device {lab.card.ib} --gid-index {lab.card.gid} {options}", 600)


@scenario("faults-rdma-loss", boot="none")
def rdma_loss(lab):
    """Lost, repeated, late and overtaken messages: every byte is still right, and nothing happens twice."""
    lab.server = lab.start_server(extra=with_faults(
        "drop,opcode=request,every=101", "drop,opcode=response,every=151,count=40",
        "duplicate,opcode=request,every=11", "duplicate,opcode=response,every=13",
        "reorder,opcode=request,every=17", "delay=1ms,jitter=2ms,what=messages,every=41"))
    lab.guest = lab.start_guest(lab.server)
    lines = []
    for options in ("--only 'atomic/*' --only 'order/*'", "--stress 15 --pairs 4"):
        result = verbs_check(lab, options)
        require(result.ok, result.out[-1500:])
        lines.append(result.out.splitlines()[-1])
    address = lab.card.address
    pairs.run(lab.guest, f"rping -s -a {address} -C 100 -S 4096 -V", f"rping -c -a {address} -C 100 -S 4096 -V",
              pairs.CM_LISTENER, 300)
    seen = numbers(lab.server)
    for kind in ("drops", "duplicates", "reorders", "delays"):
        require(seen[kind] > 0, f"no {kind}: {seen}")
    return f"{'; '.join(lines)}; rping too; {seen['drops']} lost, {seen['duplicates']} repeated"


@scenario("faults-rdma-errors", boot="none")
def rdma_errors(lab):
    """A request that always gets lost ends in 'retry exceeded'; flipped bits are found by who looks."""
    lab.server = lab.start_server(extra=with_faults("drop,opcode=read", "corrupt,opcode=write"))
    lab.guest = lab.start_guest(lab.server)
    command = f"ib_read_bw -d {lab.card.ib} -x {lab.card.gid} -F -n 5 -s 4096"
    server = lab.guest.spawn(command)
    require(pairs.wait_for(lab.guest, PERFTEST_LISTENS), "ib_read_bw does not listen")
    client = lab.guest.run(f"{command} localhost", 120)
    server.kill()
    require(not client.ok, f"a read without an answer succeeded: {client.out[-800:]}")
    require(re.search(r"[Ff]ailed status 12\b", client.out), f"not 'retry exceeded' (12): {client.out[-800:]}")
    result = verbs_check(lab, "--only order/write-then-send")
    require(result.rc == 1 and "FAIL" in result.out, f"flipped bits not found: {result.out[-1000:]}")
    result = verbs_check(lab, "--only atomic/add-carries")
    require(result.ok, f"what no fault is about: {result.out[-1000:]}")
    return f"ib_read_bw: status 12; verbs_check: wrong bytes found, {numbers(lab.server)['corruptions']} corrupted"


def ping(guest, count):
    """(replies, copies, fastest round trip in ms) of `count` pings."""
    out = guest.run(f"ping -c {count} -i 0.2 -W 1 {NEAR}", 60).out
    replies = [line for line in out.splitlines() if "bytes from" in line]
    copies = sum("DUP!" in line for line in replies)
    times = [float(time) for time in re.findall(r"time=([0-9.]+)", out)]
    return len(replies) - copies, copies, min(times, default=0.0)


@scenario("faults-ethernet", boot="none")
def ethernet(lab):
    """Frames: ping sees loss, delay, copies and a link that fails and comes back; iperf3 sees the rate; all end."""
    icmp = "protocol=icmp,direction=from-guest"
    with Namespaces(mtu=1500) as wire:
        lab.server = server = lab.start_server(prefix=wire.inside(wire.near), extra=("--tap", TAP, *with_faults(
            f"drop,{icmp},every=4,count=5",        # of the first 20
            f"delay=200ms,{icmp},after=15,count=5",  # the 15 that are left do not count, the next 5 do
            f"duplicate,{icmp},after=20,count=5",
            f"link-down=3s,{icmp},after=28,count=1",
            "rate=20Mbit,protocol=tcp,direction=from-guest")))
        lab.guest = guest = lab.start_guest(server)
        net = traffic.guest_net(guest)
        guest.check(f"ip link set {net} up; ip addr replace {namespaces.GUEST}/24 dev {net}")
        require(traffic.carrier(guest, net, 1), "no carrier")

        replies, copies, _ = ping(guest, 20)
        require((replies, copies) == (15, 0), f"{replies} replies and {copies} copies of 20 pings, a quarter dropped")
        replies, copies, fastest = ping(guest, 5)
        require((replies, copies) == (5, 0) and fastest >= 200, f"{replies} replies, {fastest} ms with a delay of 200 ms")
        replies, copies, _ = ping(guest, 5)
        # ping ends with the last reply and does not wait for its copy.
        require((replies, copies) in ((5, 5), (5, 4)), f"{replies} replies and {copies} copies of 5 pings, all duplicated")
        replies, copies, fastest = ping(guest, 3)
        require((replies, copies) == (3, 0) and fastest < 200, f"after the faults: {replies}, {copies}, {fastest} ms")
        require(numbers(server)["active"] == 2, f"faults that are over are still there: {numbers(server)}")

        guest.run(f"ping -c 1 -W 1 {NEAR}")
        require(traffic.carrier(guest, net, 0), "the link is down and the guest does not see it")
        require(traffic.carrier(guest, net, 1), "the outage is over and the guest does not see it")
        replies, _, _ = ping(guest, 3)
        require(replies == 3, f"{replies} of 3 after the outage")

        slow, fast = traffic.iperf(guest, wire), traffic.iperf(guest, wire, "-R")
        require(8 < slow < 22, f"{slow:.1f} Mbit/s through a rate of 20 Mbit/s")
        require(fast > 2 * slow, f"the other direction has no limit, and does {fast:.1f} Mbit/s")
        return f"5 of 20 lost, +200 ms, copies, link down 3 s, {slow:.1f} Mbit/s of 20 (other way {fast:.0f})"
