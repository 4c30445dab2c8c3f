# SPDX-License-Identifier: MIT
"""Starts the real server binary for the tests in this folder, and speaks just enough vfio-user to see that it serves."""

import array
import json
import os
import pathlib
import select
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("ERNIC_BINARY", str(ROOT / "build" / "rocm-ernic"))
CTL = os.environ.get("ERNIC_CTL", str(ROOT / "build" / "tools" / "ernicctl"))
TIMEOUT = 20.0  # generous: sanitizer builds on a loaded machine


def clean_environment(**changes):
    """The environment without the variables the server reads, plus `changes`."""
    environment = {k: v for k, v in os.environ.items() if k not in ("ERNIC_LOG_LEVEL", "ERNIC_CONTROL", "TMPDIR")}
    environment.update(changes)
    return environment


def run(*arguments, **changes):
    """Runs the binary to its end; for command lines that are refused or answered at once."""
    return subprocess.run([BINARY, *arguments], capture_output=True, text=True, timeout=TIMEOUT,
                          env=clean_environment(**changes), check=False)


def machine_is_busy():
    """True when others use this machine, so that elapsed time says nothing about the server."""
    return os.getloadavg()[0] > (os.cpu_count() or 1) + 0.5


class Server:
    """A running server. Use as a context manager; leaving it ends the server if the test has not."""

    def __init__(self, path, *arguments, **changes):
        self.path = str(path)
        self.begin = time.monotonic()
        self.process = subprocess.Popen([BINARY, "--socket", self.path, *arguments], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, env=clean_environment(**changes))
        self.log = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stderr.close()

    @property
    def pid(self):
        return self.process.pid

    def wait_for_log(self, text):
        """Reads standard error until `text` appears."""
        deadline = time.monotonic() + TIMEOUT
        while text.encode() not in self.log:
            ready, _, _ = select.select([self.process.stderr], [], [], max(0, deadline - time.monotonic()))
            chunk = os.read(self.process.stderr.fileno(), 65536) if ready else b""
            if not chunk:
                raise AssertionError(f"{text!r} never appeared in the log:\n{self.log.decode()}")
            self.log += chunk
        return self

    def wait_until_listening(self):
        return self.wait_for_log("listening on")

    def wait_until_ready(self):
        """Until every socket is there."""
        return self.wait_for_log("app: sandbox")

    def wait_until_connectable(self):
        """For servers that log nothing: tries until somebody answers. Returns the seconds since the start."""
        while True:
            with socket.socket(socket.AF_UNIX) as probe:
                try:
                    probe.connect(self.path)
                    return time.monotonic() - self.begin
                except (FileNotFoundError, ConnectionRefusedError):
                    if self.process.poll() is not None:
                        raise AssertionError(f"server ended:\n{self.process.stderr.read().decode()}") from None
                    if time.monotonic() - self.begin > TIMEOUT:
                        raise
            time.sleep(0.0005)

    def end(self, number=signal.SIGTERM):
        """Ends the server with a signal. Returns (exit code, seconds it took)."""
        begin = time.monotonic()
        self.process.send_signal(number)
        code = self.process.wait(TIMEOUT)
        took = time.monotonic() - begin
        self.log += self.process.stderr.read()
        return code, took

    def cpu_seconds(self):
        """Processor time of the main thread so far."""
        return int(pathlib.Path(f"/proc/{self.pid}/schedstat").read_text().split()[0]) / 1e9

    def status(self, key):
        """One field of /proc/PID/status."""
        for line in pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(key + ":"):
                return line.split(":", 1)[1].strip()
        raise AssertionError(f"no {key} in /proc/{self.pid}/status")


class Client:
    """A VMM in miniature: raw vfio-user messages over the socket."""

    VERSION, DMA_MAP, REGION_READ = 1, 2, 9
    CONFIG_REGION = 7

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))  # without a time-out: with one, a full backlog would be an error
        self.socket.settimeout(TIMEOUT)
        self.next_id = 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def call(self, command, payload, fds=()):
        """Sends one command and returns the payload of its reply."""
        message = struct.pack("<HHIII", self.next_id, command, 16 + len(payload), 0, 0) + payload
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.socket.sendmsg([message], ancillary)
        number, answered, size, flags, error = struct.unpack("<HHIII", self.receive(16))
        if (number, answered, flags & 0xF) != (self.next_id, command, 1) or error or flags & 0x20:
            raise AssertionError(f"reply id={number} command={answered} flags={flags:#x} error={error}")
        self.next_id += 1
        return self.receive(size - 16)

    def receive(self, size):
        data = b""
        while len(data) < size:
            chunk = self.socket.recv(size - len(data))
            if not chunk:
                raise ConnectionResetError("the server hung up")
            data += chunk
        return data

    def negotiate(self):
        self.call(self.VERSION, struct.pack("<HH", 0, 1) + b'{"capabilities":{"max_msg_fds":8}}\0')
        return self

    def map_memory(self, address, size):
        """Gives the server guest memory; returns the file descriptor of it."""
        fd = os.memfd_create("guest", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(fd, size)
        self.call(self.DMA_MAP, struct.pack("<IIQQQ", 32, 3, 0, address, size), [fd])
        return fd

    def config(self, offset, size):
        reply = self.call(self.REGION_READ, struct.pack("<QII", offset, self.CONFIG_REGION, size))
        return reply[16:]

    def identity(self):
        """(vendor, device) of the card."""
        return struct.unpack("<HH", self.config(0, 4))


class Control:
    """A client of the control socket that speaks the protocol by hand."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.socket.settimeout(TIMEOUT)
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data, fds=()):
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        return self.socket.sendmsg([data], ancillary)

    def line(self):
        while b"\n" not in self.buffer:
            chunk = self.socket.recv(1 << 16)
            if not chunk:
                raise ConnectionResetError("the server hung up")
            self.buffer += chunk
        line, self.buffer = self.buffer.split(b"\n", 1)
        return json.loads(line)

    def ask(self, command, fds=(), **arguments):
        """The whole answer to one request."""
        self.send(json.dumps({"id": 1, "command": command, "arguments": arguments}).encode() + b"\n", fds)
        return self.line()

    def result(self, command, fds=(), **arguments):
        answer = self.ask(command, fds, **arguments)
        if answer.get("ok") is not True or answer.get("id") != 1:
            raise AssertionError(f"{command}: {answer}")
        return answer["result"]

    def error(self, command, fds=(), **arguments):
        answer = self.ask(command, fds, **arguments)
        if answer.get("ok") is not False:
            raise AssertionError(f"{command} succeeds: {answer}")
        return answer["error"]["code"]


class ServerTest(unittest.TestCase):
    """A test with a directory of its own."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="ernic-cli-")
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.socket = self.directory / "ernic.sock"

    def start(self, *arguments, **changes):
        """A server that listens; it ends with the test."""
        server = Server(self.socket, *arguments, **changes)
        self.addCleanup(server.__exit__)
        return server.wait_until_listening()

    def start_with_control(self, *arguments, **changes):
        """A server with a control socket; it ends with the test."""
        self.control = self.directory / "control.sock"
        server = Server(self.socket, "--control", str(self.control), *arguments, **changes)
        self.addCleanup(server.__exit__)
        return server.wait_until_ready()

    def instrumented(self):
        """True for sanitizer and coverage builds, which run slowly and without the sandbox."""
        with Server(self.directory / "probe.sock", "--sandbox", "on") as probe:
            probe.wait_until_listening()
            probe.end()
            return b"sandbox off: this build" in probe.log
