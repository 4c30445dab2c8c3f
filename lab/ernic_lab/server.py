# SPDX-License-Identifier: MIT
"""The program under test."""
import json
import os
import shutil
import signal
import stat
import subprocess
import time
from pathlib import Path

from . import paths, process

# Fixed, because names, GUIDs and the serial number come from it.
MAC = "02:00:00:00:00:01"


class ServerFailed(Exception):
    pass


class Server:
    """One build/rocm-ernic process with its socket, log and statistics file."""

    def __init__(self, run_dir, backend="loopback", binary=None, extra=(), name="server", prefix=(), control=False,
                 mac=MAC):
        self.binary = binary or os.environ.get("ERNIC_SERVER") or paths.REPO / "build/rocm-ernic"
        self.socket_dir = paths.new_socket_dir()
        self.socket = self.socket_dir / "card.sock"
        self.control = self.socket_dir / "control.sock" if control else None
        self.log = run_dir / f"{name}.log"
        self.stats_file = run_dir / f"{name}-stats.json"
        self.argv = [*prefix, self.binary, "--socket", self.socket, "--backend", backend,
                     "--mac", mac, "--stats-file", self.stats_file,
                     *(("--control", self.control) if control else ()), *extra]
        self.process = None
        self.expected_end = False  # a scenario that ends it on purpose says so

    def start(self, timeout=20):
        if not os.access(self.binary, os.X_OK):
            raise ServerFailed(f"{self.binary} is not there; run './dev build' first")
        with open(self.log, "ab") as log:
            self.process = process.start(self.argv, log)
        deadline = time.monotonic() + timeout
        while not self._listening():
            if self.process.poll() is not None:
                raise ServerFailed(f"the server ended with code {self.process.returncode}: {self.log_tail()}")
            if time.monotonic() > deadline:
                raise ServerFailed(f"no socket after {timeout} s: {self.log_tail()}")
            time.sleep(0.01)
        return self

    def _listening(self):
        try:
            return stat.S_ISSOCK(os.stat(self.socket).st_mode)
        except FileNotFoundError:
            return False

    @property
    def alive(self):
        return self.process is not None and self.process.poll() is None

    def ctl_argv(self, *words):
        """The command line of the ernicctl that belongs to this server; it must have a control socket."""
        ctl = os.environ.get("ERNIC_CTL") or Path(self.binary).parent / "tools/ernicctl"
        return [str(word) for word in (ctl, "--control", self.control, *words)]

    def ctl(self, *words):
        """What ernicctl prints; it must succeed."""
        done = subprocess.run(self.ctl_argv(*words), capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0:
            raise ServerFailed(f"ernicctl {' '.join(words)} ended with {done.returncode}: {done.stderr}")
        return done.stdout

    def ctl_json(self, *words):
        return json.loads(self.ctl("--json", *words))

    def footprint(self):
        return process.footprint(self.process.pid)

    def stats(self):
        """The statistics file as the server last wrote it; empty when it has not."""
        try:
            return json.loads(self.stats_file.read_text())
        except (FileNotFoundError, ValueError):
            return {}

    def log_tail(self, lines=15):
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def stop(self):
        """Asks politely; returns the exit code (0 is the only good one)."""
        try:
            return process.stop(self.process) if self.process else None
        finally:
            shutil.rmtree(self.socket_dir, ignore_errors=True)

    def kill(self):
        self.expected_end = True
        if self.process:
            process.stop(self.process, signal.SIGKILL)
        shutil.rmtree(self.socket_dir, ignore_errors=True)
