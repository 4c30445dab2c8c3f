# SPDX-License-Identifier: MIT
"""The guest's interface, and TCP between it and the near namespace."""
import json
import time

from . import namespaces, pairs
from .namespaces import NEAR
from .scenario import require


def guest_net(guest):
    return guest.check("for d in /sys/class/net/*; do [ \"$(cat $d/device/vendor 2>/dev/null)\" = 0x1dd8 ] "
                       "&& echo ${d##*/}; done; true").split()[0]


def carrier(guest, net, wanted):
    return pairs.wait_for(guest, f'[ "$(cat /sys/class/net/{net}/carrier)" = {wanted} ]', 10)


def iperf(guest, wire, options=""):
    """Mbit/s of iperf3 between the guest and the near namespace; the guest is the client."""
    server = wire.spawn(wire.near, "iperf3", "-s", "-1", "-B", NEAR)
    try:
        deadline = time.monotonic() + 10
        while not namespaces.run("ip", "netns", "exec", wire.near, "ss", "-Hltn", "sport = :5201"):
            require(time.monotonic() < deadline and server.poll() is None, "iperf3 does not listen")
            time.sleep(0.1)
        result = json.loads(guest.check(f"iperf3 -J -t 3 -c {NEAR} {options}", 40))
        return result["end"]["sum_received"]["bits_per_second"] / 1e6
    finally:
        server.kill()
        server.wait()
