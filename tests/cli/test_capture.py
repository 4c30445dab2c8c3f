# SPDX-License-Identifier: MIT
"""The capture file: where it may be, and what it looks like. What is in it is looked at by system tests."""

import os
import struct
import unittest

from support import ServerTest, run


def blocks(data):
    """Types of the blocks of a pcapng file, both lengths compared."""
    types = []
    while data:
        kind, size = struct.unpack_from("<II", data)
        assert struct.unpack_from("<I", data, size - 4)[0] == size, "the two lengths of a block differ"
        types.append(kind)
        data = data[size:]
    return types


class Capture(ServerTest):
    def setUp(self):
        super().setUp()
        self.file = self.directory / "capture.pcapng"

    def test_it_is_a_file_of_its_own_format_from_start_to_end(self):
        server = self.start("--pcap", f"{self.file},snaplen=128")
        self.assertEqual(blocks(self.file.read_bytes()), [0x0A0D0D0A, 1])
        self.assertEqual(os.stat(self.file).st_mode & 0o777, 0o600)
        self.assertEqual(server.end()[0], 0)
        self.assertEqual(blocks(self.file.read_bytes()), [0x0A0D0D0A, 1, 5])

    def test_an_old_file_is_replaced(self):
        self.file.write_bytes(b"x" * 10000)
        self.start("--pcap", str(self.file))
        self.assertEqual(blocks(self.file.read_bytes()), [0x0A0D0D0A, 1])

    def test_a_place_that_cannot_be_written_is_told_before_the_socket_exists(self):
        os.mkfifo(self.directory / "pipe")
        for path in (self.directory / "missing" / "x", self.directory, "/dev/full", self.directory / "pipe"):
            with self.subTest(path=path):
                result = run("--socket", str(self.socket), "--pcap", str(path), "--log-level", "error")
                self.assertEqual(result.returncode, 1)
                self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
                self.assertIn("cannot write capture file", result.stderr)
                self.assertFalse(self.socket.exists())

    def test_a_bad_spelling_is_refused(self):
        for value in ("", ",snaplen=64", f"{self.file},snaplan=64", f"{self.file},snaplen=1"):
            with self.subTest(value=value):
                result = run("--socket", str(self.socket), "--pcap", value)
                self.assertEqual(result.returncode, 2)
                self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
                self.assertFalse(self.file.exists())


if __name__ == "__main__":
    unittest.main()
