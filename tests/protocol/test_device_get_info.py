# SPDX-License-Identifier: MIT
"""DEVICE_GET_INFO."""

import struct
import unittest

from harness import *


class DeviceGetInfo(ProtocolTest):
    def test_device_is_pci_with_reset(self):
        reply = self.client.request(GET_INFO, struct.pack("<4I", 16, 0, 0, 0))
        self.assertEqual(struct.unpack("<4I", reply.payload), (16, 3, 9, 5))

    def test_larger_argsz_is_answered_with_ours(self):
        reply = self.client.request(GET_INFO, struct.pack("<4I", 32, 0, 0, 0) + bytes(16))
        self.assertEqual(struct.unpack("<4I", reply.payload), (16, 3, 9, 5))

    def test_short_payload(self):
        for size in (0, 8, 15):
            self.assertRefused(GET_INFO, struct.pack("<4I", 16, 0, 0, 0)[:size])

    def test_small_argsz(self):
        for argsz in (0, 8, 15):
            self.assertRefused(GET_INFO, struct.pack("<4I", argsz, 0, 0, 0))


if __name__ == "__main__":
    unittest.main()
