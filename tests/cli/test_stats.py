# SPDX-License-Identifier: MIT
"""The statistics file."""

import json
import os
import struct
import time
import unittest

from support import TIMEOUT, Client, ServerTest, run


class Stats(ServerTest):
    def setUp(self):
        super().setUp()
        self.file = self.directory / "stats.json"

    def stats(self):
        return json.loads(self.file.read_text())

    def test_it_exists_from_the_start_and_says_whose_it_is(self):
        server = self.start("--stats-file", str(self.file), "--backend", "loopback:mode=zeros", "--mac",
                            "02:00:00:00:00:01")
        process = self.stats()["process"]
        self.assertEqual(process["socket"], str(self.socket))
        self.assertEqual(process["backend"], "loopback:mode=zeros")
        self.assertEqual(process["mac"], "02:00:00:00:00:01")
        self.assertEqual(process["pid"], server.pid)

    def test_it_is_rewritten_when_numbers_change_and_only_then(self):
        self.start("--stats-file", str(self.file), "--stats-interval", "0.1")
        before = os.stat(self.file).st_mtime_ns
        time.sleep(0.5)
        self.assertEqual(os.stat(self.file).st_mtime_ns, before)
        with Client(self.socket) as client:
            client.negotiate()
            deadline = time.monotonic() + TIMEOUT
            while self.stats()["vfio_user"]["connected"] == 0 and time.monotonic() < deadline:
                time.sleep(0.02)
            self.assertEqual(self.stats()["vfio_user"]["clients"], 1)

    def test_it_is_written_at_the_end_only_when_the_interval_is_0(self):
        server = self.start("-S", str(self.file), "--stats-interval", "0")
        with Client(self.socket) as client:
            client.negotiate()
        time.sleep(0.3)
        self.assertEqual(self.stats()["vfio_user"]["clients"], 0)
        server.end()
        self.assertEqual(self.stats()["vfio_user"]["clients"], 1)

    def test_no_reader_ever_sees_half_a_file(self):
        self.start("-S", str(self.file), "--stats-interval", "0.1")
        deadline = time.monotonic() + 1.0
        with Client(self.socket) as client:
            client.negotiate()
            while time.monotonic() < deadline:
                # Any command changes the numbers, so that the file is written again.
                client.call(4, struct.pack("<4I", 16, 0, 0, 0))
                self.stats()
        self.assertEqual(sorted(os.listdir(self.directory)), ["ernic.sock", "stats.json"])

    def test_a_place_that_cannot_be_written_is_told_before_the_socket_exists(self):
        for path in (self.directory / "missing" / "stats.json", self.directory, "/dev/null"):
            with self.subTest(path=path):
                result = run("--socket", str(self.socket), "--stats-file", str(path), "--log-level", "error")
                self.assertEqual(result.returncode, 1)
                self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
                self.assertIn("cannot write statistics file", result.stderr)
                self.assertFalse(self.socket.exists())


if __name__ == "__main__":
    unittest.main()
