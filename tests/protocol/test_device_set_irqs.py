# SPDX-License-Identifier: MIT
"""DEVICE_SET_IRQS, and the interrupts that come out."""

import os
import unittest

from harness import *

NONE, BOOL, EVENTFD, MASK, UNMASK, TRIGGER = 1, 2, 4, 8, 0x10, 0x20


class DeviceSetIrqs(ProtocolTest):
    def setUp(self):
        super().setUp()
        control = self.client.read_u(CONFIG, self.client.capability(0x11) + 2, 2)
        self.vectors = (control & 0x7ff) + 1

    def install(self, start, *events):
        return self.client.set_irqs(EVENTFD | TRIGGER, MSIX, start, len(events), fds=events)

    def test_fire_one_by_none_and_one_by_bool(self):
        first, second = self.own(event(4)), self.own(event(8))
        self.assertEqual(self.install(0, first, second), 0)
        self.assertEqual(self.client.set_irqs(BOOL | TRIGGER, MSIX, 0, 2, b"\0\1"), 0)
        self.assertEqual((events_of(first), events_of(second)), (4, 9))
        self.assertEqual(self.client.set_irqs(NONE | TRIGGER, MSIX, 1, 1), 0)
        self.assertEqual((events_of(first), events_of(second)), (0, 1))

    def test_qemu_starts_with_a_vector_without_descriptor(self):
        self.assertEqual(self.client.set_irqs(EVENTFD | TRIGGER, MSIX, 0, 1), 0)

    def test_replaced_descriptor_is_closed(self):
        first, second = self.own(event()), self.own(event())
        self.assertEqual(self.install(3, first), 0)
        self.assertEqual(self.install(3, second), 0)
        self.assertEqual(self.server.fds(), self.fds_with_client + 1)
        self.client.set_irqs(NONE | TRIGGER, MSIX, 3, 1)
        self.assertEqual((events_of(first), events_of(second)), (0, 1))

    def test_range_without_descriptors_removes_them(self):
        events = [self.own(event()) for _ in range(4)]
        self.assertEqual(self.install(0, *events), 0)
        self.assertEqual(self.client.set_irqs(EVENTFD | TRIGGER, MSIX, 1, 2), 0)
        self.assertEqual(self.server.fds(), self.fds_with_client + 2)
        self.assertEqual(self.client.set_irqs(NONE | TRIGGER, MSIX, 0, 4), 0)
        self.assertEqual([events_of(e) for e in events], [1, 0, 0, 1])

    def test_disable_closes_everything(self):
        events = [self.own(event()) for _ in range(4)]
        self.assertEqual(self.install(0, *events), 0)
        self.assertEqual(self.client.set_irqs(NONE | TRIGGER, MSIX, 0, 0), 0)
        self.assertEqual(self.server.fds(), self.fds_with_client)

    def test_disable_succeeds_for_every_index(self):
        for index in (INTX, MSI, MSIX, ERR, REQ):
            self.assertEqual(self.client.set_irqs(NONE | TRIGGER, index, 0, 0), 0)

    def test_all_vectors_in_messages_of_sixteen(self):
        one = self.own(event())
        for start in range(0, self.vectors, 16):
            count = min(16, self.vectors - start)
            self.assertEqual(self.install(start, *[one] * count), 0)
        self.assertEqual(self.client.set_irqs(NONE | TRIGGER, MSIX, 0, self.vectors), 0)
        self.assertEqual(events_of(one), self.vectors)

    def test_extra_bytes_behind_the_fixed_part_are_ignored(self):
        # QEMU always sends a 36-byte message; other clients may send more.
        self.assertEqual(self.client.set_irqs(NONE | TRIGGER, MSIX, 0, 1, b"\0" * 8), 0)

    def test_bad_requests(self):
        n = self.vectors
        for flags, index, start, count, fds, data in (
                (0x24, 5, 0, 1, 1, b""), (0x04, MSIX, 0, 1, 1, b""), (0x34, MSIX, 0, 1, 1, b""),
                (0x20, MSIX, 0, 1, 0, b""), (0x23, MSIX, 0, 1, 0, b"\1"), (0x61, MSIX, 0, 1, 0, b""),
                (0x24, MSIX, n, 1, 1, b""), (0x24, MSIX, n - 1, 2, 2, b""), (0x21, MSIX, n + 1, 1, 0, b""),
                (0x21, MSIX, 1, 0xffffffff, 0, b""), (0x21, MSIX, 0xffffffff, 1, 0, b""),
                (0x21, MSIX, 1, 0, 0, b""), (0x24, MSIX, 0, 0, 0, b""), (0x09, MSIX, 0, 0, 0, b""),
                (0x21, MSIX, 0, 1, 1, b""), (0x22, MSIX, 0, 1, 1, b"\1"), (0x24, MSIX, 0, 2, 1, b""),
                (0x24, MSIX, 0, 1, 2, b""), (0x22, MSIX, 0, 2, 0, b"\1"), (0x22, MSIX, 0, 2, 0, b"\1\1\1"),
                (0x0c, MSIX, 0, 1, 1, b""), (0x24, INTX, 0, 1, 1, b""), (0x24, ERR, 0, 1, 1, b""),
                (0x09, ERR, 0, 1, 0, b""), (0x24, REQ, 0, 1, 1, b"")):
            ones = [self.own(event()) for _ in range(fds)]
            self.assertRefused(SET_IRQS, irqs_payload(flags, index, start, count, data), ones)
            self.assertEqual(self.server.fds(), self.fds_with_client)

    def test_short_payload_and_argsz(self):
        self.assertRefused(SET_IRQS, irqs_payload(0x21, MSIX, 0, 0)[:19])
        self.assertRefused(SET_IRQS, irqs_payload(0x21, MSIX, 0, 0, argsz=19))

    def test_other_files_than_eventfds_are_refused(self):
        read_end, write_end = os.pipe()
        self.own(read_end)
        for fd in (self.own(write_end), self.own(memory())):
            self.assertRefused(SET_IRQS, irqs_payload(0x24, MSIX, 0, 1), [fd])

    def test_saturated_eventfd_does_not_stop_the_server(self):
        for flags in (os.EFD_CLOEXEC, os.EFD_CLOEXEC | os.EFD_NONBLOCK):
            full = self.own(os.eventfd(0, flags))
            os.eventfd_write(full, 2**64 - 2)
            self.assertEqual(self.install(0, full), 0)
            self.assertEqual(self.client.set_irqs(NONE | TRIGGER, MSIX, 0, 1), 0)
            self.client.sync()

    def test_eventfd_made_blocking_afterwards_does_not_stop_the_server(self):
        full = self.own(os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK))
        self.assertEqual(self.install(0, full), 0)
        os.set_blocking(full, True)
        os.eventfd_write(full, 2**64 - 2)
        self.assertEqual(self.client.set_irqs(NONE | TRIGGER, MSIX, 0, 1), 0)
        self.client.sync()

    def test_trigger_of_a_vector_without_descriptor_is_harmless(self):
        self.assertEqual(self.client.set_irqs(NONE | TRIGGER, MSIX, 0, self.vectors), 0)


class Interrupts(ProtocolTest):
    """What the card itself raises, through enable, masks and missing descriptors."""

    def pending(self):
        return self.client.read_u(BAR0, self.pba, 8)

    def control(self, value):
        self.client.write_u(CONFIG, self.msix + 2, value, 2)

    def setUp(self):
        super().setUp()
        self.msix = self.client.capability(0x11)
        self.pba = self.client.read_u(CONFIG, self.msix + 8, 4) & ~7

    def test_interrupt_reaches_its_eventfd_once(self):
        events = [self.own(event()) for _ in range(3)]
        self.client.set_irqs(EVENTFD | TRIGGER, MSIX, 0, 3, fds=events)
        self.client.enable()
        self.client.raise_interrupt(1)
        self.assertEqual([events_of(e) for e in events], [0, 1, 0])
        self.assertEqual(self.pending(), 0)

    def test_interrupt_before_enable_waits(self):
        one = self.own(event())
        self.client.set_irqs(EVENTFD | TRIGGER, MSIX, 0, 1, fds=[one])
        self.client.enable(msix=False)
        self.client.raise_interrupt(0)
        self.assertEqual((events_of(one), self.pending()), (0, 1))
        self.control(0xc000)
        self.assertEqual((events_of(one), self.pending()), (0, 1))
        self.control(0x8000)
        self.assertEqual((events_of(one), self.pending()), (1, 0))

    def test_interrupt_without_bus_mastering_waits(self):
        one = self.own(event())
        self.client.set_irqs(EVENTFD | TRIGGER, MSIX, 0, 1, fds=[one])
        self.control(0x8000)
        self.client.raise_interrupt(0)
        self.assertEqual(events_of(one), 0)
        self.client.write_u(CONFIG, 4, 6, 2)
        self.assertEqual(events_of(one), 1)

    def test_interrupt_for_a_vector_without_eventfd_waits_for_it(self):
        one = self.own(event())
        self.client.enable()
        self.client.raise_interrupt(2)
        self.assertEqual(self.pending(), 4)
        self.client.set_irqs(EVENTFD | TRIGGER, MSIX, 2, 1, fds=[one])
        self.assertEqual((events_of(one), self.pending()), (1, 0))

    def test_interrupt_masked_by_the_client_waits(self):
        one = self.own(event())
        self.client.set_irqs(EVENTFD | TRIGGER, MSIX, 0, 1, fds=[one])
        self.client.enable()
        self.assertEqual(self.client.set_irqs(NONE | MASK, MSIX, 0, 1), 0)
        self.client.raise_interrupt(0)
        self.assertEqual(events_of(one), 0)
        self.assertEqual(self.client.set_irqs(NONE | UNMASK, MSIX, 0, 1), 0)
        self.assertEqual(events_of(one), 1)

    def test_reset_forgets_pending_interrupts(self):
        one = self.own(event())
        self.client.set_irqs(EVENTFD | TRIGGER, MSIX, 0, 1, fds=[one])
        self.client.enable(msix=False)
        self.client.raise_interrupt(0)
        self.assertEqual(self.client.error(DEVICE_RESET), 0)
        self.client.enable()
        self.assertEqual((events_of(one), self.pending()), (0, 0))


if __name__ == "__main__":
    unittest.main()
