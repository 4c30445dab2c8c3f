# SPDX-License-Identifier: MIT
"""DMA_READ, the one command the server sends: it asks for a page of guest memory to find out that a VM's memory is not
shared. The card does so when its driver has posted the first admin command."""

import os
import struct
import unittest

from harness import *

RING, COMPLETIONS, LIF_INFO = 0x10000, 0x20000, 0x30000


class DmaRead(ProtocolTest):
    def setUp(self):
        super().setUp()
        self.ram = self.own(memory(1 << 20))
        self.assertEqual(self.client.map(0, 1 << 20, self.ram), 0)
        self.client.enable()
        self.assertEqual(self.client.make_card_write(LIF_INFO), 0)
        queue = struct.pack("<BBHBBHIHHHBB", 40, 0, 0, 0, 0, 0, 0, 0, 0, 0x03, 0, 4)
        queue += struct.pack("<QQQ", RING, COMPLETIONS, 0)
        self.assertEqual(self.client.device_command(queue), 0)
        self.slot = self.client.read_u(BAR0, 0x848 + 8, 1) * 8
        self.queue = self.client.read_u(BAR0, 0x848 + 4, 4) & 0xffffff
        # The driver's first command: ask for the MAC.
        os.pwrite(self.ram, struct.pack("<BBH", 23, 3, 0).ljust(64, b"\0"), RING)
        self.client.write_u(BAR2, self.slot, self.queue << 24 | 1, 8, flags=NO_REPLY)

    def question(self):
        """The server's next command, or None; replies to our own commands do not count."""
        for _ in range(3):  # the question comes with one of the next rounds of the server's loop
            self.client.send(message(GET_INFO, struct.pack("<4I", 16, 0, 0, 0), ident=1))
            while True:
                got = self.client.receive()
                if got.flags & 0xf == 0:
                    self.assertEqual(self.client.receive().command, GET_INFO)
                    self.assertEqual(got.command, DMA_READ)
                    return got
                if got.command == GET_INFO:
                    break
        return None

    def asked(self):
        got = self.question()
        if got is None:
            self.skipTest("this card does not compare memory")
        self.assertEqual(len(got.payload), 16)
        address, count = struct.unpack("<QQ", got.payload)
        self.assertLessEqual(count, 32 << 10)
        self.assertEqual(address, RING)
        return got, address, count

    def answer(self, question, data, flags=REPLY, payload=None):
        echo = question.payload if payload is None else payload
        self.client.send(message(DMA_READ, echo + data, question.id, flags))

    def test_equal_page_ends_the_matter(self):
        got, address, count = self.asked()
        self.answer(got, os.pread(self.ram, count, address))
        self.assertIsNone(self.question())
        self.assertNotIn("share=on", self.server.log_text())

    def test_bad_answers_end_the_matter_too(self):
        for flags, payload, size in ((REPLY | ERROR, b"", 0), (REPLY, None, 0), (REPLY, None, 4095), (REPLY, None, 4097),
                                     (REPLY, b"", 0), (REPLY, bytes(16), 4096)):
            got, _, _ = self.asked()
            self.answer(got, bytes(size), flags, payload)
            self.assertIsNone(self.question())
            self.tearDown()
            self.setUp()
        self.assertNotIn("share=on", self.server.log_text())

    def test_client_leaves_with_the_question_open(self):
        self.asked()

    def test_other_page_twice_is_reported(self):
        for _ in range(2):
            got, _, count = self.asked()
            self.answer(got, b"\xee" * count)
        self.assertIsNone(self.question())
        self.assertIn("share=on", self.server.log_text())

    def test_late_answer_is_ignored_without_harm(self):
        got, _, count = self.asked()
        self.answer(got, b"", REPLY | ERROR)
        self.answer(got, b"\xee" * count)
        self.client.sync()


if __name__ == "__main__":
    unittest.main()
