# SPDX-License-Identifier: MIT
"""DEVICE_GET_IRQ_INFO."""

import struct
import unittest

from harness import *


def request(index, argsz=16):
    return struct.pack("<4I", argsz, 0, index, 0)


class DeviceGetIrqInfo(ProtocolTest):
    def info(self, index, argsz=16):
        return struct.unpack("<4I", self.client.request(GET_IRQ_INFO, request(index, argsz)).payload)

    def test_msix_has_as_many_vectors_as_the_capability_says(self):
        argsz, flags, index, count = self.info(MSIX)
        control = self.client.read_u(CONFIG, self.client.capability(0x11) + 2, 2)
        self.assertEqual((argsz, flags, index), (16, 1, MSIX))  # eventfd, and not NORESIZE
        self.assertEqual(count, (control & 0x7ff) + 1)

    def test_other_interrupts_are_absent(self):
        for index in (INTX, MSI, REQ):
            self.assertEqual(self.info(index)[3], 0)

    def test_err_is_refused_so_that_qemu_skips_it_silently(self):
        self.assertRefused(GET_IRQ_INFO, request(ERR))

    def test_larger_argsz(self):
        self.assertEqual(self.info(MSIX, argsz=64), self.info(MSIX))

    def test_bad_requests(self):
        for bad in (request(5), request(0xffffffff), request(MSIX, argsz=8), request(MSIX)[:15], request(MSIX)[:4]):
            self.assertRefused(GET_IRQ_INFO, bad)


if __name__ == "__main__":
    unittest.main()
