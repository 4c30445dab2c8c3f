# SPDX-License-Identifier: MIT
"""REGION_WRITE_MULTI."""

import errno
import struct
import unittest

from harness import *

COMMAND = 0x808


def multi(*entries, count=None):
    return struct.pack("<Q", len(entries) if count is None else count) + b"".join(entries)


class RegionWriteMulti(ProtocolTest):
    def test_entries_are_executed_in_order(self):
        self.client.send(message(REGION_WRITE_MULTI, multi(multi_entry(COMMAND, BAR0, 8, b"AAAAAAAA"),
                                                           multi_entry(COMMAND + 2, BAR0, 4, b"BBBB"),
                                                           multi_entry(COMMAND + 3, BAR0, 1, b"C")), flags=NO_REPLY))
        self.assertEqual(self.client.read(BAR0, COMMAND, 8), b"AABCBBAA")
        self.assertTrue(self.client.silent())

    def test_two_hundred_entries_like_qemu(self):
        entries = [multi_entry(COMMAND, BAR0, 8, struct.pack("<Q", i)) for i in range(200)]
        self.client.send(message(REGION_WRITE_MULTI, multi(*entries), flags=NO_REPLY))
        self.assertEqual(self.client.read_u(BAR0, COMMAND, 8), 199)

    def test_reply_when_asked_for(self):
        reply = self.client.request(REGION_WRITE_MULTI, multi(multi_entry(COMMAND, BAR0, 2, b"xy")))
        self.assertEqual(reply.payload, struct.pack("<Q", 1))
        self.assertEqual(self.client.error(REGION_WRITE_MULTI, multi()), 0)

    def test_bad_entry_does_not_stop_the_others(self):
        for bad in (multi_entry(BAR0_SIZE, BAR0, 8), multi_entry(0, 9, 8), multi_entry(0, BAR0, 9),
                    multi_entry(0, BAR0, 0xffffffff), multi_entry(2**64 - 1, BAR0, 8)):
            self.client.write(BAR0, COMMAND, bytes(8))
            good = multi_entry(COMMAND, BAR0, 8, b"reached!")
            self.assertEqual(self.client.error(REGION_WRITE_MULTI, multi(bad, good)), errno.EINVAL)
            self.assertEqual(self.client.read(BAR0, COMMAND, 8), b"reached!")

    def test_count_that_does_not_match(self):
        entry = multi_entry(COMMAND, BAR0, 8)
        for count in (0, 2, 2**61, 2**64 - 1):
            self.assertRefused(REGION_WRITE_MULTI, multi(entry, count=count))
        self.assertRefused(REGION_WRITE_MULTI, multi(entry)[:-1])
        self.assertRefused(REGION_WRITE_MULTI, b"1234567")
        self.assertRefused(REGION_WRITE_MULTI, multi(*[entry] * 5000))

    def test_refused_when_not_negotiated(self):
        client = self.reconnect().negotiate({"capabilities": {}})
        self.assertEqual(client.error(REGION_WRITE_MULTI, multi(multi_entry(COMMAND, BAR0, 8))), errno.ENOTSUP)


if __name__ == "__main__":
    unittest.main()
