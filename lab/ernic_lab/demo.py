# SPDX-License-Identifier: MIT
"""The tour: a stock guest finds the card and does RDMA through it."""
import sys
import threading
import time

from . import image, pairs, paths, perftest, terminal
from .lab import Lab

_STEP_WIDTH = 34


class Steps:
    """One line per step with elapsed time; a long step shows that it lives."""

    def __init__(self):
        self.begin = time.monotonic()

    def step(self, label, action):
        done = threading.Event()
        start = time.monotonic()
        ticker = threading.Thread(target=self._tick, args=(label, start, done), daemon=True)
        ticker.start()
        try:
            result = action()
        finally:
            done.set()
            ticker.join()
        print(f"{self._clear()}[{time.monotonic() - self.begin:5.1f} s] {label:<{_STEP_WIDTH}} "
              f"{time.monotonic() - start:5.1f} s", flush=True)
        return result

    @staticmethod
    def _clear():
        return "\r\033[K" if sys.stdout.isatty() else ""

    def _tick(self, label, start, done):
        # On a terminal the line is redrawn; in a log a line every ten seconds is enough.
        interval = 0.5 if sys.stdout.isatty() else 10
        while not done.wait(interval):
            text = f"          {label} ... {time.monotonic() - start:.0f} s"
            print(f"{self._clear()}{text}", end="" if sys.stdout.isatty() else "\n", flush=True)


def show(text, indent="    "):
    for line in text.rstrip().splitlines():
        print(indent + line, flush=True)


def run(shell=False, card=True, tour=True):
    steps = Steps()
    parts = steps.step("guest image", image.ensure)
    run_dir = paths.new_run_dir("demo")
    lab = Lab(parts, run_dir)
    try:
        if card:
            lab.server = steps.step("start rocm-ernic (loopback)", lab.start_server)
            show(f"listening on {lab.server.socket}")
        lab.guest = steps.step("boot a Debian guest", lambda: lab.start_guest(lab.server))
        show(lab.guest.check("uname -srm").strip())
        if card and tour:
            _tour(steps, lab)
        if shell:
            print("\nA shell in the guest; leave it with 'exit'. The shared folder is /lab.\n", flush=True)
            terminal.attach(lab.guest)
        return 0
    finally:
        lab.close()
        print(f"Logs: {run_dir}", flush=True)


def _tour(steps, lab):
    guest = lab.guest
    show(guest.check("lspci -nn -d 1dd8:"))
    card = steps.step("bring the interface up", lambda: lab.card)
    show(guest.check(f"ip -br link show {card.net}; rdma link show"))
    show(steps.step("ibv_devinfo", lambda: guest.check(f"ibv_devinfo -d {card.ib}")))

    pingpong = f"ibv_rc_pingpong -d {card.ib} -g {card.gid} -n 1000"
    show(steps.step("ibv_rc_pingpong", lambda: pairs.run(
        guest, pingpong, f"{pingpong} localhost", pairs.TCP_LISTENER.format(port=18515)))[1])
    rping = "rping -{side} -a {address} -C 10 -S 64 -v"
    out = steps.step("rping", lambda: pairs.run(
        guest, rping.format(side="s", address=card.address), rping.format(side="c", address=card.address),
        pairs.CM_LISTENER))[1]
    show("\n".join(out.splitlines()[-2:]))

    rows, _ = steps.step("ib_write_bw -a", lambda: perftest.run(guest, "ib_write_bw", card.ib, card.gid, "-a -n 200"))
    show(f"{'bytes':>10} {'MB/s average':>14} {'messages/s':>12}")
    for row in rows:
        show(f"{row.size:>10} {row.average_mbs:>14.1f} {row.values[2] * 1e6:>12.0f}")
