# SPDX-License-Identifier: MIT
"""Command lines that are refused or answered at once: exit codes, one sentence, no socket left behind."""

import os
import unittest

from support import ServerTest, run

# (arguments, what the sentence must say)
REFUSED = [
    (["--sokcet", "/tmp/x"], "unknown option '--sokcet': did you mean '--socket'?"),
    (["--bakend=loopback"], "unknown option '--bakend': did you mean '--backend'?"),
    (["--socket-grup", "root"], "did you mean '--socket-group'?"),
    (["--stats"], "did you mean '--stats-file'?"),
    (["--Verbose"], "did you mean '--verbose'?"),
    (["-x"], "unknown option '-x'"),
    (["-socket", "/tmp/x"], "did you mean '--socket'?"),
    (["loopback"], "unexpected argument 'loopback'"),
    (["--mac"], "option '--mac' needs a value"),
    (["--verbose=yes"], "option '--verbose' takes no value"),
    (["-b", "none", "-b", "none"], "option '--backend' is given 2 times"),
    (["-b", "loopbak"], "unknown backend 'loopbak': did you mean 'loopback'?"),
    (["-b", "loopback:mode=zeroes"], "unknown loopback mode 'zeroes': did you mean 'zeros'?"),
    (["-b", "loopback:moed=zeros"], "unknown loopback option 'moed': did you mean 'mode'?"),
    (["-b", "loopback:md5=1"], "write just 'md5'"),
    (["-b", "none:md5"], "write just 'none'"),
    (["--target", "ecko:ip=10.0.0.2/24"], "unknown target 'ecko': did you mean 'echo'?"),
    (["--target", "echo"], "target 'echo' needs an address"),
    (["--target", "echo:pi=10.0.0.2/24"], "unknown echo option 'pi': did you mean 'ip'?"),
    (["--target", "echo:ip=10.0.0.2"], "write for example 'ip=10.0.0.2/24'"),
    (["--target", "echo:ip=10.0.0.255/24"], "broadcast address"),
    (["--target", "echo:ip=fd00::2/48"], "write 'fd00::2/64'"),
    (["--target", "echo:ip=10.0.0.2/24,mtu=1000"], "the nearest valid value is '1280'"),
    (["--target", "echo:ip=10.0.0.2/24", "--target", "echo:ip=10.0.0.2/24"], "10.0.0.2 is given to two services"),
    (["--target", "echo:ip=10.0.0.2/24", "--dhcp", "10.0.0.9-10.0.0.20,ip=10.0.0.2"], "given to two services"),
    (["--mac", "02:00:00:00:00:05", "--target", "echo:ip=10.0.0.2/24,mac=02:00:00:00:00:05"], "given to two"),
    (["--backend", "nvmeof:sizze=1M"], "unknown nvmeof option 'sizze': did you mean 'size'?"),
    (["--backend", "nvmeof:size=1000"], "the nearest valid value is '512'"),
    (["--backend", "nvmeof", "--target", "nvmeof:nqn=other"], "192.168.200.1 is given to two services"),
    (["--backend", "nvmeof", "--target", "nvmeof:ip=192.168.200.3"], "'nvmet-test' is given to two targets"),
    (["--backend", "loopback:mode=zeros", "--target", "nvmeof"], "leave out 'mode=..'"),
    (["--backend", "none", "--target", "nvmeof"], "choose backend 'loopback' or 'tcp'"),
    (["--backend", "nvmeof", "--target", "nvmeof:path-of=nvmet-tset,ip=192.168.200.3"], "did you mean 'nvmet-test'?"),
    (["--backend", "nvmeof", "--target", "nvmeof:path-of=nvmet-test"], "needs an address of its own"),
    (["--target", "nvmeof:path-of=x,ip=192.168.200.3"], "there is no target"),
    (["--dhcp", "10.0.0.100"], "write for example '10.0.0.100-10.0.0.200'"),
    (["--dhcp", "10.0.0.200-10.0.0.100"], "write '10.0.0.100-10.0.0.200'"),
    (["--dhcp", "10.0.0.100-10.0.1.100"], "not a host's in the subnet 10.0.0.0/24"),
    (["--dhcp", "10.0.0.100-10.0.0.200,rooter=10.0.0.1"], "unknown dhcp option 'rooter': did you mean 'router'?"),
    (["--dhcp", "10.0.0.100-10.0.0.200,lease=1"], "the nearest valid value is '60'"),
    (["--stack-memory", "64"], "add one or leave it out"),
    (["--target", "echo:ip=10.0.0.2/24", "--stack-memory", "0"], "the nearest valid value is '1'"),
    (["-m", "02:00:00:00:00"], "six pairs of hex digits"),
    (["-m", "01:00:5e:00:00:01"], "nearest unicast one is '02:00:5e:00:00:01'"),
    (["-L", "warning"], "unknown log level 'warning': did you mean 'warn'?"),
    (["--sandbox", "yes"], "(valid: on, off)"),
    (["--busy-poll", "20us"], "write microseconds such as '20'"),
    (["--busy-poll", "2000000"], "the largest valid value is '1000000'"),
    (["--stats-file", "s", "--stats-interval", "0.001"], "the nearest valid value is '0.1'"),
    (["--stats-interval", "5"], "'--stats-file FILE'"),
    (["--socket-group", "roott"], "did you mean 'root'?"),
    (["--socket", "/tmp/" + "x" * 120], "at most 107"),
]


class Options(ServerTest):
    def test_anything_wrong_is_one_sentence_and_exit_code_2(self):
        for arguments, sentence in REFUSED:
            with self.subTest(arguments=arguments):
                own_socket = [] if "socket" in arguments[0] else ["--socket", str(self.socket)]
                result = run(*own_socket, *arguments)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertEqual(result.stdout, "")
                self.assertTrue(result.stderr.startswith("rocm-ernic: "), result.stderr)
                self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
                self.assertIn(sentence, result.stderr)
                self.assertEqual(os.listdir(self.directory), [])

    def test_a_bad_level_in_the_environment_is_refused_unless_the_flag_wins(self):
        result = run("--socket", str(self.socket), ERNIC_LOG_LEVEL="inf")
        self.assertEqual(result.returncode, 2)
        self.assertIn("ERNIC_LOG_LEVEL 'inf': did you mean 'info'?", result.stderr)
        self.start("--log-level", "info", ERNIC_LOG_LEVEL="inf")

    def test_version(self):
        result = run("--version")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertRegex(result.stdout, r"^rocm-ernic \d+\.\d+\.\d+\n$")

    def test_help_names_every_option(self):
        for flag in ("-h", "--help"):
            result = run(flag)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            for option in ("--socket", "--socket-group", "--backend", "--tap", "--mac", "--stats-file",
                           "--stats-interval", "--log-file", "--log-level", "--verbose", "--sandbox", "--busy-poll", "--version"):
                self.assertIn(option, result.stdout)
            self.assertLessEqual(max(map(len, result.stdout.splitlines())), 100)

    def test_every_backend_spelling_starts(self):
        modes = ("preserve", "zeros", "ones", "increment", "decrement", "alternate", "random")
        for spec in ("none", "loopback", "loopback:md5", *(f"loopback:mode={mode}" for mode in modes),
                     "loopback:mode=zeros,md5", "nvmeof", "nvmeof:size=1M,ns=size=2M;bs=4096"):
            with self.subTest(spec=spec):
                server = self.start("--backend", spec)
                self.assertEqual(server.end()[0], 0)


if __name__ == "__main__":
    unittest.main()
