# SPDX-License-Identifier: MIT
"""DMA_MAP, and what the card can reach afterwards."""

import errno
import os
import unittest

from harness import *


class DmaMap(ProtocolTest):
    def setUp(self):
        super().setUp()
        self.ram = self.own(memory(1 << 20))

    def reaches(self, iova, offset):
        """True when the card's write to `iova` appears at `offset` of the RAM file."""
        self.client.make_card_write(iova)
        return card_has_written(self.ram, offset)

    def test_card_reaches_mapped_memory_at_its_file_offset(self):
        self.assertEqual(self.client.map(0x40000000, 0x10000, self.ram, 0x2000), 0)
        self.client.enable(msix=False)
        self.assertTrue(self.reaches(0x40001000, 0x3000))

    def test_nothing_is_reached_without_bus_mastering(self):
        self.assertEqual(self.client.map(0, 0x10000, self.ram), 0)
        self.assertFalse(self.reaches(0, 0))
        self.client.enable(msix=False)
        self.assertTrue(self.reaches(0, 0))
        self.client.write_u(CONFIG, 4, 2, 2)
        self.assertFalse(self.reaches(0, 0))

    def test_memory_without_file_is_accepted_but_not_reached(self):
        self.assertEqual(self.client.map(0xfffc0000, 0x40000, flags=READ), 0)
        self.assertEqual(self.client.map(0x1000, 0x10000), 0)
        self.client.enable(msix=False)
        self.assertFalse(self.reaches(0x1000, 0x1000))

    def test_read_only_map_is_not_written(self):
        self.assertEqual(self.client.map(0, 0x10000, self.ram, flags=READ), 0)
        self.client.enable(msix=False)
        self.assertFalse(self.reaches(0, 0))

    def test_read_only_descriptor(self):
        reader = self.own(os.open(f"/proc/self/fd/{self.ram}", os.O_RDONLY | os.O_CLOEXEC))
        self.assertRefused(DMA_MAP, map_payload(0, PAGE), [reader], errno.EACCES)
        self.assertEqual(self.client.map(0, PAGE, reader, flags=READ), 0)

    def test_access_past_the_end_of_a_map_changes_nothing_outside(self):
        self.assertEqual(self.client.map(0x1000, 0x100, self.ram, 0x5000), 0)
        self.client.enable(msix=False)
        self.client.make_card_write(0x1000)
        self.assertEqual(os.pread(self.ram, 0x1000, 0x5100), bytes(0x1000))

    def test_wild_addresses_are_harmless(self):
        self.client.enable(msix=False)
        for iova in (0, 0xdeadbeef000, 2**52 - PAGE, 2**64 - PAGE, 2**64 - 1, 1):
            self.client.make_card_write(iova)
        self.client.sync()

    def test_bad_requests(self):
        top = 2**64 - PAGE
        for payload, fds in ((map_payload(0, 0), 1), (map_payload(top, 2 * PAGE), 1), (map_payload(0, PAGE, flags=0x13), 1),
                             (map_payload(0, PAGE, flags=7), 0), (map_payload(0, PAGE, flags=11), 0),
                             (map_payload(0, PAGE, flags=11), 1), (map_payload(0, PAGE, offset=0x800), 1),
                             (map_payload(0, 2 * PAGE, offset=top), 1), (map_payload(0, PAGE, argsz=31), 1),
                             (map_payload(0, PAGE)[:31], 1), (map_payload(0, PAGE, offset=1 << 20), 1),
                             (map_payload(0, 2 << 20), 1), (map_payload(0, PAGE), 2)):
            self.assertRefused(DMA_MAP, payload, [self.ram] * fds)
            self.assertEqual(self.server.fds(), self.fds_with_client)
            self.assertEqual(self.server.mappings(), 0)

    def test_descriptor_is_not_kept_open(self):
        self.assertEqual(self.client.map(0, PAGE, self.ram), 0)
        self.assertEqual(self.server.fds(), self.fds_with_client)

    def test_overlaps_are_refused_and_the_old_map_stays(self):
        self.assertEqual(self.client.map(0x10000, 0x10000, self.ram), 0)
        for iova, size in ((0x8000, 0x10000), (0x18000, 0x10000), (0x14000, 0x1000), (0x8000, 0x20000), (0x10000, 0x8000)):
            self.assertRefused(DMA_MAP, map_payload(iova, size), [self.ram], errno.EEXIST)
        self.assertRefused(DMA_MAP, map_payload(0x14000, 0x1000), [], errno.EEXIST)
        self.client.enable(msix=False)
        self.assertTrue(self.reaches(0x10000, 0))
        self.assertEqual(self.client.unmap(0x10000, 0x10000), 0)

    def test_identical_map_is_accepted(self):
        self.assertEqual(self.client.map(0x10000, PAGE, self.ram), 0)
        self.assertEqual(self.client.map(0x10000, PAGE, self.ram), 0)
        self.assertEqual(self.client.unmap(0x10000, PAGE), 0)
        self.assertEqual(self.client.unmap(0x10000, PAGE), errno.ENOENT)

    def test_neighbours_are_no_overlap(self):
        for iova in (0x2000, 0x1000, 0x3000, 2**64 - PAGE):
            self.assertEqual(self.client.map(iova, PAGE, self.ram), 0)

    def test_short_file_is_refused_instead_of_faulting_later(self):
        small = self.own(memory(0x1800))
        self.assertRefused(DMA_MAP, map_payload(0, 0x2000), [small])
        self.assertEqual(self.client.map(0, PAGE, small), 0)

    def test_mapped_memfd_cannot_shrink(self):
        self.assertEqual(self.client.map(0, 1 << 20, self.ram), 0)
        with self.assertRaises(PermissionError):
            os.ftruncate(self.ram, PAGE)
        self.client.enable(msix=False)
        self.assertTrue(self.reaches(0xff000, 0xff000))

    def test_other_kinds_of_files_are_not_reached(self):
        for path in ("/dev/zero", "/dev/null"):
            device = self.own(os.open(path, os.O_RDWR | os.O_CLOEXEC))
            self.assertEqual(self.client.map(0, PAGE, device), 0)
            self.client.enable(msix=False)
            self.client.make_card_write(0)
            self.assertEqual(self.client.unmap(0, PAGE), 0)
        read_end, write_end = os.pipe()
        self.own(read_end)
        self.assertEqual(self.client.map(0, PAGE, self.own(write_end)), 0)

    def test_one_file_is_mapped_once_however_it_is_cut(self):
        for i in range(64):
            self.assertEqual(self.client.map(i * 0x2000, PAGE, self.ram, i * PAGE), 0)
        self.assertEqual(self.server.mappings(), 1)

    def test_pieces_of_many_files(self):
        files = [self.own(memory(PAGE)) for _ in range(64)]
        for i, fd in enumerate(files):
            self.assertEqual(self.client.map(i * PAGE, PAGE, fd), 0)
        self.assertEqual(self.server.mappings(), 64)
        self.assertEqual(self.client.unmap(0, 0, flags=2), 0)

    def test_all_advertised_maps_fit_and_one_more_does_not(self):
        batch = 500
        for start in range(0, 65535, batch):
            count = min(batch, 65535 - start)
            self.client.send(b"".join(message(DMA_MAP, map_payload((start + i) * 0x2000, PAGE)) for i in range(count)))
            for _ in range(count):
                self.assertEqual(self.client.receive().error, 0)
        self.assertRefused(DMA_MAP, map_payload(65535 * 0x2000, PAGE), [], errno.ENOSPC)
        self.assertEqual(self.client.unmap(0, PAGE), 0)
        self.assertEqual(self.client.map(65535 * 0x2000, PAGE), 0)
        self.assertEqual(self.client.unmap(0, 0, flags=2), 0)

    def test_no_reply_map_happens(self):
        self.client.send(message(DMA_MAP, map_payload(0, 0x10000), flags=NO_REPLY), [self.ram])
        self.client.send(message(DMA_MAP, map_payload(0, 0), flags=NO_REPLY), [self.ram])
        self.client.sync()
        self.assertTrue(self.client.silent())
        self.client.enable(msix=False)
        self.assertTrue(self.reaches(0, 0))


if __name__ == "__main__":
    unittest.main()
