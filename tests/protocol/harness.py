# SPDX-License-Identifier: MIT
"""Starts the real server and speaks vfio-user to it in raw bytes.

Every message is packed here by hand from the protocol text, never from the server's own headers, so that a mistake in
those cannot hide. One server per test class; each test gets a fresh client, and after each test the server must have
as many open files as before it.
"""

import array
import collections
import errno
import fcntl
import json
import os
import pathlib
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import termios
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SERVER = os.environ.get("ERNIC_SERVER", str(ROOT / "build" / "rocm-ernic"))
TIMEOUT = 20.0  # generous: sanitizer builds on a loaded machine

# Commands.
VERSION, DMA_MAP, DMA_UNMAP, GET_INFO, GET_REGION_INFO, GET_REGION_IO_FDS = 1, 2, 3, 4, 5, 6
GET_IRQ_INFO, SET_IRQS, REGION_READ, REGION_WRITE, DMA_READ, DMA_WRITE = 7, 8, 9, 10, 11, 12
DEVICE_RESET, DIRTY_PAGES, REGION_WRITE_MULTI, DEVICE_FEATURE, MIG_READ, MIG_WRITE = 13, 14, 15, 16, 17, 18

# Header flags.
REPLY, NO_REPLY, ERROR = 0x01, 0x10, 0x20

# Regions and interrupts.
BAR0, BAR2, ROM, CONFIG, VGA = 0, 2, 6, 7, 8
BAR0_SIZE = 0x10000
INTX, MSI, MSIX, ERR, REQ = 0, 1, 2, 3, 4

# DMA_MAP flags.
READ, WRITE = 1, 2

PAGE = 4096
MAX_TRANSFER = 1 << 20
QEMU_CAPABILITIES = {"capabilities": {
    "migration": {"max_bitmap_size": 268435456, "pgsize": 4096}, "max_msg_fds": 16, "max_data_xfer_size": 1048576,
    "max_dma_maps": 65535, "pgsizes": 4096, "write_multiple": True}}

Message = collections.namedtuple("Message", "id command size flags error payload fds")


def header(command, size, ident=1, flags=0, error=0):
    return struct.pack("<HHIII", ident, command, size, flags, error)


def message(command, payload=b"", ident=1, flags=0):
    return header(command, 16 + len(payload), ident, flags) + payload


def version_payload(capabilities=None, major=0, minor=0, raw=None):
    """`raw` bytes replace the JSON text and its NUL."""
    text = raw if raw is not None else json.dumps(capabilities or QEMU_CAPABILITIES).encode() + b"\0"
    return struct.pack("<HH", major, minor) + text


def map_payload(iova, size, offset=0, flags=READ | WRITE, argsz=32):
    return struct.pack("<IIQQQ", argsz, flags, offset, iova, size)


def unmap_payload(iova, size, flags=0, argsz=24):
    return struct.pack("<IIQQ", argsz, flags, iova, size)


def irqs_payload(flags, index, start, count, data=b"", argsz=20):
    return struct.pack("<IIIII", argsz, flags, index, start, count) + data


def access_payload(offset, region, count, data=b""):
    return struct.pack("<QII", offset & (2**64 - 1), region, count) + data


def multi_entry(offset, region, count, data=b""):
    return struct.pack("<QII8s", offset, region, count, data)


def memory(size=0x10000, fill=b""):
    """A memfd like a VM's RAM."""
    fd = os.memfd_create("ram", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    if fill:
        os.pwrite(fd, fill, 0)
    return fd


def event(value=0):
    return os.eventfd(value, os.EFD_NONBLOCK | os.EFD_CLOEXEC)


def events_of(fd):
    """What an eventfd has counted since the last look."""
    try:
        return os.eventfd_read(fd)
    except BlockingIOError:
        return 0


class Server:
    """A running server with a private socket."""

    def __init__(self, *arguments, statistics=False):
        self.folder = tempfile.mkdtemp(prefix="ernic-protocol-")
        self.path = os.path.join(self.folder, "card.sock")
        self.stats_path = os.path.join(self.folder, "stats.json")
        command = [SERVER, "--socket", self.path, "--backend", "loopback", "--mac", "02:00:00:00:00:01", *arguments]
        if statistics:
            command += ["--stats-file", self.stats_path]
        self.log = open(os.path.join(self.folder, "log"), "w+b")
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log,
                                        env={k: v for k, v in os.environ.items() if k != "ERNIC_LOG_LEVEL"})
        deadline = time.monotonic() + TIMEOUT
        while True:
            try:
                Client(self).close()
                return
            except (FileNotFoundError, ConnectionRefusedError):
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise AssertionError(f"the server does not start:\n{self.log_text()}") from None
                time.sleep(0.002)

    @property
    def pid(self):
        return self.process.pid

    def log_text(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    def fds(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def mappings(self):
        """Mappings of memfds named `ram`."""
        return pathlib.Path(f"/proc/{self.pid}/maps").read_text(encoding="utf-8").count("memfd:ram")

    def resident(self):
        """Private resident memory in bytes; always 0 under a sanitizer, which keeps freed memory on purpose."""
        numbers = {}
        for line in pathlib.Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if value.strip().endswith(" kB"):
                numbers[name] = int(value.split()[0]) * 1024
        shadow_memory = numbers["VmSize"] > 1 << 40
        return 0 if shadow_memory else numbers["RssAnon"]

    def alive(self):
        return self.process.poll() is None

    def stop(self):
        """Ends the server in good order; returns its exit code and, if asked for, its statistics."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(TIMEOUT)
        statistics = None
        if os.path.exists(self.stats_path):
            statistics = json.loads(pathlib.Path(self.stats_path).read_text(encoding="utf-8"))
        return code, statistics

    def destroy(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class Client:
    """The VMM's side of one connection."""

    def __init__(self, server):
        self.socket = socket.socket(socket.AF_UNIX)
        self.buffer = b""
        self.next_id = 100
        try:
            self.socket.connect(server.path)  # blocking: a time-out would make a full backlog an error
        except BaseException:
            self.socket.close()
            raise
        self.socket.settimeout(TIMEOUT)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data, fds=()):
        """One sendmsg for the beginning (with the descriptors), more if the kernel takes only a part."""
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        sent = self.socket.sendmsg([data], ancillary)
        if sent < len(data):
            self.socket.sendall(data[sent:])

    def drained(self):
        """Waits until the server has taken everything out of the socket."""
        deadline = time.monotonic() + TIMEOUT
        while struct.unpack("i", fcntl.ioctl(self.socket, termios.TIOCOUTQ, bytes(4)))[0]:
            if time.monotonic() > deadline:
                raise AssertionError("the server does not read")

    def _fill(self, size):
        while len(self.buffer) < size:
            part = self.socket.recv(1 << 16)
            if not part:
                raise EOFError
            self.buffer += part

    def receive(self):
        """The next message. EOFError when the server has closed the connection."""
        self._fill(16)
        ident, command, size, flags, error = struct.unpack("<HHIII", self.buffer[:16])
        self._fill(size)
        payload, self.buffer = self.buffer[16:size], self.buffer[size:]
        return Message(ident, command, size, flags, error, payload, [])

    def request(self, command, payload=b"", fds=(), flags=0):
        """One command and its reply, whose frame is checked here."""
        self.next_id = (self.next_id + 1) & 0xffff
        self.send(message(command, payload, self.next_id, flags), fds)
        reply = self.receive()
        if (reply.id, reply.command) != (self.next_id, command) or reply.flags & ~ERROR != REPLY:
            raise AssertionError(f"asked {command} with id {self.next_id}, got {reply}")
        if reply.flags & ERROR and (reply.size != 16 or reply.error == 0):
            raise AssertionError(f"malformed error reply {reply}")
        return reply

    def negotiate(self, capabilities=None):
        reply = self.request(VERSION, version_payload(capabilities))
        if reply.flags & ERROR:
            raise AssertionError(f"VERSION refused: {reply}")
        return self

    def error(self, command, payload=b"", fds=(), flags=0):
        """The errno of the reply, 0 for success."""
        return self.request(command, payload, fds, flags).error

    def sync(self):
        """Returns when everything sent before has been executed."""
        assert self.error(GET_INFO, struct.pack("<4I", 16, 0, 0, 0)) == 0

    def read(self, region, offset, count):
        reply = self.request(REGION_READ, access_payload(offset, region, count))
        if reply.error:
            raise OSError(reply.error, "REGION_READ refused")
        return reply.payload[16:]

    def write(self, region, offset, data, flags=0):
        payload = access_payload(offset, region, len(data), data)
        if flags & NO_REPLY:
            self.send(message(REGION_WRITE, payload, 7, flags))
            return None
        return self.request(REGION_WRITE, payload)

    def read_u(self, region, offset, count):
        return int.from_bytes(self.read(region, offset, count), "little")

    def write_u(self, region, offset, value, count, flags=0):
        return self.write(region, offset, value.to_bytes(count, "little"), flags)

    def map(self, iova, size, fd=None, offset=0, flags=READ | WRITE):
        return self.error(DMA_MAP, map_payload(iova, size, offset, flags), [] if fd is None else [fd])

    def unmap(self, iova, size, flags=0):
        return self.error(DMA_UNMAP, unmap_payload(iova, size, flags))

    def set_irqs(self, flags, index, start, count, data=b"", fds=()):
        return self.error(SET_IRQS, irqs_payload(flags, index, start, count, data), fds)

    def silent(self):
        """True when nothing has come unasked. Call after sync()."""
        return not self.buffer and not select.select([self.socket], [], [], 0)[0]

    def closed(self):
        """Waits for the server to close the connection; what it sent before is dropped."""
        try:
            while True:
                self.receive()
        except (EOFError, ConnectionResetError):
            return True
        except TimeoutError:
            return False

    # The card, as far as it is needed to see effects of DMA and interrupts.

    def enable(self, msix=True):
        """Memory decoding, bus mastering and MSI-X on."""
        self.write_u(CONFIG, 4, 0x0006, 2)
        if msix:
            self.write_u(CONFIG, self.capability(0x11) + 2, 0x8000, 2)

    def capability(self, wanted):
        """Config offset of a PCI capability."""
        at = self.read_u(CONFIG, 0x34, 1)
        while at:
            ident, following = self.read(CONFIG, at, 2)
            if ident == wanted:
                return at
            at = following
        raise AssertionError(f"no capability {wanted:#x}")

    def device_command(self, command):
        """Runs a device command (64 bytes) through the registers of BAR0; returns its status byte."""
        self.write_u(BAR0, 0x804, 0, 4)
        self.write(BAR0, 0x808, command.ljust(64, b"\0"))
        self.write_u(BAR0, 0x800, 1, 4)
        deadline = time.monotonic() + TIMEOUT
        while not self.read_u(BAR0, 0x804, 4) & 1:
            if time.monotonic() > deadline:
                raise AssertionError("device command without end")
        return self.read_u(BAR0, 0x848, 1)

    def make_card_write(self, iova):
        """Makes the card write its LIF info page (1344 bytes) at `iova`: LIF_RESET, LIF_INIT. Returns the status."""
        self.device_command(struct.pack("<BBH", 22, 0, 0))
        return self.device_command(struct.pack("<BBHIQ", 21, 0, 0, 0, iova))

    def raise_interrupt(self, vector):
        """Makes the card fire: returns one credit more than it had, and unmasks."""
        self.write_u(BAR0, 0x2000 + 32 * vector + 0x08, 0x1ffff, 4)


def card_has_written(fd, offset):
    """True when the LIF info page at `offset` shows a link speed; the bytes are cleared for the next look."""
    speed = os.pread(fd, 4, offset + 0x10c)
    os.pwrite(fd, bytes(1344), offset)
    return speed != bytes(4)


class ProtocolTest(unittest.TestCase):
    """A server per class and a negotiated client per test, with a check that nothing stays open in the server."""

    server_arguments = ()

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.server_arguments)
        cls.addClassCleanup(cls.server.destroy)
        with Client(cls.server) as client:
            client.negotiate()
            cls.fds_with_client = cls.server.fds()

    def setUp(self):
        self.client = Client(self.server).negotiate()
        self.owned = []

    def tearDown(self):
        self.client.close()
        for fd in self.owned:
            os.close(fd)
        self.assertTrue(self.server.alive(), self.server.log_text())
        # When a new client is served, the old one has been cleaned up.
        with Client(self.server) as client:
            client.negotiate()
            self.assertEqual(self.server.fds(), self.fds_with_client, "the server leaks file descriptors")
            self.assertEqual(self.server.mappings(), 0, "the server leaks mappings")

    def own(self, fd):
        """Closes `fd` after the test."""
        self.owned.append(fd)
        return fd

    def reconnect(self):
        self.client.close()
        self.client = Client(self.server)
        return self.client

    def assertRefused(self, command, payload=b"", fds=(), expected=errno.EINVAL):
        """The command is refused, and the connection lives on."""
        self.assertEqual(self.client.error(command, payload, fds), expected)
        self.client.sync()
