# SPDX-License-Identifier: MIT
"""Namespaces in files that come while the server runs: handed over open, because the sandbox opens none."""

import contextlib
import json
import os
import subprocess

from support import CTL, TIMEOUT, Control, ServerTest, clean_environment

MIB = 1 << 20


class NamespacesInFiles(ServerTest):
    def setUp(self):
        super().setUp()
        self.server = self.start_with_control("--backend", "nvmeof:size=1M")

    def ctl(self, *arguments, code=0):
        done = subprocess.run([CTL, "--json", *arguments], capture_output=True, timeout=TIMEOUT, check=False, text=True,
                              cwd=self.directory, env=clean_environment(ERNIC_CONTROL=str(self.control)))
        self.assertEqual(done.returncode, code, done)
        return done.stderr if code else json.loads(done.stdout)

    def namespaces(self):
        return {row["nsid"]: row for row in self.ctl("nvme", "list")["namespaces"]}

    def file(self, name, size):
        path = self.directory / name
        path.write_bytes(b"\xa5" * size)
        return path

    def test_a_file_comes_is_used_and_goes(self):
        path = self.file("disk", 2 * MIB)
        self.assertEqual(self.ctl("nvme", "add", "--file", "disk", "--bs", "4096")["nsid"], 2)
        row = self.namespaces()[2]
        self.assertEqual((row["medium"], row["bytes"], row["block"], row["writable"]), (str(path), 2 * MIB, 4096, True))
        self.assertIn("is in use", self.ctl("nvme", "add", "--file", "disk", code=1))
        self.ctl("nvme", "remove", "2")
        self.assertNotIn(2, self.namespaces())
        self.assertEqual(self.ctl("nvme", "add", "1M", "--file", "disk", "--ro", "--nsid", "9")["nsid"], 9)
        row = self.namespaces()[9]
        self.assertEqual((row["bytes"], row["writable"]), (MIB, False))
        self.assertEqual(path.stat().st_size, 2 * MIB)
        self.assertEqual(set(path.read_bytes()), {0xa5})

    def test_a_new_file_is_made_as_large_as_asked_for(self):
        self.ctl("nvme", "add", "3M", "--file", "new")
        made = (self.directory / "new").stat()
        self.assertEqual((made.st_size, made.st_mode & 0o777), (3 * MIB, 0o600))
        self.assertIn("'nowhere'", self.ctl("nvme", "add", "--file", "nowhere", code=1))

    def test_what_cannot_be_is_refused_and_leaves_nothing(self):
        self.file("odd", 1000)
        self.file("small", MIB)
        for words, sentence in ((["--file", "odd"], "no multiple"), (["2M", "--file", "small"], "too few"),
                                (["--file", "/dev/null"], "neither a file nor a block device"),
                                (["--file", "."], "Is a directory"),
                                (["1000", "--file", "small"], "no multiple of the block size"),
                                (["1M", "--file", "fresh", "--nsid", "1"], "namespace 1 already")):
            with self.subTest(words=words):
                self.assertIn(sentence, self.ctl("nvme", "add", *words, code=1))
        self.assertEqual(list(self.namespaces()), [1])
        self.assertFalse((self.directory / "fresh").exists())
        self.assertIn("needs a size", self.ctl("nvme", "add", code=2))
        self.assertIn("--file", self.ctl("nvme", "add", "1M", "--ro", code=2))

    def test_by_hand(self):
        path = self.file("disk", MIB)
        with Control(self.control) as control, contextlib.ExitStack() as stack:
            def fd(flags):
                opened = os.open(path, flags)
                stack.callback(os.close, opened)
                return opened

            self.assertEqual(control.error("nvme-add", file="disk"), "invalid_argument")
            self.assertEqual(control.error("nvme-add", size="1M", ro=True), "invalid_argument")
            both = fd(os.O_RDWR | os.O_APPEND)
            for arguments in ({"file": ""}, {"file": "a\nb"}, {"file": "disk", "ro": 1}, {"file": 3}):
                with self.subTest(arguments=arguments):
                    self.assertEqual(control.error("nvme-add", [both], **arguments), "invalid_argument")
            self.assertEqual(control.error("nvme-add", [fd(os.O_RDONLY)], file="disk"), "invalid_argument")
            self.assertEqual(control.error("nvme-add", [fd(os.O_WRONLY)], file="disk", ro=True), "invalid_argument")
            self.assertEqual(control.error("nvme-add", [fd(os.O_PATH)], file="disk", ro=True), "io")
            self.assertEqual(control.result("nvme-add", [both], file="disk")["nsid"], 2)
            # The same open file again, which no lock keeps out.
            self.assertEqual(control.error("nvme-add", [both], file="other"), "busy")
            # It was left alone: nobody else can lock it, and it has its size.
            self.assertEqual(control.error("nvme-add", [both], file="other", new=True, size="2M"), "busy")
            self.assertEqual(path.stat().st_size, MIB)
            self.assertIn("is in use", self.ctl("nvme", "add", "--file", "disk", "--ro", code=1))

    def test_at_the_same_time(self):
        """Each client waits for its own; between clients the first one has the number, or the file."""
        files = [os.open(self.file(f"disk{i}", MIB), os.O_RDWR) for i in range(4)]
        with contextlib.ExitStack() as stack:
            for opened in files:
                stack.callback(os.close, opened)
            clients = [stack.enter_context(Control(self.control)) for _ in range(6)]
            requests = [({"nsid": 5}, 0), ({"nsid": 5}, 1), ({}, 2), ({}, 3), ({"nsid": 9}, 2), ({"nsid": 10, "ro": True}, 3)]
            for client, (arguments, which) in zip(clients, requests):
                request = {"id": 1, "command": "nvme-add", "arguments": {"file": "x", **arguments}}
                client.send(json.dumps(request).encode() + b"\n", [files[which]])
            answers = [client.line() for client in clients]
        self.assertEqual(sum(answer["ok"] for answer in answers[:2]), 1, answers)
        self.assertEqual(sum(answer["ok"] for answer in answers[2::2]), 1, answers)
        self.assertEqual(sum(answer["ok"] for answer in answers[3::2]), 1, answers)
        self.assertEqual(len(self.namespaces()), 4)


if __name__ == "__main__":
    import unittest
    unittest.main()
