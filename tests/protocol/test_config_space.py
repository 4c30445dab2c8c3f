# SPDX-License-Identifier: MIT
"""Configuration space through region 7, as QEMU and Linux use it."""

import unittest

from harness import *


class ConfigSpace(ProtocolTest):
    def get(self, offset, width):
        return self.client.read_u(CONFIG, offset, width)

    def put(self, offset, value, width):
        self.assertEqual(self.client.write_u(CONFIG, offset, value, width).error, 0)

    def test_identity(self):
        self.assertEqual(self.get(0x00, 4), 0x10021dd8)
        self.assertEqual(self.get(0x09, 1) | self.get(0x0a, 2) << 8, 0x020000)
        self.assertEqual(self.get(0x2c, 4), 0x54001dd8)
        self.assertEqual(self.get(0x3d, 1), 0, "no INTx")
        self.assertEqual(self.get(0x06, 2), 0x0010, "capability list")

    def test_bar_types_and_sizing(self):
        for offset, size in ((0x10, BAR0_SIZE), (0x18, 0)):
            low = self.get(offset, 4)
            self.assertEqual(low & 7, 4, "64-bit memory")
            self.put(offset, 0xffffffff, 4)
            self.put(offset + 4, 0xffffffff, 4)
            mask = (self.get(offset, 4) & ~0xf) | self.get(offset + 4, 4) << 32
            found = 2**64 - mask
            self.assertEqual(found & (found - 1), 0)
            if size:
                self.assertEqual(found, size)
            self.put(offset, low, 4)
            self.put(offset + 4, 0, 4)
            self.assertEqual(self.get(offset, 4), low)

    def test_bars_four_and_five_do_not_exist(self):
        for offset in (0x20, 0x24):
            self.put(offset, 0xffffffff, 4)
            self.assertEqual(self.get(offset, 4), 0)

    def test_rom_sizing_like_qemu(self):
        self.assertEqual(self.get(0x30, 4), 0)
        self.put(0x30, 0xfffff800, 4)
        self.assertEqual(self.get(0x30, 4), 0)
        self.put(0x30, 0, 4)

    def test_read_only_bytes_survive_a_write_of_everything(self):
        before = self.client.read(CONFIG, 0, 4096)
        self.client.write(CONFIG, 0, b"\xff" * 4096)
        self.client.write(CONFIG, 0, b"\0" * 4096)
        after = self.client.read(CONFIG, 0, 4096)
        changed = {at for at in range(4096) if before[at] != after[at]}
        express = self.client.capability(0x10)
        # Registers with a non-zero power-on value that the guest may write.
        allowed = set(range(express + 8, express + 10)) | set(range(express + 0x30, express + 0x32)) | set(range(0x100, 0x148))
        self.assertLessEqual(changed, allowed)

    def test_command_bits_that_linux_writes(self):
        for value in (0x0000, 0x0006, 0x0107, 0x0547, 0x0400):
            self.put(4, value, 2)
            self.assertEqual(self.get(4, 2), value)
        self.put(4, 0xffff, 2)
        self.assertEqual(self.get(4, 2), 0x0547)

    def test_scratch_bytes(self):
        for offset in (0x0c, 0x3c):
            self.put(offset, 0xa5, 1)
            self.assertEqual(self.get(offset, 1), 0xa5)

    def test_msix_control_at_every_width_and_read_only_table_size(self):
        msix = self.client.capability(0x11)
        size = self.get(msix + 2, 2) & 0x7ff
        self.put(msix + 2, 0xffff, 2)
        self.assertEqual(self.get(msix + 2, 2), 0xc000 | size)
        self.put(msix + 3, 0x80 | size >> 8, 1)
        self.assertEqual(self.get(msix + 2, 2), 0x8000 | size)
        self.put(msix, 0x4000ffff, 4)
        self.assertEqual(self.get(msix + 2, 2), 0x4000 | size)
        self.put(msix + 4, 0xffffffff, 4)
        self.put(msix + 8, 0xffffffff, 4)

    def test_msix_table_and_pba_lie_in_bar0_above_the_registers(self):
        msix = self.client.capability(0x11)
        vectors = (self.get(msix + 2, 2) & 0x7ff) + 1
        table, pba = self.get(msix + 4, 4), self.get(msix + 8, 4)
        self.assertEqual((table & 7, pba & 7), (BAR0, BAR0))
        self.assertGreaterEqual(table, 0x8000)
        self.assertLessEqual(table + 16 * vectors, pba)
        self.assertLessEqual(pba + (vectors + 63) // 64 * 8, BAR0_SIZE)

    def test_power_state_is_kept(self):
        power = self.client.capability(0x01)
        self.put(power + 4, 0x0003, 2)
        self.assertEqual(self.get(power + 4, 2) & 3, 3)
        self.put(power + 4, 0x0000, 2)
        self.assertEqual(self.get(power + 4, 2) & 3, 0)

    def test_link_registers(self):
        express = self.client.capability(0x10)
        self.assertEqual(self.get(express + 2, 2) & 0xff, 0x02, "endpoint, version 2")
        self.assertTrue(self.get(express + 4, 4) & 1 << 28, "FLR")
        self.assertEqual(self.get(express + 0x12, 2), self.get(express + 0x0c, 4) & 0x3ff)
        for offset, mask in ((0x08, 0x7fff), (0x10, 0x0fff), (0x28, 0xffff), (0x30, 0xffff)):
            self.put(express + offset, mask, 2)
            self.assertEqual(self.get(express + offset, 2), mask)

    def test_write_one_to_clear_registers_stay_zero(self):
        express = self.client.capability(0x10)
        for offset, width in ((express + 0x0a, 2), (0x104, 4), (0x110, 4)):
            self.put(offset, 2**(8 * width) - 1, width)
            self.assertEqual(self.get(offset, width), 0)

    def test_serial_number_comes_from_the_mac(self):
        at = 0x100
        while at:
            head = self.get(at, 4)
            if head & 0xffff == 3:
                self.assertEqual(self.get(at + 4, 8), 0x020000000001)
                return
            at = head >> 20
        self.fail("no serial number capability")


if __name__ == "__main__":
    unittest.main()
