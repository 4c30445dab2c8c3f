# SPDX-License-Identifier: MIT
"""DEVICE_GET_REGION_INFO."""

import struct
import unittest

from harness import *


def request(index, argsz=32):
    return struct.pack("<4IQQ", argsz, 0, index, 0, 0, 0)


class DeviceGetRegionInfo(ProtocolTest):
    def info(self, index, argsz=32):
        reply = self.client.request(GET_REGION_INFO, request(index, argsz))
        self.assertEqual(len(reply.payload), 32)
        return struct.unpack("<4IQQ", reply.payload)

    def test_register_bar(self):
        self.assertEqual(self.info(BAR0), (32, 3, BAR0, 0, BAR0_SIZE, 0))

    def test_doorbell_bar_is_a_power_of_two_without_mmap(self):
        argsz, flags, index, capabilities, size, offset = self.info(BAR2)
        self.assertEqual((argsz, flags, index, capabilities, offset), (32, 3, BAR2, 0, 0))
        self.assertGreaterEqual(size, PAGE)
        self.assertEqual(size & (size - 1), 0)

    def test_config_space(self):
        self.assertEqual(self.info(CONFIG), (32, 3, CONFIG, 0, 4096, 0))

    def test_absent_regions_are_empty(self):
        for index in (1, 3, 4, 5, ROM, VGA):
            self.assertEqual(self.info(index), (32, 0, index, 0, 0, 0))

    def test_larger_argsz_changes_nothing(self):
        self.assertEqual(self.info(BAR0, argsz=40), self.info(BAR0))

    def test_unknown_index(self):
        for index in (9, 100, 0xffffffff):
            self.assertRefused(GET_REGION_INFO, request(index))

    def test_short_payload_and_small_argsz(self):
        self.assertRefused(GET_REGION_INFO, request(0)[:31])
        self.assertRefused(GET_REGION_INFO, request(0)[:8])
        self.assertRefused(GET_REGION_INFO, request(0, argsz=8))
        self.assertRefused(GET_REGION_INFO, request(0, argsz=31))


if __name__ == "__main__":
    unittest.main()
