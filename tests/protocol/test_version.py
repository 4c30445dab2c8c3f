# SPDX-License-Identifier: MIT
"""VERSION: negotiation."""

import errno
import json
import struct
import unittest

from harness import *


class Version(ProtocolTest):
    def ask(self, payload, fds=()):
        """A fresh connection's first message."""
        client = self.reconnect()
        return client.request(VERSION, payload, fds)

    def assertNotAccepted(self, payload, fds=()):
        self.assertEqual(self.ask(payload, fds).error, errno.EINVAL, payload[:80])
        self.assertTrue(self.client.closed())

    def assertAccepted(self, payload):
        reply = self.ask(payload)
        self.assertEqual(reply.error, 0, payload[:80])
        self.client.sync()
        return reply

    def test_qemu_is_answered_within_the_size_of_its_request(self):
        reply = self.assertAccepted(version_payload())
        self.assertLessEqual(reply.size, 214)
        self.assertEqual(struct.unpack("<HH", reply.payload[:4]), (0, 0))
        self.assertEqual(reply.payload[-1], 0)
        capabilities = json.loads(reply.payload[4:-1])["capabilities"]
        self.assertEqual(capabilities, {"max_msg_fds": 16, "max_data_xfer_size": 1048576, "pgsizes": 4096,
                                        "max_dma_maps": 65535, "write_multiple": True})

    def test_text_is_optional(self):
        for text in (b"", b"\0", b"{}\0", b'{"capabilities":{}}\0'):
            reply = self.assertAccepted(version_payload(raw=text))
            self.assertNotIn(b"write_multiple", reply.payload)

    def test_smaller_transfer_size_is_kept(self):
        self.assertAccepted(version_payload({"capabilities": {"max_data_xfer_size": 4096}}))
        self.assertEqual(len(self.client.read(CONFIG, 0, 4096)), 4096)
        with self.assertRaises(OSError):
            self.client.read(BAR0, 0, 4097)

    def test_first_message_must_be_version(self):
        for command in (DMA_MAP, GET_INFO, REGION_READ, DEVICE_RESET, 14, 999):
            client = self.reconnect()
            self.assertEqual(client.error(command, bytes(32)), errno.EINVAL)
            self.assertTrue(client.closed())

    def test_first_message_with_no_reply_that_is_not_version_ends_silently(self):
        client = self.reconnect()
        client.send(message(DEVICE_RESET, flags=NO_REPLY))
        self.assertTrue(client.closed())

    def test_version_without_reply_negotiates(self):
        client = self.reconnect()
        client.send(message(VERSION, version_payload(), flags=NO_REPLY))
        client.sync()
        self.assertTrue(client.silent())

    def test_second_version_is_refused(self):
        self.assertRefused(VERSION, version_payload())

    def test_short_payload(self):
        for size in range(4):
            self.assertNotAccepted(bytes(size))

    def test_other_major_version(self):
        for major in (1, 999, 0xffff):
            self.assertNotAccepted(version_payload(major=major))

    def test_higher_minor_version_is_answered_with_ours(self):
        reply = self.assertAccepted(version_payload(minor=5))
        self.assertEqual(struct.unpack("<HH", reply.payload[:4]), (0, 0))

    def test_descriptors_are_refused(self):
        ram = self.own(memory())
        self.assertNotAccepted(version_payload(), [ram])

    def test_text_without_terminator(self):
        self.assertNotAccepted(version_payload(raw=b"{}"))

    def test_text_that_is_no_json_object(self):
        for text in (b"{", b'"', b"23", b"[]", b"null", b"\xff\xfe", b'{"capabilities":"23"}', b'{"capabilities":[]}',
                     b'{"capabilities":{}', b"{}{}"):
            self.assertNotAccepted(version_payload(raw=text + b"\0"))

    def test_capabilities_with_wrong_types_or_values(self):
        for key, value in (("max_msg_fds", "foo"), ("max_msg_fds", -1), ("max_msg_fds", 1025), ("max_msg_fds", 2**70),
                           ("max_data_xfer_size", "x"), ("max_data_xfer_size", -1), ("max_dma_maps", None),
                           ("pgsizes", 4095), ("pgsizes", "foo"), ("migration", "23"), ("migration", {"pgsize": "foo"}),
                           ("migration", {"pgsize": 4095}), ("write_multiple", "yes")):
            self.assertNotAccepted(version_payload({"capabilities": {key: value}}))

    def test_unknown_keys_are_ignored(self):
        self.assertAccepted(version_payload({"capabilities": {"twin_socket": {"supported": True}, "x": [1]}, "y": 1}))

    def test_deep_and_huge_texts_are_harmless(self):
        before = self.server.resident()
        for text in (b"[" * 60000, b'{"a":' * 10000, b" " * MAX_TRANSFER, b"[" * MAX_TRANSFER):
            self.assertNotAccepted(version_payload(raw=text + b"\0"))
        self.assertAccepted(version_payload(raw=b'{"x":' + b"[" * 30000 + b"]" * 30000 + b"}\0"))
        self.assertLess(self.server.resident() - before, 16 << 20)


if __name__ == "__main__":
    unittest.main()
