# SPDX-License-Identifier: MIT
"""The --fault option: accepted many times, told in the log, refused before the socket exists."""

import unittest

from support import ServerTest, run


class Faults(ServerTest):
    def test_each_is_told_in_the_log(self):
        server = self.start("--fault", "drop,opcode=write,every=100", "--fault", "link-down=1ms")
        self.assertEqual(server.end()[0], 0)
        self.assertIn(b"fault=1 added: drop,opcode=write,every=100", server.log)
        self.assertIn(b"fault=2 added: link-down=1ms", server.log)

    def test_a_bad_spelling_is_refused(self):
        for value, hint in (("dorp", "'drop'"), ("drop,opcode=wirte", "'write'"), ("delay=5", "delay=5ms"), ("", "empty")):
            with self.subTest(value=value):
                result = run("--socket", str(self.socket), "--fault", value)
                self.assertEqual(result.returncode, 2)
                self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
                self.assertIn(hint, result.stderr)
                self.assertFalse(self.socket.exists())


if __name__ == "__main__":
    unittest.main()
