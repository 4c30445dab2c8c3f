# SPDX-License-Identifier: MIT
"""The control socket of the real server, spoken to by hand: every command, garbage, floods, descriptors."""

import contextlib
import os
import random
import socket
import stat
import struct
import tempfile
import time
import unittest

from support import TIMEOUT, Client, Control, ServerTest, machine_is_busy, run
from test_capture import blocks


class Commands(ServerTest):
    def setUp(self):
        super().setUp()
        self.server = self.start_with_control("--mac", "02:00:00:00:00:01")

    def connect(self):
        control = Control(self.control)
        self.addCleanup(control.__exit__)
        return control

    def test_the_socket_is_its_owners_and_goes_with_the_server(self):
        info = os.stat(self.control)
        self.assertTrue(stat.S_ISSOCK(info.st_mode))
        self.assertEqual(info.st_mode & 0o777, 0o600)
        self.assertEqual(self.server.end()[0], 0)
        self.assertFalse(self.control.exists())

    def test_version_and_status(self):
        control = self.connect()
        version = control.result("version")
        self.assertEqual(version["protocol"], 1)
        self.assertIn("status", version["commands"])
        status = control.result("status")
        self.assertEqual(status["pid"], self.server.pid)
        self.assertEqual(status["socket"], str(self.socket))
        self.assertEqual(status["mac"], "02:00:00:00:00:01")
        self.assertEqual(status["connected"], False)
        self.assertEqual(status["driver"], False)
        self.assertEqual(status["link"], {"up": True, "down_by": []})
        with Client(self.socket) as client:
            client.negotiate()
            self.assertEqual(control.result("status")["connected"], True)

    def test_statistics_whole_and_in_part(self):
        control = self.connect()
        whole = control.result("stats")
        self.assertEqual(whole["process"]["pid"], self.server.pid)
        self.assertEqual(whole["queue_pairs"], [])
        self.assertEqual(whole["control"]["clients"], 1)
        part = control.result("stats", match="control.requests")
        self.assertEqual(part, {"control": {"requests": 2, "requests_failed": 0}})

    def test_link_down_and_up(self):
        control = self.connect()
        self.assertEqual(control.result("link", state="down"), {"up": False, "down_by": ["operator"]})
        self.assertEqual(control.result("status")["link"]["up"], False)
        self.assertEqual(control.result("link", state="up"), {"up": True, "down_by": []})
        self.assertEqual(control.error("link", state="sideways"), "invalid_argument")

    def test_ports_and_addresses(self):
        control = self.connect()
        ports = {port["name"]: port for port in control.result("ports")["ports"]}
        self.assertEqual(ports["guest"]["link"], True)
        self.assertEqual(ports["tap"]["connected"], False)
        self.assertEqual(control.result("mac-table"), {"capacity": 4096, "ageing_seconds": 300, "entries": []})

    def test_log_level(self):
        control = self.connect()
        self.assertEqual(control.result("log-level"), {"level": "info"})
        self.assertEqual(control.result("log-level", level="debug"), {"level": "debug"})
        with Client(self.socket) as client:
            client.negotiate()
            self.server.wait_for_log("client connected")
        self.assertEqual(control.error("log-level", level="loud"), "invalid_argument")

    def test_faults_are_told_to_be_unsupported_or_work(self):
        control = self.connect()
        if control.ask("fault-list")["ok"]:
            self.assertEqual(control.result("fault-list"), {"faults": []})
        else:
            self.assertEqual(control.error("fault-list"), "unsupported")

    def test_a_capture_goes_to_the_descriptor_that_is_handed_over(self):
        control = self.connect()
        path = self.directory / "capture.pcapng"
        for _ in range(3):  # as often as wanted, each from the beginning
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            self.assertEqual(control.result("pcap-start", [fd], name="x", snaplen=128), {"name": "x", "snaplen": 128})
            os.close(fd)
            self.assertEqual(control.result("status")["capture"]["name"], "x")
            self.assertEqual(control.error("pcap-start", [1]), "busy")
            self.assertEqual(control.result("pcap-stop"), {"name": "x", "packets": 0, "dropped": 0})
            self.assertEqual(blocks(path.read_bytes()), [0x0A0D0D0A, 1, 5])
        self.assertEqual(control.error("pcap-stop"), "invalid_argument")
        self.assertEqual(control.error("pcap-start"), "invalid_argument")
        with open(path, "rb") as reader:
            self.assertEqual(control.error("pcap-start", [reader.fileno()]), "invalid_argument")
        self.assertEqual(self.server.end()[0], 0)

    def test_a_capture_ends_with_its_reader(self):
        control = self.connect()
        reader, writer = os.pipe()
        control.result("pcap-start", [writer])
        os.close(writer)
        self.assertEqual(blocks(os.read(reader, 4096)), [0x0A0D0D0A, 1])
        os.close(reader)
        self.server.wait_for_log("nobody reads it any more")
        self.assertIsNone(control.result("status")["capture"])
        self.assertEqual(self.server.end()[0], 0)

    def test_a_full_disk_ends_the_capture_and_nothing_else(self):
        control = self.connect()
        with open("/dev/full", "wb") as full:
            control.result("pcap-start", [full.fileno()], name="full")
        self.server.wait_for_log("No space left")
        self.assertIsNone(control.result("status")["capture"])
        self.assertEqual(self.server.end()[0], 0)

    def test_a_server_that_ends_finishes_the_capture(self):
        control = self.connect()
        path = self.directory / "capture.pcapng"
        with open(path, "wb") as file:
            control.result("pcap-start", [file.fileno()])
        self.assertEqual(self.server.end()[0], 0)
        self.assertEqual(blocks(path.read_bytes()), [0x0A0D0D0A, 1, 5])
        self.assertEqual(control.socket.recv(1), b"", "the client must see the end")


class Hostile(ServerTest):
    def setUp(self):
        super().setUp()
        self.server = self.start_with_control()

    def alive(self):
        deadline = time.monotonic() + TIMEOUT
        while True:
            with Control(self.control) as control:
                try:
                    self.assertEqual(control.result("status")["pid"], self.server.pid)
                    return control.result("stats", match="control.")["control"]
                except AssertionError as refused:
                    # As long as it has not noticed that others have hung up, the server may be full.
                    if "busy" not in str(refused) or time.monotonic() > deadline:
                        raise
            time.sleep(0.01)

    def test_garbage(self):
        generator = random.Random(1)
        for size in (1, 100, 1000, 16384, 100000):
            with Control(self.control) as control:
                control.send(generator.randbytes(size))
        for text in (b"\0" * 100, b"[" * 60000, b'{"a":' * 3000, b"\xff\xfe\n" * 50, b"{}\n", b'"\\ud800"\n',
                     b'{"command":"status","command":"nope"}\n', b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
                     struct.pack("<HHIII", 1, 1, 20, 0, 0) + b"\0\0\1\0"):
            with Control(self.control) as control:
                control.send(text + b"\n")
                self.assertEqual(control.line()["ok"], False, text[:20])
        self.assertGreater(self.alive()["malformed"], 8)

    def test_a_flood_that_nobody_reads_is_held_back(self):
        flood = socket.socket(socket.AF_UNIX)
        flood.connect(str(self.control))
        flood.setblocking(False)
        request, sent = b'{"command":"stats"}\n' * 500, 0
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline:
            try:
                sent += flood.send(request)
            except BlockingIOError:
                break
        before = int(self.server.status("VmRSS").split()[0])
        self.assertLess(sent, 4 << 20)
        self.alive()
        # A sanitizer keeps what is freed for a while.
        allowed = (1 << 16) if self.instrumented() else 1024
        self.assertLess(int(self.server.status("VmRSS").split()[0]), before + allowed)
        flood.close()
        self.alive()

    def test_a_register_read_does_not_wait_for_a_flood(self):
        floods = [Control(self.control) for _ in range(8)]
        with Client(self.socket) as client:
            client.negotiate()
            times = []
            for _ in range(200):
                for flood in floods:
                    flood.socket.setblocking(False)
                    try:
                        flood.send(b'{"command":"stats"}\n{"command":"mac-table"}\n' * 20)
                        flood.socket.recv(1 << 20)
                    except BlockingIOError:
                        pass
                begin = time.monotonic()
                client.identity()
                times.append(time.monotonic() - begin)
            if not machine_is_busy():
                self.assertLess(sorted(times)[len(times) // 2], 0.02, sorted(times)[-5:])
        for flood in floods:
            flood.socket.close()
        self.alive()

    def test_descriptors_do_not_pile_up(self):
        def count():
            return self.server.status("FDSize"), len(self.held())
        with Control(self.control) as control:
            control.result("status")
            before = count()
            with tempfile.TemporaryFile() as file:
                for number in (1, 2, 4, 5, 100):
                    control.result("status", [file.fileno()] * number)
                    control.send(b"x", [file.fileno()])
                    control.send(b"y\n", [file.fileno()])
                    self.assertEqual(control.line()["ok"], False)
            self.assertEqual(count(), before)
        self.assertGreater(self.alive()["stray_fds"], 10)

    def held(self):
        """Descriptors of the server; root may always look, others only without the sandbox."""
        try:
            return os.listdir(f"/proc/{self.server.pid}/fd")
        except PermissionError:
            return []

    def test_clients_that_come_and_go(self):
        for number in range(200):
            control = Control(self.control)
            # Faster than the server looks, the seventeenth is refused, and may see that as it sends.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                if number % 3:
                    control.send(b'{"command":"stats"}\n')
                if number % 2:
                    control.send(b'{"comm')
            control.socket.close()
        deadline = time.monotonic() + TIMEOUT
        while self.alive()["connected"] != 1 and time.monotonic() < deadline:
            time.sleep(0.01)
        many = [Control(self.control) for _ in range(16)]
        for control in many:
            control.result("version")
        with Control(self.control) as extra:
            self.assertEqual(extra.line()["error"]["code"], "busy")
            self.assertEqual(extra.socket.recv(1), b"")
        for control in many:
            control.socket.close()
        self.alive()

    def test_an_idle_client_wakes_nobody(self):
        with Control(self.control) as control:
            control.result("status")
            time.sleep(0.3)
            before = self.server.status("voluntary_ctxt_switches")
            time.sleep(1.0)
            self.assertEqual(self.server.status("voluntary_ctxt_switches"), before)


class Path(ServerTest):
    def test_a_live_servers_socket_is_refused_and_a_dead_ones_replaced(self):
        server = self.start_with_control()
        other = run("--socket", str(self.directory / "other.sock"), "--control", str(self.control))
        self.assertEqual(other.returncode, 1)
        self.assertIn("another server is listening", other.stderr)
        self.assertFalse((self.directory / "other.sock").exists())
        server.process.kill()
        server.process.wait()
        self.start_with_control()
        with Control(self.control) as control:
            control.result("status")

    def test_paths_that_cannot_be_are_refused(self):
        for path, code, text in ((str(self.socket), 2, "choose another path"), ("x" * 200, 2, "at most 107"),
                                 (str(self.directory / "missing" / "x"), 1, "cannot create socket"),
                                 (str(self.directory), 1, "not a socket")):
            with self.subTest(path=path):
                result = run("--socket", str(self.socket), "--control", path, "--log-level", "error")
                self.assertEqual(result.returncode, code, result.stderr)
                self.assertIn(text, result.stderr)
                self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
                self.assertFalse(self.socket.exists())


if __name__ == "__main__":
    unittest.main()
