# SPDX-License-Identifier: MIT
"""Starting, idling, ending: times, signals, the sandbox."""

import os
import pathlib
import signal
import subprocess
import time
import unittest

from support import BINARY, TIMEOUT, Client, Server, ServerTest, clean_environment, machine_is_busy, run

# Other people's load delays some ends, not all.
ATTEMPTS = 5


def shell(script, *arguments):
    """Runs a line of shell; $0, $1 .. are the arguments."""
    return subprocess.run(["bash", "-c", script, *map(str, arguments)], capture_output=True, text=True, timeout=60,
                          env=clean_environment(), check=False)


class Life(ServerTest):
    def limit(self):
        """Seconds an end may take. The leak check of an instrumented build is not the server's fault."""
        return TIMEOUT if self.instrumented() else 0.2

    def test_each_ending_signal_ends_it_cleanly_within_200_ms(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(signal=number.name):
                times = []
                while not times or (min(times) >= self.limit() and len(times) < ATTEMPTS):
                    server = self.start()
                    code, took = server.end(number)
                    times.append(took)
                    self.assertEqual(code, 0)
                    self.assertFalse(self.socket.exists())
                    self.assertIn(b"ending", server.log)
                self.assertLess(min(times), self.limit(), times)

    def test_it_ends_as_fast_with_a_client(self):
        times = []
        while not times or (min(times) >= self.limit() and len(times) < ATTEMPTS):
            server = self.start()
            with Client(self.socket) as client:
                client.negotiate()
                os.close(client.map_memory(0x100000, 1 << 20))
                code, took = server.end()
                times.append(took)
                self.assertEqual(code, 0)
                self.assertFalse(self.socket.exists())
                self.assertEqual(client.socket.recv(1), b"", "the client must see the end")
        self.assertLess(min(times), self.limit(), times)

    def test_an_error_that_cannot_be_written_is_still_exit_code_1(self):
        for redirection in ("2>/dev/full", "2>&-", "<&- >&- 2>&-"):
            with self.subTest(redirection=redirection):
                done = shell(f'"$0" --socket /nonexistent/x {redirection}', BINARY)
                self.assertEqual(done.returncode, 1)

    def test_closed_standard_descriptors_do_not_become_files(self):
        capture = self.directory / "c.pcapng"
        stats = self.directory / "s.json"
        done = shell('"$0" --verbose --socket "$1" --pcap "$2" --stats-file "$3" <&- >&- 2>&- & '
                     'i=0; until [ -S "$1" ] && [ -s "$3" ] || [ $i -gt 200 ]; do sleep 0.1; i=$((i+1)); done; '
                     'for fd in 0 1 2; do readlink /proc/$!/fd/$fd; done; kill $!; wait $!',
                     BINARY, self.socket, capture, stats)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(done.stdout.split(), ["/dev/null"] * 3)
        self.assertNotIn(b"listening", capture.read_bytes())

    def test_a_file_at_its_size_limit_is_an_error_like_others(self):
        done = shell('ulimit -f 1; "$0" --socket "$1" --stats-file "$2" --stats-interval 0.1 & '
                     'i=0; until [ -S "$1" ] || [ $i -gt 200 ]; do sleep 0.1; i=$((i+1)); done; sleep 0.5; kill $!; wait $!',
                     BINARY, self.socket, self.directory / "s.json")
        self.assertIn(done.returncode, (0, 1), done.stderr)

    def test_too_little_memory_is_one_sentence(self):
        if self.instrumented():
            self.skipTest("instrumented build")
        done = shell('ulimit -v 40000; "$0" --socket "$1" --pcap "$2"', BINARY, self.socket, self.directory / "c.pcapng")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("memory", done.stderr.lower())
        self.assertFalse(self.socket.exists())

    def test_a_server_that_is_refused_leaves_files_alone(self):
        capture, stats = self.directory / "c.pcapng", self.directory / "s.json"
        self.start()
        capture.write_bytes(b"precious")
        stats.write_bytes(b"precious")
        second = run("--socket", str(self.socket), "--pcap", str(capture), "--stats-file", str(stats))
        self.assertEqual(second.returncode, 1)
        self.assertEqual((capture.read_bytes(), stats.read_bytes()), (b"precious", b"precious"))

    def test_a_client_that_hangs_up_ends_nothing(self):
        server = self.start()
        for _ in range(20):
            Client(self.socket).socket.close()
        with Client(self.socket) as client:
            client.negotiate()
        self.assertEqual(server.end()[0], 0)

    def test_it_listens_within_50_ms(self):
        if self.instrumented():
            self.skipTest("instrumented build")
        elapsed, used = [], []
        for _ in range(5):
            with Server(self.socket, "--log-level", "none") as server:
                elapsed.append(server.wait_until_connectable())
                used.append(server.cpu_seconds())
                server.end()
        self.assertLess(min(used), 0.05, used)
        if not machine_is_busy():
            self.assertLess(min(elapsed), 0.05, elapsed)

    def test_an_idle_server_never_wakes_up(self):
        server = self.start()
        with Client(self.socket) as client:
            client.negotiate()
            for who in ("with a client", "after it left"):
                with self.subTest(who):
                    time.sleep(0.3)  # let the last activity end
                    before = server.status("voluntary_ctxt_switches")
                    time.sleep(1.0)
                    self.assertEqual(server.status("voluntary_ctxt_switches"), before)
                client.socket.close()

    def test_it_is_small(self):
        if self.instrumented():
            self.skipTest("instrumented build")
        server = self.start()
        self.assertLess(int(server.status("VmRSS").split()[0]), 24 * 1024)


class Sandbox(ServerTest):
    def setUp(self):
        super().setUp()
        if self.instrumented():
            self.skipTest("instrumented builds run without the sandbox")

    def test_the_sandbox_is_on_by_default_and_the_server_still_serves(self):
        server = self.start("--stats-file", str(self.directory / "stats.json"), "--stats-interval", "0.1")
        for _ in range(3):
            with Client(self.socket) as client:
                client.negotiate()  # the first answer comes from inside the sandbox
                self.assertEqual(server.status("Seccomp"), "2")
                self.assertEqual(server.status("NoNewPrivs"), "1")
                self.assertEqual(int(server.status("CapEff"), 16), 0)
                self.assertEqual(client.identity(), (0x1DD8, 0x1002))
                os.close(client.map_memory(0x100000, 4 << 20))
                self.assertEqual(len(client.config(0, 4096)), 4096)
                time.sleep(0.15)  # at least one rewrite of the statistics inside the sandbox
        self.assertEqual(server.end()[0], 0)

    def test_it_can_be_switched_off(self):
        server = self.start("--sandbox", "off")
        self.assertEqual(server.status("Seccomp"), "0")
        self.assertEqual(server.status("NoNewPrivs"), "0")
        with Client(self.socket) as client:
            client.negotiate()
        server.end()
        self.assertIn(b"sandbox off, as asked for", server.log)

    def test_memory_of_a_sandboxed_server_is_not_dumped(self):
        server = self.start()
        with Client(self.socket) as client:
            client.negotiate()
        # A process that is not dumpable belongs to root in /proc, whoever runs it; so do its details.
        self.assertEqual(pathlib.Path(f"/proc/{server.pid}/environ").stat().st_uid, 0)


if __name__ == "__main__":
    unittest.main()
