# SPDX-License-Identifier: MIT
"""Two processes in one guest talk through the card with the stock examples and tools."""
from ernic_lab import pairs, perftest
from ernic_lab.scenario import require, scenario

LISTENS = pairs.TCP_LISTENER.format(port=perftest.PORT)


def both(lab, command, timeout=180):
    return pairs.run(lab.guest, command, f"{command} localhost", LISTENS, timeout)[1]


@scenario("verbs-rc-pingpong")
def rc_pingpong(lab):
    """ibv_rc_pingpong polls, then sleeps on events, then checks what it received."""
    base = f"ibv_rc_pingpong -d {lab.card.ib} -g {lab.card.gid} -n 1000"
    lines = [both(lab, f"{base} {options}".strip()).splitlines()[-1] for options in ("", "-e", "-c")]
    return "; ".join(lines)


@scenario("verbs-ud-pingpong")
def ud_pingpong(lab):
    """ibv_ud_pingpong over datagrams."""
    return both(lab, f"ibv_ud_pingpong -d {lab.card.ib} -g {lab.card.gid} -n 1000 -s 1024").splitlines()[-1]


def cm_pair(lab, server, client, timeout=300):
    return pairs.run(lab.guest, server, client, pairs.CM_LISTENER, timeout)


@scenario("cm-rping")
def rping(lab):
    """rping: 1000 verified rounds over an rdma_cm connection."""
    a = lab.card.address
    out = cm_pair(lab, f"rping -s -a {a} -C 1000 -S 4096 -V", f"rping -c -a {a} -C 1000 -S 4096 -V -v")[1]
    rounds = sum(line.startswith("ping data") for line in out.splitlines())
    require(rounds == 1000, f"{rounds} rounds instead of 1000")
    return "1000 rounds verified"


@scenario("cm-ucmatose")
def ucmatose(lab):
    """ucmatose: 100 connections at once, with data."""
    a = lab.card.address
    cm_pair(lab, f"ucmatose -b {a} -c 100 -C 10", f"ucmatose -s {a} -c 100 -C 10")
    return "100 connections, 10 messages each"


@scenario("cm-udaddy")
def udaddy(lab):
    """udaddy: address resolution and datagrams through rdma_cm."""
    a = lab.card.address
    cm_pair(lab, f"udaddy -b {a} -c 10 -C 10", f"udaddy -s {a} -c 10 -C 10")
    return "10 endpoints, 10 messages each"


@scenario("cm-rdma-server")
def rdma_server(lab):
    """rdma_server and rdma_client, the smallest rdma_cm programs."""
    out = cm_pair(lab, "rdma_server", f"rdma_client -s {lab.card.address}")[1]
    require("end 0" in out, out)
    return out.splitlines()[-1]
