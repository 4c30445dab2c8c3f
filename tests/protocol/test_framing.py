# SPDX-License-Identifier: MIT
"""Headers, message boundaries, pipelining, file descriptors and their messages."""

import errno
import struct
import unittest

from harness import *


class Framing(ProtocolTest):
    def test_size_below_header_is_refused_and_ends_the_connection(self):
        for size in (0, 1, 15):
            client = self.reconnect().negotiate()
            client.send(header(GET_INFO, size, ident=9))
            reply = client.receive()
            self.assertEqual((reply.id, reply.error), (9, errno.EINVAL))
            self.assertTrue(client.closed())

    def test_size_above_maximum_is_refused_without_waiting_for_the_payload(self):
        before = self.server.resident()
        for size in (16 + 16 + MAX_TRANSFER + 1, 0x7fffffff, 0xffffffff):
            client = self.reconnect().negotiate()
            client.send(header(REGION_WRITE, size, ident=10))
            self.assertEqual(client.receive().error, errno.EINVAL)
            self.assertTrue(client.closed())
        self.assertLess(self.server.resident() - before, 8 << 20)

    def test_bad_size_with_no_reply_ends_the_connection_silently(self):
        self.client.send(header(REGION_WRITE, 3, flags=NO_REPLY))
        with self.assertRaises((EOFError, ConnectionResetError)):
            self.client.receive()

    def test_header_only_is_too_short_for_every_command_but_reset(self):
        for command in range(1, 20):
            if command == DEVICE_RESET:
                self.assertEqual(self.client.error(command), 0)
            else:
                self.assertIn(self.client.error(command), (errno.EINVAL, errno.ENOTSUP), command)

    def test_reply_without_question_is_ignored(self):
        for command in (DMA_READ, DMA_WRITE, GET_INFO, 999):
            self.client.send(message(command, bytes(40), flags=REPLY))
            self.client.send(message(command, b"", flags=REPLY | ERROR))
        self.client.sync()
        self.assertTrue(self.client.silent())

    def test_unknown_message_type_is_refused(self):
        for kind in (2, 3, 15):
            self.client.send(message(GET_INFO, bytes(16), ident=5, flags=kind))
            self.assertEqual(self.client.receive().error, errno.EINVAL)
        self.client.sync()

    def test_message_delivered_byte_by_byte(self):
        for byte in message(GET_INFO, struct.pack("<4I", 16, 0, 0, 0), ident=77):
            self.client.send(bytes([byte]))
            self.client.drained()
        self.assertEqual(self.client.receive().id, 77)

    def test_header_and_payload_in_separate_sends_with_descriptor_at_the_first_byte(self):
        ram = self.own(memory())
        whole = message(DMA_MAP, map_payload(0, PAGE), ident=3)
        for cut in (1, 2, 8, 15, 16, 17, 40):
            self.client.send(whole[:cut], [ram])
            self.client.drained()
            self.client.send(whole[cut:])
            self.assertEqual(self.client.receive().error, 0)
            self.assertEqual(self.server.mappings(), 1)
            self.assertEqual(self.client.unmap(0, PAGE), 0)

    def test_two_messages_in_one_segment(self):
        info = struct.pack("<4I", 16, 0, 0, 0)
        self.client.send(message(GET_INFO, info, ident=1) + message(GET_INFO, info, ident=2))
        self.assertEqual([self.client.receive().id for _ in range(2)], [1, 2])

    def test_fifty_pipelined_commands_are_answered_in_order(self):
        kinds = [(GET_INFO, struct.pack("<4I", 16, 0, 0, 0)), (REGION_READ, access_payload(0, CONFIG, 4096)),
                 (999, bytes(4)), (GET_REGION_INFO, struct.pack("<4IQQ", 32, 0, 2, 0, 0, 0)),
                 (REGION_WRITE, access_payload(4, CONFIG, 2, b"\6\0"))]
        self.client.send(b"".join(message(*kinds[i % 5], ident=i) for i in range(50)))
        for i in range(50):
            reply = self.client.receive()
            self.assertEqual((reply.id, reply.command), (i, kinds[i % 5][0]))
            self.assertEqual(reply.error, errno.EINVAL if i % 5 == 2 else 0)

    def test_same_id_may_be_used_again_while_outstanding(self):
        self.client.send(message(GET_INFO, struct.pack("<4I", 16, 0, 0, 0), ident=0xffff) * 3)
        self.assertEqual([self.client.receive().id for _ in range(3)], [0xffff] * 3)

    def test_descriptor_stays_with_its_message_when_messages_merge(self):
        ram = self.own(memory())
        # The kernel may hand both to the server in one read; the first map must stay without file.
        self.client.send(message(DMA_MAP, map_payload(0x100000, PAGE), ident=1))
        self.client.send(message(DMA_MAP, map_payload(0x200000, PAGE), ident=2), [ram])
        self.client.send(message(DMA_MAP, map_payload(0x300000, PAGE), ident=3))
        self.assertEqual([self.client.receive().error for _ in range(3)], [0, 0, 0])
        self.client.enable(msix=False)
        for iova, reached in ((0x100000, False), (0x200000, True), (0x300000, False)):
            self.client.make_card_write(iova)
            self.assertEqual(card_has_written(ram, 0), reached, hex(iova))

    def test_burst_of_messages_with_descriptors(self):
        ram = self.own(memory(64 * PAGE))
        for i in range(64):
            self.client.send(message(DMA_MAP, map_payload(i * PAGE, PAGE, i * PAGE), ident=i), [ram])
        self.assertEqual([self.client.receive().id for _ in range(64)], list(range(64)))
        self.assertEqual(self.server.mappings(), 1)
        self.assertEqual(self.client.unmap(0, 0, flags=2), 0)

    def test_descriptors_in_the_middle_of_a_message_are_closed(self):
        ram = self.own(memory())
        whole = message(GET_INFO, struct.pack("<4I", 16, 0, 0, 0))
        self.client.send(whole[:20])
        self.client.drained()
        self.client.send(whole[20:], [ram, ram])
        self.assertEqual(self.client.receive().error, 0)
        self.assertEqual(self.server.fds(), self.fds_with_client)

    def test_descriptors_of_refused_commands_are_closed(self):
        ram = self.own(memory())
        for command in (DMA_UNMAP, GET_INFO, GET_REGION_INFO, GET_REGION_IO_FDS, GET_IRQ_INFO, REGION_READ, REGION_WRITE,
                        DEVICE_RESET, REGION_WRITE_MULTI, DEVICE_FEATURE, 14, 999):
            self.assertEqual(self.client.error(command, bytes(32), [ram, ram]), errno.EINVAL, command)
        self.assertEqual(self.client.error(DMA_MAP, map_payload(0, PAGE), [ram, ram]), errno.EINVAL)
        self.assertEqual(self.server.fds(), self.fds_with_client)

    def test_posted_writes_with_descriptors_leave_none_open(self):
        ram = self.own(memory())
        for _ in range(20):
            self.client.send(message(REGION_WRITE, access_payload(0, BAR2, 8, bytes(8)), flags=NO_REPLY), [ram])
        self.client.sync()
        self.assertEqual(self.server.fds(), self.fds_with_client)

    def test_more_descriptors_than_allowed_end_the_connection(self):
        ram = self.own(memory())
        self.client.send(message(SET_IRQS, irqs_payload(0x24, MSIX, 0, 17)), [ram] * 17)
        self.assertTrue(self.client.closed())

    def test_sixteen_descriptors_are_fine(self):
        events = [self.own(event()) for _ in range(16)]
        self.assertEqual(self.client.set_irqs(0x24, MSIX, 0, 16, fds=events), 0)

    def test_largest_message(self):
        # Too much for any region, but legal as a message: refused, not fatal.
        payload = access_payload(0, BAR0, MAX_TRANSFER, bytes(MAX_TRANSFER))
        self.assertEqual(self.client.error(REGION_WRITE, payload), errno.EINVAL)
        self.assertEqual(self.client.error(REGION_WRITE, payload), errno.EINVAL)
        self.client.sync()

    def test_end_of_file_at_every_place_in_a_message(self):
        ram = self.own(memory())
        whole = message(DMA_MAP, map_payload(0, PAGE))
        for cut in (0, 1, 15, 16, 20, 47):
            client = self.reconnect().negotiate()
            if cut:
                client.send(whole[:cut], [ram])
        # tearDown looks for what has leaked.

    def test_unread_replies_when_the_client_leaves(self):
        for _ in range(5):
            client = self.reconnect().negotiate()
            client.send(message(REGION_READ, access_payload(0, CONFIG, 4096)) * 30)

    def test_client_that_does_not_read_is_dropped_and_the_next_one_served(self):
        request = message(REGION_READ, access_payload(0, BAR0, BAR0_SIZE))
        self.client.socket.settimeout(TIMEOUT)
        try:
            for _ in range(2000):  # 128 MiB of replies
                self.client.send(request)
        except (BrokenPipeError, ConnectionResetError):
            pass
        self.assertTrue(self.client.closed())
        self.reconnect().negotiate()

    def test_slow_reader_gets_everything(self):
        request = message(REGION_READ, access_payload(0, BAR0, BAR0_SIZE))
        self.client.send(request * 40)
        for _ in range(40):
            self.assertEqual(len(self.client.receive().payload), 16 + BAR0_SIZE)


if __name__ == "__main__":
    unittest.main()
