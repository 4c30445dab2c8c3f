# SPDX-License-Identifier: MIT
"""Two programs in one guest that talk to each other through the card."""
from .channel import CommandTimeout
from .scenario import Failure

# rdma_cm listeners have no TCP port, so both kinds of listener are looked for.
TCP_LISTENER = "ss -Hltn 'sport = :{port}' | grep -q ."
CM_LISTENER = "rdma resource show cm_id | grep -q LISTEN"


def wait_for(guest, condition, timeout=30):
    loop = f"i=0; until {condition}; do i=$((i+1)); [ $i -lt {int(timeout * 10)} ] || exit 1; sleep 0.1; done"
    return guest.run(loop, timeout + 20).ok


def run(guest, server, client, ready, timeout=120, client_guest=None):
    """Starts the server, waits until it listens, runs the client, in `client_guest` if that is another one;
    returns both outputs."""
    listener = guest.spawn(server)
    guest, server_guest = client_guest or guest, guest
    try:
        if not wait_for(server_guest, ready):
            listener.kill()
            raise Failure(f"'{server}' does not listen: {listener.out[-1500:]}")
        try:
            result = guest.run(client, timeout)
        except CommandTimeout as hang:
            raise Failure(f"{hang}\nother side: {listener.out[-1500:]}") from hang
        if not result.ok:
            raise Failure(f"'{client}' ended with {result.rc}: {result.out[-1500:]}\nother side: {listener.out[-1500:]}")
        other = listener.wait(30)
        if not other.ok:
            raise Failure(f"'{server}' ended with {other.rc}: {other.out[-1500:]}\nclient: {result.out[-1500:]}")
        return other.out, result.out
    finally:
        if listener.running:
            listener.kill()
