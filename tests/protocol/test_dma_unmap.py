# SPDX-License-Identifier: MIT
"""DMA_UNMAP."""

import errno
import unittest

from harness import *


class DmaUnmap(ProtocolTest):
    def setUp(self):
        super().setUp()
        self.ram = self.own(memory(1 << 20))

    def test_reply_echoes_the_request(self):
        self.client.map(0x1000, 0x2000, self.ram)
        request = unmap_payload(0x1000, 0x2000)
        self.assertEqual(self.client.request(DMA_UNMAP, request).payload, request)

    def test_only_an_exact_match_is_unmapped(self):
        self.client.map(0x1000, 0x2000, self.ram)
        for iova, size in ((0x1000, 0x1000), (0x2000, 0x1000), (0, 0x4000), (0x1000, 0x3000), (0x1000, 0), (0x9000, 0x1000)):
            self.assertRefused(DMA_UNMAP, unmap_payload(iova, size), expected=errno.ENOENT)
        self.assertEqual(self.client.unmap(0x1000, 0x2000), 0)
        self.assertEqual(self.client.unmap(0x1000, 0x2000), errno.ENOENT)

    def test_bad_requests(self):
        self.client.map(0x1000, 0x1000, self.ram)
        for payload in (unmap_payload(0x1000, 0x1000, flags=1), unmap_payload(0x1000, 0x1000, flags=4),
                        unmap_payload(0x1000, 0x1000, flags=2), unmap_payload(0, 0x1000, flags=2),
                        unmap_payload(0x1000, 0, flags=2), unmap_payload(0x1000, 0x1000, argsz=23),
                        unmap_payload(0x1000, 0x1000, argsz=MAX_TRANSFER + 1), unmap_payload(0x1000, 0x1000)[:23]):
            self.assertRefused(DMA_UNMAP, payload)
        self.assertEqual(self.client.unmap(0x1000, 0x1000), 0)

    def test_all(self):
        for i in range(10):
            self.client.map(i * 0x2000, 0x1000, self.ram, i * 0x1000)
        self.assertEqual(self.client.unmap(0, 0, flags=2), 0)
        self.assertEqual(self.client.unmap(0, 0x1000), errno.ENOENT)
        self.assertEqual(self.client.unmap(0, 0, flags=2), 0)

    def test_unmapped_memory_is_not_written_any_more(self):
        self.client.map(0, 0x10000, self.ram)
        self.client.enable(msix=False)
        self.client.make_card_write(0)
        self.assertTrue(card_has_written(self.ram, 0))
        self.assertEqual(self.client.unmap(0, 0x10000), 0)
        self.client.make_card_write(0)
        self.assertFalse(card_has_written(self.ram, 0))

    def test_firmware_storm_with_the_card_at_work(self):
        """The cuts SeaBIOS on q35 makes, scaled down; the card writes in between, mapped or not."""
        self.client.enable(msix=False)
        self.assertEqual(self.client.map(0, 0x100000, self.ram), 0)
        for _ in range(20):
            self.client.send(message(DMA_UNMAP, unmap_payload(0, 0x100000)))
            self.client.send(message(DMA_MAP, map_payload(0, 0xc3000)), [self.ram])
            self.client.send(message(DMA_MAP, map_payload(0xc3000, 0x15000, 0xc3000, READ)), [self.ram])
            self.client.send(message(DMA_MAP, map_payload(0xd8000, 0x18000, 0xd8000)), [self.ram])
            self.client.send(message(DMA_MAP, map_payload(0xf0000, 0x10000, 0xf0000, READ)), [self.ram])
            self.assertEqual([self.client.receive().error for _ in range(5)], [0] * 5)
            self.client.make_card_write(0xd8000)
            self.assertTrue(card_has_written(self.ram, 0xd8000))
            self.client.make_card_write(0xf0000)
            self.assertFalse(card_has_written(self.ram, 0xf0000))
            for iova, size in ((0, 0xc3000), (0xc3000, 0x15000), (0xd8000, 0x18000), (0xf0000, 0x10000)):
                self.client.send(message(DMA_UNMAP, unmap_payload(iova, size)))
            self.client.send(message(DMA_MAP, map_payload(0, 0x100000)), [self.ram])
            self.assertEqual([self.client.receive().error for _ in range(5)], [0] * 5)
        self.assertLessEqual(self.server.mappings(), 2)


if __name__ == "__main__":
    unittest.main()
