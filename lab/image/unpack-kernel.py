#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the compressed kernel inside a vmlinuz to stdout, for zstd to unpack.

QEMU starts an uncompressed kernel directly; unpacking it in an emulated machine costs a second
of every boot. Usage: unpack-kernel.py VMLINUZ
"""
import sys

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"

image = open(sys.argv[1], "rb").read()
start = image.find(ZSTD_MAGIC)
if start < 0:
    sys.exit("unpack-kernel.py: no zstd data in " + sys.argv[1])
sys.stdout.buffer.write(image[start:])
