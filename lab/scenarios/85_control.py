# SPDX-License-Identifier: MIT
"""An operator at the control socket, while a guest runs."""
import json
import subprocess
import time

from ernic_lab import pairs
from ernic_lab.scenario import require, scenario

LISTENS = pairs.TCP_LISTENER.format(port=18515)
# Guesses of Wireshark that take payload for something else; see docs/capture.md.
GUESSES = ("--disable-protocol", "rpcordma", "--disable-protocol", "infiniband.eoib")


def pingpong(lab):
    command = f"ibv_rc_pingpong -d {lab.card.ib} -g {lab.card.gid} -n 100 -s 8192"
    pairs.run(lab.guest, command, f"{command} localhost", LISTENS)


def tshark(*words):
    done = subprocess.run(["tshark", *words, *GUESSES], capture_output=True, text=True, timeout=120, check=False)
    require(done.returncode == 0, f"tshark: {done.stderr}")
    return done.stdout.splitlines()


def rdma_state(guest, ib, wanted):
    return pairs.wait_for(guest, f"rdma link show {ib}/1 | grep -q 'state {wanted}'", 20)


def carrier(guest, net, wanted):
    return pairs.wait_for(guest, f'[ "$(cat /sys/class/net/{net}/carrier)" = {wanted} ]', 20)


@scenario("control-ernicctl", boot="none")
def ernicctl(lab):
    """ernicctl shows the card, switches its link, and captures the guest's RDMA while it runs."""
    lab.server = server = lab.start_server(control=True)
    lab.guest = guest = lab.start_guest(server)
    card = lab.card

    status = server.ctl_json("status")
    require(status["connected"] and status["driver"] and status["link"]["up"], f"{status}")
    require("guest driver    running" in server.ctl("status"), server.ctl("status"))
    stats = server.ctl_json("stats")
    require(stats["vfio_user"]["messages"] > 100 and stats["queue_pairs"], "statistics are empty")
    require(list(server.ctl_json("stats", "--match", "rdma.")) == ["rdma"], "--match shows other numbers")
    ports = {port["name"]: port for port in server.ctl_json("ports")["ports"]}
    require(ports["guest"]["link"] and ports["guest"]["connected"], f"{ports}")
    macs = server.ctl_json("macs")["entries"]
    require(any(entry["mac"] == status["mac"] and entry["port"] == "guest" for entry in macs), f"{macs}")

    server.ctl("link", "down")
    require(carrier(guest, card.net, 0), "the link is down and the guest does not see it")
    require(rdma_state(guest, card.ib, "DOWN"), guest.run(f"rdma link show {card.ib}/1").out)
    require(server.ctl_json("status")["link"] == {"up": False, "down_by": ["operator"]}, server.ctl("status"))
    server.ctl("link", "up")
    require(carrier(guest, card.net, 1), "the link is up again and the guest does not see it")
    require(rdma_state(guest, card.ib, "ACTIVE"), guest.run(f"rdma link show {card.ib}/1").out)

    lab.forget_card()
    faults = faults_at_run_time(lab, server)
    file = lab.run_dir / "control.pcapng"
    server.ctl("pcap", "start", str(file), "--snaplen", "256")
    pingpong(lab)
    counts = server.ctl_json("pcap", "stop")
    require(counts["dropped"] == 0, f"{counts}")
    packets = tshark("-r", str(file), "-T", "fields", "-e", "infiniband.bth.opcode")
    require(len(packets) == counts["packets"], f"{len(packets)} packets in the file, {counts} counted")
    roce = sum(1 for packet in packets if packet)
    require(roce >= 2 * 100 * 8, f"{roce} RoCE v2 packets for 200 messages of 8 KiB")
    bad = tshark("-r", str(file), "-Y", "_ws.malformed")
    require(not bad, f"tshark complains: {bad[:3]}")

    live = live_capture(lab, server)
    require(server.alive, "the server ended")
    return f"link down and up; {faults}; {roce} RoCE v2 packets in a file; {live} live"


def faults_at_run_time(lab, server):
    """A fault is added while the guest runs, does its work, and is gone when it is cleared."""
    refused = subprocess.run(server.ctl_argv("fault", "add", "dorp"), capture_output=True, text=True, timeout=20,
                             check=False)
    require(refused.returncode == 1 and "drop" in refused.stderr, f"{refused.returncode}: {refused.stderr}")
    number = server.ctl_json("fault", "add", "drop,opcode=send")["id"]
    command = f"ibv_rc_pingpong -d {lab.card.ib} -g {lab.card.gid} -n 10"
    waiting = lab.guest.spawn(command)
    require(pairs.wait_for(lab.guest, LISTENS), "ibv_rc_pingpong does not listen")
    broken = lab.guest.run(f"{command} localhost", 60)
    waiting.kill()
    require(not broken.ok and "transport retry counter exceeded" in broken.out, f"with every SEND lost: {broken.out}")
    (fault,) = server.ctl_json("fault", "list")["faults"]
    require(fault["id"] == number and fault["hits"] > 1, f"{fault}")
    server.ctl("fault", "clear", "all")
    require(server.ctl_json("fault", "list")["faults"] == [], "the fault is still there")
    pingpong(lab)
    return f"'drop,opcode=send' hit {fault['hits']} times, then cleared"


def live_capture(lab, server):
    """`ernicctl pcap start - | tshark -i -`; the capture ends when tshark has seen enough."""
    ctl = subprocess.Popen(server.ctl_argv("pcap", "start", "-"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    wireshark = subprocess.Popen(["tshark", "-i", "-", "-c", "50", "-T", "json", *GUESSES], stdin=ctl.stdout,
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    ctl.stdout.close()
    try:
        require(ctl.wait(60) == 0, "ernicctl failed")
        pingpong(lab)
        seen = json.loads(wireshark.communicate(timeout=60)[0])
    finally:
        wireshark.kill()
        wireshark.wait()
    require(len(seen) == 50, f"tshark saw {len(seen)} packets")
    deadline = time.monotonic() + 20
    while server.ctl_json("status")["capture"] is not None:
        require(time.monotonic() < deadline, "the capture goes on without a reader")
        time.sleep(0.1)
    return len(seen)
