# SPDX-License-Identifier: MIT
"""The socket file: rights, default place, what may already lie there."""

import os
import signal
import socket
import stat
import unittest

from support import Client, Server, ServerTest, run


class Socket(ServerTest):
    def mode(self):
        return stat.S_IMODE(os.stat(self.socket).st_mode)

    def test_only_the_owner_may_connect(self):
        old = os.umask(0)
        self.addCleanup(os.umask, old)
        self.start()
        self.assertEqual(self.mode(), 0o600)

    def test_a_group_may_be_let_in(self):
        group = os.getgroups()[0] if os.getgroups() else os.getgid()
        self.start("--socket-group", str(group))
        self.assertEqual(self.mode(), 0o660)
        self.assertEqual(os.stat(self.socket).st_gid, group)

    def test_the_default_place_is_the_temporary_directory(self):
        path = self.directory / "vfio-user-rocm-ernic.sock"
        with Server(path, TMPDIR=str(self.directory)) as server:
            # The server is given the same path twice over: by --socket here, and by TMPDIR below.
            server.wait_until_listening()
            result = run(TMPDIR=str(self.directory))
            self.assertEqual(result.returncode, 1)
            self.assertIn(str(path), result.stderr)

    def test_the_socket_of_a_dead_server_is_replaced(self):
        first = self.start()
        first.end(signal.SIGKILL)
        self.assertTrue(self.socket.exists())
        self.start()
        with Client(self.socket) as client:
            self.assertEqual(client.negotiate().identity(), (0x1DD8, 0x1002))

    def test_a_socket_somebody_forgot_is_replaced(self):
        with socket.socket(socket.AF_UNIX) as stale:
            stale.bind(str(self.socket))
        self.start()

    def test_the_socket_of_a_live_server_is_refused_and_left_alone(self):
        first = self.start()
        before = os.stat(self.socket).st_ino
        result = run("--socket", str(self.socket))
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr.count("rocm-ernic: "), 1)
        self.assertIn(f"'{self.socket}'", result.stderr)
        self.assertEqual(os.stat(self.socket).st_ino, before)
        with Client(self.socket) as client:
            client.negotiate()
        self.assertEqual(first.end()[0], 0)
        self.assertFalse(self.socket.exists())

    def test_what_is_no_socket_is_refused_and_left_alone(self):
        self.socket.write_text("precious")
        result = run("--socket", str(self.socket))
        self.assertEqual(result.returncode, 1)
        self.assertEqual(self.socket.read_text(), "precious")

    def test_a_missing_directory_is_told(self):
        result = run("--socket", str(self.directory / "missing" / "s"), "--log-level", "error")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertIn("missing", result.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_roots_socket_in_a_users_directory_is_removed_at_the_end(self):
        # The sandbox drops capabilities, and this is the one case that needs them afterwards.
        os.chown(self.directory, 65534, 65534)
        os.chmod(self.directory, 0o755)
        server = self.start("--stats-file", str(self.directory / "stats.json"))
        self.assertEqual(server.end()[0], 0)
        self.assertEqual(os.listdir(self.directory), ["stats.json"])


if __name__ == "__main__":
    unittest.main()
