# SPDX-License-Identifier: MIT
"""Commands this server does not have: DIRTY_PAGES, DEVICE_FEATURE, MIG_DATA_*, DMA_READ/WRITE from a client, unknown ones."""

import errno
import struct
import unittest

from harness import *


class Unsupported(ProtocolTest):
    def test_unknown_commands(self):
        for command in (0, DIRTY_PAGES, 19, 20, 999, 0xffff):
            self.assertRefused(command, bytes(16))

    def test_commands_only_servers_send(self):
        for command in (DMA_READ, DMA_WRITE):
            self.assertRefused(command, struct.pack("<QQ", 0, 4096))

    def test_features(self):
        for feature in (1, 2, 6, 7, 8):
            for operation in (1 << 16, 1 << 17, 1 << 18, (1 << 18) | (1 << 16)):
                self.assertRefused(DEVICE_FEATURE, struct.pack("<II", 16, operation | feature) + bytes(8),
                                   expected=errno.ENOTSUP)

    def test_migration_data(self):
        for command in (MIG_READ, MIG_WRITE):
            self.assertRefused(command, struct.pack("<II", 8, 4096), expected=errno.ENOTSUP)


if __name__ == "__main__":
    unittest.main()
