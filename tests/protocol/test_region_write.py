# SPDX-License-Identifier: MIT
"""REGION_WRITE, posted and not."""

import struct
import unittest

from harness import *

COMMAND = 0x808  # 64 plain bytes in the device command block of BAR0


class RegionWrite(ProtocolTest):
    def test_reply_echoes_the_request_without_data(self):
        reply = self.client.request(REGION_WRITE, access_payload(COMMAND, BAR0, 4, b"abcd"))
        self.assertEqual(reply.payload, struct.pack("<QII", COMMAND, BAR0, 4))

    def test_every_width_and_alignment_is_stored(self):
        for width in range(1, 17):
            for offset in range(4):
                data = bytes(range(width, 2 * width))
                self.client.write(BAR0, COMMAND + offset, data)
                self.assertEqual(self.client.read(BAR0, COMMAND + offset, width), data)

    def test_posted_write_gets_no_reply_and_is_executed_before_the_next_read(self):
        for value in range(1, 200):
            self.client.write_u(BAR0, COMMAND, value, 8, flags=NO_REPLY)
        self.assertEqual(self.client.read_u(BAR0, COMMAND, 8), 199)
        self.assertTrue(self.client.silent())

    def test_failed_posted_write_gets_no_reply_either(self):
        for region, offset, data in ((BAR0, BAR0_SIZE, bytes(4)), (4, 0, bytes(8)), (9, 0, bytes(8)),
                                     (BAR0, 2**64 - 1, bytes(8))):
            self.client.send(message(REGION_WRITE, access_payload(offset, region, len(data), data), flags=NO_REPLY))
        self.client.send(message(REGION_WRITE, b"short", flags=NO_REPLY))
        self.client.send(message(REGION_WRITE, access_payload(0, BAR0, 8, b"four"), flags=NO_REPLY))
        self.client.sync()
        self.assertTrue(self.client.silent())

    def test_posted_config_write_is_executed_too(self):
        self.client.write_u(CONFIG, 4, 6, 2, flags=NO_REPLY)
        self.assertEqual(self.client.read_u(CONFIG, 4, 2), 6)

    def test_flood_of_doorbells_for_queues_that_do_not_exist(self):
        for i in range(5000):
            self.client.write_u(BAR2, 8 * (i % 512), i * 0x9e3779b97f4a7c15 & (2**64 - 1), 8, flags=NO_REPLY)
        self.client.sync()
        self.assertTrue(self.client.silent())

    def test_odd_doorbells_are_harmless(self):
        for width in (1, 2, 3, 4, 5, 8, 16, 4096):
            for offset in (0, 1, 4, 4095):
                self.client.write(BAR2, offset, b"\xff" * width)

    def test_data_that_does_not_match_the_count(self):
        for count, data in ((4, b""), (4, b"abc"), (4, b"abcde"), (0, b"x"), (0xffffffff, b"abcd")):
            self.assertRefused(REGION_WRITE, access_payload(COMMAND, BAR0, count, data))
        self.assertRefused(REGION_WRITE, access_payload(COMMAND, BAR0, 0)[:15])

    def test_nothing(self):
        self.assertEqual(self.client.write(BAR0, COMMAND, b"").error, 0)

    def test_out_of_bounds(self):
        for region, offset in ((BAR0, BAR0_SIZE), (BAR0, BAR0_SIZE - 3), (BAR0, 2**64 - 1), (CONFIG, 4093), (1, 0), (4, 0),
                               (ROM, 0), (VGA, 0), (9, 0), (0xffffffff, 0)):
            self.assertRefused(REGION_WRITE, access_payload(offset, region, 4, b"abcd"))

    def test_write_of_a_whole_bar(self):
        self.assertEqual(self.client.write(BAR0, 0, bytes(BAR0_SIZE)).error, 0)
        self.assertEqual(self.client.read(BAR0, 0, 4), b"IVED")


if __name__ == "__main__":
    unittest.main()
