# SPDX-License-Identifier: MIT
"""ernicctl against the real server: what it prints, its exit codes, captures, completion."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from support import CTL, TIMEOUT, ServerTest, clean_environment
from test_capture import blocks


class Ernicctl(ServerTest):
    def ctl(self, *arguments, code=0, **options):
        """Standard output (or standard error, when it fails) of one call."""
        done = subprocess.run([CTL, *arguments], capture_output=True, timeout=TIMEOUT, check=False,
                              env=clean_environment(**getattr(self, "environment", {})), **options)
        self.assertEqual(done.returncode, code, done)
        return (done.stderr if code else done.stdout).decode()

    def start(self, *arguments):
        server = self.start_with_control(*arguments)
        self.environment = {"ERNIC_CONTROL": str(self.control)}
        return server

    def test_every_reader_prints_for_people_and_as_json(self):
        server = self.start()
        self.assertIn(str(server.pid), self.ctl("status"))
        self.assertIn("link            up", self.ctl("status"))
        self.assertIn("segment.ports.guest.frames_in", self.ctl("stats"))
        self.assertNotIn("rdma.", self.ctl("stats", "--match", "segment."))
        self.assertIn("guest", self.ctl("ports"))
        self.assertIn("no peers", self.ctl("peers"))
        self.assertIn("no addresses", self.ctl("macs"))
        self.assertIn("control protocol 1", self.ctl("version"))
        for command in (["status"], ["stats"], ["ports"], ["peers"], ["macs"], ["link"], ["log-level"], ["version"]):
            with self.subTest(command=command):
                self.assertIsInstance(json.loads(self.ctl("--json", *command)), dict)

    def test_link_and_log_level_are_switched(self):
        self.start()
        self.assertEqual(self.ctl("link", "down"), "link down (by operator)\n")
        self.assertEqual(self.ctl("link"), "link down (by operator)\n")
        self.assertEqual(self.ctl("link", "up"), "link up\n")
        self.assertEqual(self.ctl("log-level", "warn"), "log level warn\n")
        self.assertEqual(self.ctl("log-level"), "log level warn\n")

    def test_a_capture_to_a_file(self):
        self.start()
        file = self.directory / "x.pcapng"
        self.assertIn(str(file), self.ctl("pcap", "start", "x.pcapng", "--snaplen", "96", cwd=self.directory))
        self.assertEqual(os.stat(file).st_mode & 0o777, 0o600)
        self.assertIn("is running", self.ctl("pcap", "start", str(file), code=1))
        self.assertIn("0 packets, 0 dropped", self.ctl("pcap", "stop"))
        self.assertEqual(blocks(file.read_bytes()), [0x0A0D0D0A, 1, 5])
        self.assertIn("no capture is running", self.ctl("pcap", "stop", code=1))
        self.assertIn("cannot write", self.ctl("pcap", "start", "/missing/x", code=1))

    def test_a_capture_to_standard_output(self):
        self.start()
        file = self.directory / "y.pcapng"
        with open(file, "wb") as out:
            subprocess.run([CTL, "pcap", "start", "-"], stdout=out, stderr=subprocess.DEVNULL, timeout=TIMEOUT,
                           check=True, env=clean_environment(**self.environment))
        self.ctl("pcap", "stop")
        self.assertEqual(blocks(file.read_bytes()), [0x0A0D0D0A, 1, 5])
        with subprocess.Popen([CTL, "pcap", "start", "-"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              env=clean_environment(**self.environment)) as live:
            self.assertEqual(live.wait(TIMEOUT), 0)
            self.assertEqual(blocks(os.read(live.stdout.fileno(), 4096)),
                             [0x0A0D0D0A, 1])
            self.ctl("pcap", "stop")
            self.assertEqual(blocks(live.stdout.read()), [5])

    def test_watch_repeats(self):
        self.start()
        with subprocess.Popen([CTL, "--json", "stats", "--match", "control.", "--watch", "0.1"],
                              stdout=subprocess.PIPE, env=clean_environment(**self.environment)) as watch:
            seen = [json.loads(watch.stdout.readline())["control"]["requests"] for _ in range(3)]
            watch.terminate()
        self.assertEqual(seen, [seen[0], seen[0] + 1, seen[0] + 2])

    def test_what_the_server_refuses_is_exit_code_1(self):
        self.start()
        self.assertEqual(self.ctl("log-level", "loud", code=1).count("\n"), 1)
        self.assertIn("64", self.ctl("pcap", "start", "/dev/null", "--snaplen", "1", code=1))

    def test_without_a_server_it_says_what_to_do(self):
        missing = str(self.directory / "no.sock")
        text = self.ctl("-c", missing, "status", code=1)
        self.assertEqual(text, f"ernicctl: no server listens on '{missing}': start it with --control {missing}, "
                               "or name its socket with -c\n")
        server = self.start()
        server.process.kill()
        server.process.wait()
        self.assertIn("no server listens", self.ctl("status", code=1))

    def test_the_socket_of_the_vmm_is_not_taken_for_it(self):
        self.start()
        self.assertEqual(self.ctl("-c", str(self.socket), "status", code=1).count("\n"), 1)

    def test_usage_errors_are_exit_code_2(self):
        for words in ([], ["stauts"], ["pcap"], ["link", "sideways"], ["--bad"]):
            with self.subTest(words=words):
                self.assertEqual(self.ctl(*words, code=2).count("\n"), 1)
        self.assertIn("usage", self.ctl("--help").lower())


class Completion(unittest.TestCase):
    def script(self, shell):
        return subprocess.run([CTL, "completion", shell], capture_output=True, text=True, check=True).stdout

    def complete(self, *words):
        """What bash offers behind `ernicctl WORDS`, the last one half typed."""
        quoted = " ".join(f"'{word}'" for word in ("ernicctl", *words))
        script = (f"{self.script('bash')}\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words)}; _ernicctl; "
                  "printf '%s\\n' \"${COMPREPLY[@]}\"")
        done = subprocess.run(["bash", "--norc", "-eu", "-c", script], capture_output=True, text=True, check=True)
        return done.stdout.split()

    def test_bash(self):
        subprocess.run(["bash", "-n"], input=self.script("bash"), text=True, check=True)
        self.assertEqual(self.complete("sta"), ["status", "stats"])
        self.assertEqual(self.complete("pcap", "s"), ["start", "stop"])
        self.assertEqual(self.complete("-c", "/x", "link", ""), ["up", "down"])
        self.assertEqual(self.complete("fault", "clear", ""), ["all"])
        self.assertEqual(self.complete("status", "--j"), ["--json"])
        self.assertEqual(self.complete("stats", "--match", "rd"), ["rdma."])
        self.assertEqual(self.complete("-c", "/et"), ["/etc"])
        self.assertEqual(self.complete("nvme", "re"), ["remove", "resize"])
        self.assertEqual(self.complete("nvme", "add", "64M", "--n"), ["--nsid", "--nqn"])
        self.assertEqual(self.complete("nvme", "add", "64M", "--bs", ""), ["512", "1024", "2048", "4096"])
        self.assertEqual(self.complete("nvme", "resize", "3", "1G", "--nq"), ["--nqn"])
        self.assertEqual(self.complete("nvme", "ana", "10.0.0.1", "in"), ["inaccessible"])

    def test_every_command_is_offered(self):
        help_text = subprocess.run([CTL, "--help"], capture_output=True, text=True, check=True).stdout
        listed = re.split("(?i)subcommands:", help_text)[1]
        commands = set(re.findall(r"^  (\S+)", listed, re.M))
        self.assertEqual(set(self.complete("")), commands)
        for shell in ("zsh", "fish"):
            self.assertIn(" ".join(self.complete("")), self.script(shell))

    @unittest.skipUnless(shutil.which("fish"), "there is no fish")
    def test_fish(self):
        def complete(line):
            done = subprocess.run(["fish", "--no-config", "-c", f"{self.script('fish')}\ncomplete -C '{line}'"],
                                  capture_output=True, text=True, check=True)
            return [word.split("\t")[0] for word in done.stdout.splitlines()]
        self.assertEqual(complete("ernicctl sta"), ["stats", "status"])
        self.assertEqual(complete("ernicctl link "), ["down", "up"])
        self.assertEqual(complete("ernicctl fault clear "), ["all"])
        self.assertEqual(complete("ernicctl pcap start /etc/hostn"), ["/etc/hostname"])
        self.assertEqual(complete("ernicctl nvme re"), ["remove", "resize"])
        self.assertEqual(complete("ernicctl nvme ana 10.0.0.1 in"), ["inaccessible"])
        self.assertEqual(complete("ernicctl nvme ana in"), [])
        self.assertEqual(complete("ernicctl nvme add 64M --n"), ["--nqn", "--nsid"])
        self.assertEqual(complete("ernicctl fault add --n"), [])

    @unittest.skipUnless(shutil.which("zsh"), "there is no zsh")
    def test_zsh(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        pathlib.Path(folder, "_ernicctl").write_text(self.script("zsh"))
        asker = pathlib.Path(__file__).with_name("zsh_completion.zsh")

        def complete(line):
            done = subprocess.run(["zsh", "-f", asker, folder, line], capture_output=True, text=True, check=True,
                                  timeout=60)
            return sorted(done.stdout.split())
        self.assertEqual(complete("ernicctl sta"), ["stats", "status"])
        self.assertEqual(complete("ernicctl link "), ["down", "up"])
        self.assertEqual(complete("ernicctl fault "), ["add", "clear", "list"])
        self.assertEqual(complete("ernicctl nvme re"), ["remove", "resize"])
        self.assertEqual(complete("ernicctl nvme ana 10.0.0.1 in"), ["inaccessible"])
        self.assertEqual(complete("ernicctl nvme resize 3 in"), [])

    def test_an_installation_brings_them_along(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        build = pathlib.Path(CTL).resolve().parent.parent
        subprocess.run(["cmake", "--install", build, "--prefix", folder], capture_output=True, check=True)
        for file, shell in (("bash-completion/completions/ernicctl", "bash"), ("zsh/site-functions/_ernicctl", "zsh"),
                            ("fish/vendor_completions.d/ernicctl.fish", "fish")):
            self.assertEqual(pathlib.Path(folder, "share", file).read_text(), self.script(shell))
        version = subprocess.run([f"{folder}/bin/ernicctl", "--version"], capture_output=True, text=True, check=True)
        self.assertRegex(version.stdout, r"\d+\.\d+")


if __name__ == "__main__":
    unittest.main()
