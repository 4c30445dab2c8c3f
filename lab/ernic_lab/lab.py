# SPDX-License-Identifier: MIT
"""What a scenario is handed: a server, a guest, and the means to make more of them."""
import shutil

from . import card, programs
from .guest import Guest
from .scenario import Failure
from .server import Server

# Growth that a long loop may show without being a leak: allocator slack, not one unit per round.
RSS_SLACK_KIB = 4096
FDS_SLACK = 0
MAPS_SLACK = 4


class Lab:
    def __init__(self, image, run_dir, full=False, backend="loopback", share=None):
        self.image, self.run_dir, self.full, self.backend = image, run_dir, full, backend
        self.share = share or programs.share()
        self.server = self.guest = None
        self._owned, self._serial = [], 0
        self._card = None

    def rounds(self, quick, full):
        return full if self.full else quick

    def start_server(self, **kwargs):
        self._serial += 1
        server = Server(self.run_dir, name=f"server{self._serial}", **{"backend": self.backend, **kwargs})
        self._owned.append(server)
        return server.start()

    def start_guest(self, server=None, **kwargs):
        self._serial += 1
        guest = Guest(self.image, self.run_dir, server, share=self.share, name=f"guest{self._serial}", **kwargs)
        self._owned.append(guest)
        return guest.boot()

    def open(self, with_card):
        """The pair most scenarios use."""
        self.server = self.start_server() if with_card else None
        self.guest = self.start_guest(self.server)
        self._card = None

    @property
    def card(self):
        """The card as the guest sees it, brought up on first use."""
        if self._card is None:
            self._card = card.bring_up(self.guest)
        return self._card

    def forget_card(self):
        """After a reset or reboot names and GIDs are looked up anew."""
        self._card = None

    def share_kernel(self):
        """Puts kernel and initrd where the guest can read them, for kexec."""
        shutil.copyfile(self.image.guest / "vmlinuz", self.share / "vmlinuz")
        shutil.copyfile(self.image.initrd, self.share / "initrd")

    def guests(self):
        return [item for item in self._owned if isinstance(item, Guest)]

    def close(self):
        """Ends everything; a server that did not end cleanly is an error of its own."""
        problems = []
        for item in reversed(self._owned):
            if isinstance(item, Guest):
                item.kill()
        for item in self._owned:
            if isinstance(item, Server):
                code = item.stop()
                if code not in (0, None) and not item.expected_end:
                    problems.append(f"server ended with code {code}: {item.log_tail(5)}")
        self._owned.clear()
        self.server = self.guest = self._card = None
        return problems


class LeakWatch:
    """Compares the server's footprint before and after a loop."""

    def __init__(self, server):
        self.server = server
        self.before = server.footprint()

    def check(self):
        after = self.server.footprint()
        if after.fds > self.before.fds + FDS_SLACK or after.maps > self.before.maps + MAPS_SLACK \
                or after.rss_kib > self.before.rss_kib + RSS_SLACK_KIB:
            raise Failure(f"the server grew: before {self.before}, after {after}")
        return f"{self.before} -> {after}"
