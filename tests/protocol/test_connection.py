# SPDX-License-Identifier: MIT
"""Coming, going, coming back, and other clients."""

import os
import signal
import struct
import unittest

from harness import *


class Connection(ProtocolTest):
    def test_second_client_is_closed_at_once_and_the_first_lives(self):
        for _ in range(20):
            with Client(self.server) as second:
                self.assertTrue(second.closed())
        self.client.sync()

    def test_thousand_cycles_leave_nothing(self):
        self.client.close()
        before = self.server.resident()
        for _ in range(1000):
            with Client(self.server):
                pass
        self.assertLess(self.server.resident() - before, 2 << 20)

    def test_cycles_with_a_full_life_leave_nothing(self):
        ram = self.own(memory(1 << 20))
        one = self.own(event())
        before = 0
        for cycle in range(200):
            client = self.reconnect().negotiate()
            self.assertEqual(client.map(0, 1 << 20, ram), 0)
            self.assertEqual(client.set_irqs(0x24, MSIX, 0, 1, fds=[one]), 0)
            client.enable()
            if cycle % 10 == 0:
                client.make_card_write(0x1000)
                self.assertTrue(card_has_written(ram, 0x1000), f"cycle {cycle}")
            if cycle == 20:
                before = self.server.resident()
        self.assertLess(self.server.resident() - before, 2 << 20)

    def test_next_client_finds_a_card_in_power_on_state(self):
        ram = self.own(memory())
        self.client.map(0, 0x10000, ram)
        self.client.enable()
        self.client.write(BAR0, 0x808, b"\xaa" * 64)
        client = self.reconnect().negotiate()
        self.assertEqual(client.read_u(CONFIG, 4, 2), 0)
        self.assertEqual(client.read(BAR0, 0x808, 64), bytes(64))
        client.enable()
        client.make_card_write(0)
        self.assertFalse(card_has_written(ram, 0), "the old client's memory is gone")

    def test_successor_is_served_although_the_predecessor_just_died(self):
        for _ in range(50):
            self.client.send(message(REGION_WRITE, access_payload(0, BAR2, 8, bytes(8)), flags=NO_REPLY) * 20)
            self.reconnect().negotiate()

    def test_disconnect_while_the_card_works(self):
        ram = self.own(memory())
        for _ in range(20):
            client = self.reconnect().negotiate()
            client.map(0, 0x10000, ram)
            client.enable()
            client.send(message(REGION_WRITE, access_payload(0x808, BAR0, 16, struct.pack("<BBHIQ", 21, 0, 0, 0, 0))) +
                        message(REGION_WRITE, access_payload(0x800, BAR0, 4, struct.pack("<I", 1))))


class Ending(unittest.TestCase):
    def test_terminated_server_says_goodbye_and_removes_its_socket(self):
        server = Server(statistics=True)
        self.addCleanup(server.destroy)
        with Client(server) as client:
            client.negotiate()
            client.sync()
            code, statistics = server.stop()
            self.assertTrue(client.closed())
        self.assertEqual(code, 0)
        self.assertFalse(os.path.exists(server.path))
        self.assertGreaterEqual(statistics["vfio_user"]["clients"], 1)

    def test_every_refusal_is_counted(self):
        server = Server(statistics=True)
        self.addCleanup(server.destroy)
        with Client(server) as client:
            client.negotiate()
            client.error(GET_INFO, b"")
            client.error(999, b"1234")
            client.error(REGION_READ, access_payload(0, 9, 4))
            client.error(REGION_READ, access_payload(2**64 - 1, BAR0, 4))
            client.error(DMA_UNMAP, unmap_payload(0, PAGE))
            client.error(DMA_MAP, map_payload(0, PAGE, flags=0x80))
            client.error(VERSION, version_payload())
            client.send(message(DMA_READ, bytes(32), flags=REPLY))
            client.sync()
            with Client(server) as second:
                second.closed()
        numbers = server.stop()[1]["vfio_user"]
        for reason in ("short_payload", "unknown_command", "index", "range", "not_mapped", "flags", "version"):
            self.assertEqual(numbers["reject"][reason], 1, reason)
        self.assertEqual(numbers["unexpected_replies"], 1)
        self.assertGreaterEqual(numbers["clients_refused"], 1)

    def test_killed_server_is_replaced(self):
        server = Server()
        self.addCleanup(server.destroy)
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        self.assertTrue(os.path.exists(server.path), "a killed server leaves its socket")
        process = subprocess.Popen([SERVER, "--socket", server.path, "--backend", "none"], stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline:
            try:
                with Client(server) as client:
                    client.negotiate()
                return
            except (ConnectionRefusedError, FileNotFoundError):
                time.sleep(0.002)
        self.fail("the stale socket was not replaced")


if __name__ == "__main__":
    unittest.main()
