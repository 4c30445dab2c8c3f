# SPDX-License-Identifier: MIT
"""Soft-RoCE in the guest: the stock software RDMA device our card is compared with."""
from dataclasses import dataclass

from . import pairs
from .traffic import guest_net

ADDRESS = "10.78.0.1"

# On a dummy interface, so that it has nothing to do with our card.
_ADD = f"""
set -e
modprobe -a dummy rdma_rxe
ip link show rxenet >/dev/null 2>&1 || ip link add rxenet type dummy
ip link set rxenet mtu 4200 up
ip addr replace {ADDRESS}/24 dev rxenet
[ -e /sys/class/infiniband/rxe0 ] || rdma link add rxe0 type rxe netdev rxenet
modprobe -a ib_uverbs rdma_ucm
udevadm settle
for d in /sys/class/infiniband/*; do [ "$(cat $d/parent 2>/dev/null)" = rxenet ] && echo ${{d##*/}}; done
"""


_ADD_ON = """
set -e
modprobe -a rdma_rxe ib_uverbs
ip link set INTERFACE up
ip addr replace ADDRESS/24 dev INTERFACE
rdma link add rxe0 type rxe netdev INTERFACE
udevadm settle
for d in /sys/class/infiniband/*; do [ "$(cat $d/parent 2>/dev/null)" = INTERFACE ] && ib=${d##*/}; done
hex=$(printf '%02x%02x:%02x%02x' $(echo ADDRESS | tr . ' '))
for i in $(seq 50); do
  g=$(grep -l ffff:$hex /sys/class/infiniband/$ib/ports/1/gids/* 2>/dev/null | head -1)
  [ -n "$g" ] && break; sleep 0.1
done
echo $ib ${g##*/}
"""


@dataclass
class SoftRoce:
    ib: str
    gid: int
    address: str = ADDRESS


def add(guest):
    ib = guest.check(_ADD).split()[-1]
    gids = guest.check(f"grep -l ffff:0a4e:0001 /sys/class/infiniband/{ib}/ports/1/gids/* 2>/dev/null || true")
    return SoftRoce(ib, int(gids.split()[0].rsplit("/", 1)[1]))


def add_on(guest, driver, address):
    """The same on the network interface of that driver, with that address: for two guests on one network."""
    script = _ADD_ON.replace("INTERFACE", guest_net(guest, driver)).replace("ADDRESS", address)
    ib, gid = guest.check(script).split()[-2:]
    return SoftRoce(ib, int(gid), address)


def remove(guest):
    guest.run("rdma link delete rxe0; ip link delete rxenet; modprobe -r rdma_rxe")


def pingpong(guest, device):
    command = f"ibv_rc_pingpong -d {device.ib} -g {device.gid} -n 200"
    return pairs.run(guest, command, f"{command} localhost", pairs.TCP_LISTENER.format(port=18515))[1]
