# SPDX-License-Identifier: MIT
"""Finds and brings up the card inside a guest, whatever udev named its parts."""
from dataclasses import dataclass

from .scenario import Failure

ADDRESS = "10.77.0.1"

# Prints "key value" lines. A RoCE v2 GID of the IPv4 address is what rdma_cm and perftest use.
_BRING_UP = r"""
set -e
for d in /sys/bus/pci/devices/*; do
  [ "$(cat $d/vendor)" = 0x1dd8 ] && [ "$(cat $d/class)" = 0x020000 ] && pci=${d##*/}
done
[ -n "$pci" ] || { echo "error no card on the PCI bus"; exit 0; }
echo "pci $pci"
net=$(ls /sys/bus/pci/devices/$pci/net 2>/dev/null | head -n1)
[ -n "$net" ] || { echo "error the card has no network interface"; exit 0; }
echo "net $net"
ip link set $net up
ip addr replace ADDRESS/24 dev $net
for i in $(seq 100); do
  [ "$(cat /sys/class/net/$net/carrier 2>/dev/null)" = 1 ] && break; sleep 0.1
done
echo "carrier $(cat /sys/class/net/$net/carrier 2>/dev/null)"
for d in /sys/class/infiniband/*; do
  [ "$(readlink -f $d/device)" = "$(readlink -f /sys/bus/pci/devices/$pci)" ] && ib=${d##*/}
done
[ -n "$ib" ] || { echo "error the card has no RDMA device"; exit 0; }
echo "ib $ib"
for i in $(seq 100); do
  for g in /sys/class/infiniband/$ib/ports/1/gids/*; do
    n=${g##*/}
    case $(cat $g 2>/dev/null) in GID) ;; *) continue;; esac
    [ "$(cat /sys/class/infiniband/$ib/ports/1/gid_attrs/types/$n 2>/dev/null)" = "RoCE v2" ] || continue
    echo "gid $n"; exit 0
  done
  sleep 0.1
done
echo "error no RoCE v2 GID for ADDRESS"
"""


@dataclass
class Card:
    pci: str
    net: str
    ib: str
    gid: int
    address: str = ADDRESS


def _ipv4_gid(address):
    a, b, c, d = (int(part) for part in address.split("."))
    return f"0000:0000:0000:0000:0000:ffff:{a:02x}{b:02x}:{c:02x}{d:02x}"


def bring_up(guest, address=ADDRESS):
    script = _BRING_UP.replace("ADDRESS", address).replace("GID)", f"{_ipv4_gid(address)})")
    facts = dict(line.split(" ", 1) for line in guest.check(script, 120).splitlines() if " " in line)
    if "error" in facts or "gid" not in facts:
        raise Failure(f"{facts.get('error', 'bring-up failed')} (found: {facts})")
    return Card(facts["pci"], facts["net"], facts["ib"], int(facts["gid"]), address)
