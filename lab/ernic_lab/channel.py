# SPDX-License-Identifier: MIT
"""Host end of the guest's command agent (the guest end and the protocol: lab/guest/agent.c)."""
import re
import threading
import time
from dataclasses import dataclass


class GuestGone(Exception):
    """The guest ended or rebooted while something waited for it."""


class CommandTimeout(Exception):
    pass


@dataclass
class Result:
    rc: int
    out: str

    @property
    def ok(self):
        return self.rc == 0


class Job:
    """A command that runs in the guest."""

    def __init__(self, channel, number, text, on_output):
        self.channel, self.number, self.text, self.on_output = channel, number, text, on_output
        self.out, self.rc, self.lost = "", None, False

    def wait(self, timeout):
        """Returns the Result; kills the command and raises when it takes too long."""
        deadline = time.monotonic() + timeout
        with self.channel.changed:
            while self.rc is None and not self.lost:
                left = deadline - time.monotonic()
                if left <= 0:
                    break
                self.channel.changed.wait(left)
        if self.lost:
            raise GuestGone(f"the guest went away during: {self.text}")
        if self.rc is None:
            self.kill()
            raise CommandTimeout(f"no end after {timeout:.0f} s: {self.text}\n{self.out[-2000:]}")
        return Result(self.rc, self.out)

    def kill(self, signum=9):
        self.channel.send(f"kill {self.number} {signum}")

    @property
    def running(self):
        return self.rc is None and not self.lost


class Channel:
    def __init__(self, sock):
        self.sock = sock
        self.changed = threading.Condition()
        self.jobs, self.next_number = {}, 1
        self.boot_id, self.closed = None, False
        threading.Thread(target=self._read, daemon=True).start()

    def send(self, line):
        try:
            self.sock.sendall(line.encode() + b"\n")
        except OSError as error:
            raise GuestGone("the guest's command channel is closed") from error

    def spawn(self, text, on_output=None):
        with self.changed:
            job = Job(self, self.next_number, text, on_output)
            self.next_number += 1
            self.jobs[job.number] = job
        escaped = text.replace("\\", "\\\\").replace("\n", "\\n")
        self.send(f"run {job.number} {escaped}")
        return job

    def wait_hello(self, timeout, other_than=None):
        """Waits for the agent of a boot that is not 'other_than'; returns its boot id."""
        deadline = time.monotonic() + timeout
        with self.changed:
            while self.boot_id in (None, other_than):
                left = deadline - time.monotonic()
                if self.closed:
                    raise GuestGone("QEMU ended before the guest was up")
                if left <= 0:
                    raise CommandTimeout(f"the guest's agent did not report within {timeout:.0f} s")
                self.changed.wait(left)
            return self.boot_id

    def _read(self):
        pending = b""
        while True:
            try:
                data = self.sock.recv(65536)
            except OSError:
                data = b""
            with self.changed:
                if not data:
                    self.closed = True
                    self._lose_jobs()
                    return
                *lines, pending = (pending + data).split(b"\n")
                for line in lines:
                    self._handle(line)
                self.changed.notify_all()

    def _handle(self, line):
        word, _, rest = line.partition(b" ")
        if word == b"hello":
            self.boot_id = rest.decode()
            self._lose_jobs()
            return
        number, _, rest = rest.partition(b" ")
        job = self.jobs.get(int(number)) if number.isdigit() else None
        if job is None:
            return  # an empty line, one cut by a reboot, or a command nobody waits for any more
        if word == b"out":
            text = re.sub(rb"\\(.)", lambda m: b"\n" if m[1] == b"n" else m[1], rest)
            text = text.decode("utf-8", "replace")
            job.out += text
            if job.on_output:
                job.on_output(text)
        elif word == b"end":
            job.rc = int(rest)
            del self.jobs[job.number]

    def _lose_jobs(self):
        for job in self.jobs.values():
            job.lost = True
        self.jobs.clear()
        self.changed.notify_all()
