# SPDX-License-Identifier: MIT
"""Where the log goes and how much of it."""

import unittest

from support import Client, Server, ServerTest, run


class Log(ServerTest):
    def lines(self, *arguments, **changes):
        """What a server logs in a life with one client."""
        log = self.directory / "log"
        log.unlink(missing_ok=True)
        with Server(self.socket, "--log-file", str(log), *arguments, **changes) as server:
            server.wait_until_connectable()
            with Client(self.socket) as client:
                client.negotiate()
            code, _ = server.end()
            self.assertEqual(code, 0)
            self.assertEqual(server.log, b"", "nothing on standard error beside a log file")
        return log.read_text().splitlines()

    def test_levels_add_up(self):
        none, error, warn, info, debug = (self.lines("-L", level) for level in ("none", "error", "warn", "info", "debug"))
        self.assertEqual((none, error, warn), ([], [], []))
        self.assertGreater(len(info), 2)
        self.assertGreater(len(debug), len(info))
        self.assertRegex(info[0], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6} info app: version=")

    def test_the_environment_sets_the_level_and_flags_win(self):
        self.assertEqual(self.lines(ERNIC_LOG_LEVEL="error"), [])
        self.assertNotEqual(self.lines("--log-level", "info", ERNIC_LOG_LEVEL="error"), [])
        self.assertTrue(any(" debug " in line for line in self.lines("--verbose", ERNIC_LOG_LEVEL="error")))

    def test_a_log_file_is_continued(self):
        log = self.directory / "log2"
        log.write_text("before\n")
        with Server(self.socket, "--log-file", str(log)) as server:
            server.wait_until_connectable()
            server.end()
        self.assertTrue(log.read_text().startswith("before\n"))
        self.assertIn("listening on", log.read_text())

    def test_a_log_file_that_cannot_be_opened_is_told(self):
        (self.directory / "file").touch()
        result = run("--socket", str(self.socket), "--log-file", str(self.directory / "file" / "log"))
        self.assertEqual(result.returncode, 1)
        self.assertIn("cannot open log file", result.stderr)
        self.assertFalse(self.socket.exists())


if __name__ == "__main__":
    unittest.main()
