# SPDX-License-Identifier: MIT
"""DEVICE_RESET and function level reset."""

import unittest

from harness import *


class DeviceReset(ProtocolTest):
    def prepare(self):
        self.ram = self.own(memory())
        self.event = self.own(event())
        self.assertEqual(self.client.map(0, 0x10000, self.ram), 0)
        self.assertEqual(self.client.set_irqs(0x24, MSIX, 0, 1, fds=[self.event]), 0)
        self.client.enable()
        self.client.write(BAR0, 0x808, b"\xaa" * 64)

    def assertPowerOnStateWithMapsAndEventfds(self):
        self.assertEqual(self.client.read_u(CONFIG, 4, 2), 0)
        self.assertEqual(self.client.read_u(CONFIG, self.client.capability(0x11) + 2, 2) & 0xc000, 0)
        self.assertEqual(self.client.read(BAR0, 0x808, 64), bytes(64))
        self.client.make_card_write(0)
        self.assertFalse(card_has_written(self.ram, 0), "bus mastering is off after reset")
        self.client.enable()
        self.client.make_card_write(0)
        self.assertTrue(card_has_written(self.ram, 0), "DMA maps survive")
        events_of(self.event)
        self.client.raise_interrupt(0)
        self.assertEqual(events_of(self.event), 1, "eventfds survive")

    def test_reset_keeps_maps_and_eventfds(self):
        self.prepare()
        reply = self.client.request(DEVICE_RESET)
        self.assertEqual((reply.error, reply.payload), (0, b""))
        self.assertPowerOnStateWithMapsAndEventfds()

    def test_two_resets_in_a_row(self):
        self.prepare()
        self.client.send(message(DEVICE_RESET, ident=1) + message(DEVICE_RESET, ident=2))
        self.assertEqual([self.client.receive().error for _ in range(2)], [0, 0])
        self.assertPowerOnStateWithMapsAndEventfds()

    def test_payload_is_refused(self):
        self.assertRefused(DEVICE_RESET, bytes(4))

    def test_no_reply_reset_happens(self):
        self.prepare()
        self.client.send(message(DEVICE_RESET, flags=NO_REPLY))
        self.assertPowerOnStateWithMapsAndEventfds()

    def test_function_level_reset_by_every_width(self):
        control = self.client.capability(0x10) + 8
        for offset, value, width in ((control, 0x8000, 2), (control + 1, 0x80, 1), (control, 0x0000a810, 4)):
            self.prepare()
            self.assertEqual(self.client.write_u(CONFIG, offset, value, width).error, 0)
            self.assertEqual(self.client.read_u(CONFIG, control, 2) & 0x8000, 0)
            self.assertPowerOnStateWithMapsAndEventfds()
            self.assertEqual(self.client.unmap(0, 0x10000), 0)

    def test_disconnect_right_behind_a_reset(self):
        for _ in range(10):
            client = self.reconnect().negotiate()
            client.send(message(DEVICE_RESET) * 5)


if __name__ == "__main__":
    unittest.main()
