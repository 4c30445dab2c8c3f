# SPDX-License-Identifier: MIT
"""Interfaces that --tap cannot use. One that it can needs root: lab/scenarios/80_ethernet.py."""

import pathlib
import unittest

from support import ServerTest, run


class Tap(ServerTest):
    def refusal(self, name):
        result = run("--socket", str(self.socket), "--tap", name)
        self.assertEqual(result.returncode, 1)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertIn(f"'{name}'", result.stderr)
        self.assertFalse(self.socket.exists())
        return result.stderr

    def test_a_name_no_interface_can_have(self):
        self.assertIn("1 to 15 characters", self.refusal("sixteen-letters-"))

    @unittest.skipUnless(pathlib.Path("/dev/net/tun").exists(), "no TAP driver on this host")
    def test_an_interface_that_is_not_there(self):
        self.assertIn("no such interface", self.refusal("no-such-tap"))

    @unittest.skipUnless(pathlib.Path("/dev/net/tun").exists(), "no TAP driver on this host")
    def test_an_interface_that_is_no_tap(self):
        self.assertIn("not a TAP", self.refusal("lo"))


if __name__ == "__main__":
    unittest.main()
