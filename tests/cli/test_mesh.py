# SPDX-License-Identifier: MIT
"""Servers that join over TCP: options that are refused, several processes that find each other, keys."""

import contextlib
import json
import os
import random
import socket
import subprocess
import time
import unittest

from support import CTL, TIMEOUT, Server, ServerTest, clean_environment, run

# (back end, what the sentence must say)
REFUSED = [
    ("tcp", "unknown tcp role ''"),
    ("tcp:boss:listen:7000", "unknown tcp role 'boss'"),
    ("tcp:maneger:listen:7000", "did you mean 'manager'?"),
    ("tcp:manager:7000", "write 'tcp:manager:listen:PORT'"),
    ("tcp:manager:listen:0", "write 'tcp:manager:listen:PORT'"),
    ("tcp:manager:listen:70000", "write 'tcp:manager:listen:PORT'"),
    ("tcp:manager:example.org:7000", "write 'tcp:manager:listen:PORT'"),
    ("tcp:worker:7000", "write 'tcp:worker:HOST:PORT'"),
    ("tcp:worker:fe80::1:7000", "IPv6 in brackets"),
    ("tcp:worker:localhost:7000,keey=x", "unknown tcp option 'keey': did you mean 'key'?"),
    ("tcp:worker:localhost:7000,name=a b", "printable characters"),
    ("tcp:worker:localhost:7000,bind=here", "is no IP address"),
    ("tcp:worker:localhost:7000,heartbeat=1", "the nearest valid value is '10'"),
    ("tcp:worker:localhost:7000,heartbeat=1000,dead-after=1500", "at least twice as long"),
    ("tcp:manager:192.168.1.10:7000", "needs a key"),
    ("tcp:manager:listen:7000,bind=0.0.0.0", "needs a key"),
    ("tcp:worker:192.168.1.10:7000", "needs a key"),
]


def free_port():
    """One that Linux gives to no client (net.ipv4.ip_local_port_range): workers dial while nobody listens."""
    for port in random.sample(range(20000, 30000), 100):
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


class Mesh(ServerTest):
    def setUp(self):
        super().setUp()
        self.port = free_port()
        self.servers = []

    def node(self, number, options="", *more):
        role = f"tcp:manager:listen:{self.port}" if number == 0 else f"tcp:worker:localhost:{self.port}"
        server = Server(self.directory / f"{number}.sock", "--backend", f"{role},name=n{number}{options}",
                        "--control", str(self.directory / f"{number}.ctl"), *more)
        self.servers.append(server)
        self.addCleanup(server.__exit__)
        deadline = time.monotonic() + TIMEOUT
        while not os.path.exists(self.directory / f"{number}.sock"):
            self.assertIsNone(server.process.poll(), server.process.stderr.read() if server.process.poll() else "")
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)
        return server

    def ask(self, number, command):
        done = subprocess.run([CTL, "--json", "--control", str(self.directory / f"{number}.ctl"), *command],
                              capture_output=True, timeout=TIMEOUT, check=True, env=clean_environment())
        return json.loads(done.stdout)

    def peers(self, number):
        return {peer["name"]: peer for peer in self.ask(number, ["peers"])["peers"]}

    def wait(self, condition):
        deadline = time.monotonic() + TIMEOUT
        while not condition():
            self.assertLess(time.monotonic(), deadline, "it never came about")
            time.sleep(0.05)

    def wait_connected(self, number, *names):
        self.wait(lambda: sorted(name for name, peer in self.peers(number).items()
                                 if peer["state"] == "connected") == sorted(names))

    def test_what_makes_no_sense_is_one_sentence_and_exit_code_2(self):
        for backend, sentence in REFUSED:
            with self.subTest(backend=backend):
                done = run("--socket", str(self.directory / "x"), "--backend", backend)
                self.assertEqual(done.returncode, 2, done)
                self.assertIn(sentence, done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 1)

    def test_a_key_file_that_will_not_do_is_refused(self):
        key = self.directory / "key"
        for text, mode, sentence in (("short\n", 0o600, "make a key"), ("x" * 40, 0o644, "chmod 600")):
            key.write_text(text)
            key.chmod(mode)
            done = run("--socket", str(self.directory / "x"), "--backend", f"tcp:manager:listen:{self.port},key={key}")
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(sentence, done.stderr)
        done = run("--socket", str(self.directory / "x"), "--backend", f"tcp:manager:listen:{self.port},key=/missing")
        self.assertEqual(done.returncode, 1)

    def test_link_follows_needs_a_mesh(self):
        done = run("--link-follows", "mesh")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--backend tcp:..", done.stderr)
        self.assertIn("did you mean 'mesh'?", run("--link-follows", "mash").stderr)

    def test_workers_before_their_manager_and_each_meets_each(self):
        self.node(1)
        self.node(2)
        self.assertEqual(self.peers(1), {})
        self.node(0)
        self.wait_connected(0, "n1", "n2")
        self.wait_connected(1, "n0", "n2")
        self.wait_connected(2, "n0", "n1")
        self.assertTrue(self.peers(1)["n0"]["manager"])
        self.assertEqual({peer["number"] for peer in self.peers(0).values()}, {1, 2})

    def test_a_manager_that_is_killed_is_missed_by_nobody_and_rejoined(self):
        manager = self.node(0)
        self.node(1)
        self.node(2)
        self.wait_connected(1, "n0", "n2")
        manager.process.kill()
        manager.process.wait()
        self.wait_connected(1, "n2")
        self.wait_connected(2, "n1")
        os.unlink(self.directory / "0.sock")
        os.unlink(self.directory / "0.ctl")
        self.node(0)
        self.wait_connected(1, "n0", "n2")
        self.wait_connected(0, "n1", "n2")
        self.assertEqual(self.peers(1)["n2"]["reconnects"], 0)

    def test_the_same_key_joins_and_another_does_not(self):
        keys = [self.directory / "a.key", self.directory / "b.key"]
        for number, key in enumerate(keys):
            key.write_text(f"{number}" * 32)
            key.chmod(0o600)
        self.node(0, f",key={keys[0]}")
        self.node(1, f",key={keys[0]}")
        self.node(2, f",key={keys[1]}")
        self.node(3)
        self.wait_connected(0, "n1")
        self.wait(lambda: self.ask(0, ["stats"])["mesh"]["wrong_key"] >= 2)
        self.assertEqual(list(self.peers(0)), ["n1"])

    def test_the_link_follows_the_mesh_when_told_to(self):
        self.node(0, "", "--link-follows", "mesh")
        self.assertEqual(self.ask(0, ["link"]), {"up": False, "down_by": ["mesh"]})
        worker = self.node(1)
        self.wait(lambda: self.ask(0, ["link"])["up"])
        worker.process.kill()
        self.wait(lambda: not self.ask(0, ["link"])["up"])

    @unittest.skipUnless(os.geteuid() == 0 and os.path.exists("/dev/net/tun"), "only root makes interfaces")
    def test_the_link_follows_a_tap_and_the_mesh(self):
        tap = f"ernic{os.getpid()}"
        subprocess.run(["ip", "tuntap", "add", "dev", tap, "mode", "tap", "vnet_hdr"], check=True)
        self.addCleanup(subprocess.run, ["ip", "link", "delete", tap], check=True)
        self.node(0, "", "--link-follows", "mesh", "--tap", tap)
        self.assertEqual(self.ask(0, ["link"])["down_by"], ["tap", "mesh"])
        worker = self.node(1)
        self.wait(lambda: self.ask(0, ["link"])["down_by"] == ["tap"])
        subprocess.run(["ip", "link", "set", tap, "up"], check=True)
        self.wait(lambda: self.ask(0, ["link"])["up"])
        worker.process.kill()
        self.wait(lambda: self.ask(0, ["link"])["down_by"] == ["mesh"])

    def test_noise_on_the_port_is_counted_and_nothing_else(self):
        self.node(0)
        for noise in (b"GET / HTTP/1.1\r\n\r\n", b"\0" * 4096, os.urandom(4096)):
            with socket.create_connection(("127.0.0.1", self.port)) as sock:
                sock.sendall(noise)
                sock.settimeout(TIMEOUT)
                try:
                    self.assertEqual(sock.recv(1), b"")
                except ConnectionResetError:
                    pass
        self.assertEqual(self.ask(0, ["stats"])["mesh"]["protocol_errors"], 3)
        self.node(1)
        self.wait_connected(0, "n1")


if __name__ == "__main__":
    unittest.main()
