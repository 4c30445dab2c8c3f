# SPDX-License-Identifier: MIT
"""DEVICE_GET_REGION_IO_FDS: we offer none."""

import struct
import unittest

from harness import *


def request(argsz=16, flags=0, index=BAR2, count=0):
    return struct.pack("<4I", argsz, flags, index, count)


class DeviceGetRegionIoFds(ProtocolTest):
    def test_no_descriptors_are_offered(self):
        for index in (BAR0, BAR2, CONFIG):
            reply = self.client.request(GET_REGION_IO_FDS, request(index=index))
            self.assertEqual(struct.unpack("<4I", reply.payload), (16, 0, index, 0))

    def test_bad_requests(self):
        for bad in (request(argsz=15), request(argsz=MAX_TRANSFER + 1), request(flags=1), request(count=1),
                    request(index=9), request(index=1), request(index=VGA), request()[:15]):
            self.assertRefused(GET_REGION_IO_FDS, bad)


if __name__ == "__main__":
    unittest.main()
