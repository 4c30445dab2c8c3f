# SPDX-License-Identifier: MIT
"""REGION_READ."""

import struct
import unittest

from harness import *


class RegionRead(ProtocolTest):
    def test_reply_echoes_the_request(self):
        reply = self.client.request(REGION_READ, access_payload(0, BAR0, 4))
        self.assertEqual(struct.unpack("<QII", reply.payload[:16]), (0, BAR0, 4))
        self.assertEqual(len(reply.payload), 20)

    def test_card_signature(self):
        self.assertEqual(self.client.read(BAR0, 0, 4), b"IVED")

    def test_every_width_sees_the_same_bytes(self):
        whole = self.client.read(BAR0, 0, 64)
        for width in (1, 2, 4, 8):
            parts = b"".join(self.client.read(BAR0, at, width) for at in range(0, 64, width))
            self.assertEqual(parts, whole)

    def test_unaligned_reads(self):
        whole = self.client.read(BAR0, 0, 64)
        for offset in (1, 2, 3, 5, 13):
            for width in (2, 3, 4, 7, 8):
                self.assertEqual(self.client.read(BAR0, offset, width), whole[offset:offset + width])

    def test_whole_config_space(self):
        whole = self.client.read(CONFIG, 0, 4096)
        self.assertEqual(len(whole), 4096)
        self.assertEqual(whole[:4], b"\xd8\x1d\x02\x10")

    def test_whole_register_bar(self):
        self.assertEqual(len(self.client.read(BAR0, 0, BAR0_SIZE)), BAR0_SIZE)

    def test_doorbells_read_as_zero(self):
        self.assertEqual(self.client.read(BAR2, 0, 8), bytes(8))

    def test_last_byte_of_a_region(self):
        self.assertEqual(len(self.client.read(BAR0, BAR0_SIZE - 1, 1)), 1)
        self.assertEqual(len(self.client.read(CONFIG, 4095, 1)), 1)

    def test_nothing(self):
        for region, offset in ((BAR0, 0), (BAR0, BAR0_SIZE), (CONFIG, 17), (4, 0)):
            self.assertEqual(self.client.read(region, offset, 0), b"")

    def test_out_of_bounds(self):
        for region, offset, count in ((BAR0, BAR0_SIZE, 1), (BAR0, BAR0_SIZE - 3, 4), (BAR0, 2**64 - 1, 256),
                                      (BAR0, 2**64 - 4, 4), (BAR0, 2**63, 1), (CONFIG, 4093, 4), (CONFIG, 0, 4097),
                                      (1, 0, 1), (3, 0, 4), (4, 0, 1), (ROM, 0, 4), (VGA, 0, 1), (9, 0, 1),
                                      (0xffffffff, 0, 4), (BAR2, 0, MAX_TRANSFER + 1), (BAR2, 0, 0xffffffff)):
            self.assertRefused(REGION_READ, access_payload(offset, region, count))

    def test_payload_of_another_size(self):
        self.assertRefused(REGION_READ, access_payload(0, BAR0, 4)[:15])
        self.assertRefused(REGION_READ, access_payload(0, BAR0, 4, b"\0"))


if __name__ == "__main__":
    unittest.main()
