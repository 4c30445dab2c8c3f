# SPDX-License-Identifier: MIT
"""The No_reply flag on every command, good and bad: never an answer, and the good ones happen."""

import struct
import unittest

from harness import *


class NoReply(ProtocolTest):
    def test_good_commands(self):
        ram = self.own(memory())
        one = self.own(event())
        for payload, command, fds in (
                (map_payload(0, PAGE), DMA_MAP, [ram]), (unmap_payload(0, PAGE), DMA_UNMAP, []),
                (map_payload(0x4000, PAGE), DMA_MAP, [ram]),
                (struct.pack("<4I", 16, 0, 0, 0), GET_INFO, []),
                (struct.pack("<4IQQ", 32, 0, 0, 0, 0, 0), GET_REGION_INFO, []),
                (struct.pack("<4I", 16, 0, 0, 0), GET_REGION_IO_FDS, []),
                (struct.pack("<4I", 16, 0, 2, 0), GET_IRQ_INFO, []),
                (struct.pack("<4I", 16, 0, 3, 0), GET_IRQ_INFO, []),
                (irqs_payload(0x24, MSIX, 0, 1), SET_IRQS, [one]), (irqs_payload(0x21, MSIX, 0, 1), SET_IRQS, []),
                (access_payload(0, CONFIG, 4096), REGION_READ, []),
                (access_payload(4, CONFIG, 2, b"\6\0"), REGION_WRITE, []),
                (struct.pack("<Q", 1) + multi_entry(0x808, BAR0, 8, b"abcdefgh"), REGION_WRITE_MULTI, [])):
            self.client.send(message(command, payload, flags=NO_REPLY), fds)
        self.client.sync()
        self.assertTrue(self.client.silent())
        self.assertEqual(events_of(one), 1)
        self.assertEqual(self.client.read_u(CONFIG, 4, 2), 6)
        self.assertEqual(self.client.read(BAR0, 0x808, 8), b"abcdefgh")
        self.assertEqual(self.client.unmap(0x4000, PAGE), 0)
        self.client.send(message(DEVICE_RESET, flags=NO_REPLY))
        self.assertEqual(self.client.read_u(CONFIG, 4, 2), 0)

    def test_bad_commands(self):
        ram = self.own(memory())
        for command in list(range(0, 20)) + [999]:
            if command != DEVICE_RESET:
                self.client.send(message(command, b"", flags=NO_REPLY))
            self.client.send(message(command, b"\xff" * 40, flags=NO_REPLY))
            self.client.send(message(command, b"\xff" * 40, flags=NO_REPLY), [ram, ram])
            self.client.send(message(command, bytes(40), flags=NO_REPLY | 2))
        self.client.sync()
        self.assertTrue(self.client.silent())


if __name__ == "__main__":
    unittest.main()
