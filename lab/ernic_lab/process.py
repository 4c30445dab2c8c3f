# SPDX-License-Identifier: MIT
"""Child processes that cannot outlive the lab, and what /proc tells about them."""
import ctypes
import os
import signal
import subprocess
from dataclasses import dataclass

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def die_with_parent(signum=signal.SIGKILL):
    """The kernel sends this process a signal when the one that started it ends, however it ends."""
    _libc.prctl(_PR_SET_PDEATHSIG, signum)


def start(argv, log, **kwargs):
    """Starts argv with output to a log file. Call it from the main thread: the kernel ties the
    child's life to the thread that started it. Its own session keeps Ctrl-C for us to handle."""
    return subprocess.Popen(
        [str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
        start_new_session=True, preexec_fn=die_with_parent, **kwargs)


def stop(process, signum=signal.SIGTERM, timeout=10):
    """Ends a process; returns its exit code. It is killed when it does not obey."""
    if process.poll() is None:
        process.send_signal(signum)
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    return process.returncode


@dataclass
class Footprint:
    """What leaks show up in."""
    rss_kib: int
    fds: int
    maps: int

    def __str__(self):
        return f"rss={self.rss_kib}KiB fds={self.fds} maps={self.maps}"


def footprint(pid):
    rss = {}
    with open(f"/proc/{pid}/status") as file:
        for line in file:
            key, _, value = line.partition(":")
            if key in ("RssAnon", "RssFile"):
                rss[key] = int(value.split()[0])
    # RssShmem is guest memory, which is the guest's to grow.
    with open(f"/proc/{pid}/maps") as file:
        maps = sum(1 for _ in file)
    return Footprint(sum(rss.values()), len(os.listdir(f"/proc/{pid}/fd")), maps)
