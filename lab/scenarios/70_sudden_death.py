# SPDX-License-Identifier: MIT
"""Processes and whole virtual machines die in the middle of a transfer."""
import json
import time

from ernic_lab import pairs, perftest
from ernic_lab.lab import LeakWatch
from ernic_lab.scenario import require, scenario


def start_traffic(guest, card, seconds=60):
    """ib_write_bw in both directions; returns once bytes move."""
    command = f"ib_write_bw -d {card.ib} -x {card.gid} -F -b -s 65536 -D {seconds}"
    server = guest.spawn(command)
    require(pairs.wait_for(guest, pairs.TCP_LISTENER.format(port=perftest.PORT)), "no listener")
    client = guest.spawn(f"exec {command} localhost")
    require(pairs.wait_for(guest, "[ $(rdma resource show qp | grep -c 'state RTS') -ge 2 ]"), "no connection")
    return server, client


def resources(guest):
    """What the kernel counts per device; queue pair 1 and its parts are always there."""
    return {item["ifname"]: {k: v for k, v in item.items() if k in ("pd", "cq", "qp", "cm_id", "mr", "ctx", "srq")}
            for item in json.loads(guest.check("rdma -j resource show"))}


@scenario("kill-client")
def kill_client(lab):
    """kill -9 of a client mid-transfer; nothing is left and everything still works."""
    guest, card = lab.guest, lab.card
    rounds = lab.rounds(3, 20)
    before = resources(guest)
    for _ in range(rounds):
        server, client = start_traffic(guest, card)
        guest.run("sleep 0.3")
        client.kill()
        server.kill()
        client.wait(30)
        server.wait(30)
    require(pairs.wait_for(guest, "! pgrep ib_write_bw"), "perftest did not end")
    after = resources(guest)
    require(before == after, f"resources before {before}, after {after}")
    perftest.run(guest, "ib_write_bw", card.ib, card.gid, "-s 65536 -n 50")
    return f"{rounds} kills, resources as before: {after.get(card.ib)}"


@scenario("kill-qemu", boot="none")
def kill_qemu(lab):
    """QEMU is killed mid-transfer; the next machine works with the same server."""
    rounds = lab.rounds(1, 10)
    lab.server = lab.start_server()
    watch = None
    for number in range(rounds + 1):
        lab.guest = lab.start_guest(lab.server)
        lab.forget_card()
        start_traffic(lab.guest, lab.card)
        time.sleep(1)
        lab.guest.kill()
        time.sleep(0.5)  # the server's turn to notice
        require(lab.server.alive, "the server died with its guest")
        if number == 0:
            watch = LeakWatch(lab.server)
    return f"{rounds + 1} machines, server {watch.check()}"
