# SPDX-License-Identifier: MIT
"""Answers pings on a VLAN, on hosts whose kernel has no VLAN interfaces.

Runs as a program of its own inside a network namespace: vlan_peer.py INTERFACE VLAN MAC
Prints "ready". Neighbours need a fixed entry, since it does not answer ARP. Frames to its MAC address
without that tag are not answered.
"""
import socket
import struct
import sys

PACKET_AUXDATA = 8
VLAN_VALID = 0x10


def ones_sum(data):
    total = sum(struct.unpack(f"!{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def answer(frame, tag):
    """The reply to an IPv4 echo request."""
    size = 14 + (frame[14] & 15) * 4
    length = struct.unpack("!H", frame[16:18])[0]
    echo = bytearray(frame[size:14 + length])
    if frame[23] != 1 or echo[0] != 8:
        return None
    echo[0:4] = bytes(4)
    echo[2:4] = struct.pack("!H", 0xFFFF ^ ones_sum(bytes(echo)))
    header = frame[14:26] + frame[30:34] + frame[26:30]
    return frame[6:12] + frame[0:6] + struct.pack("!HH", 0x8100, tag) + frame[12:14] + header + bytes(echo)


def main():
    interface, tag = sys.argv[1], int(sys.argv[2])
    mac = bytes.fromhex(sys.argv[3].replace(":", ""))
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    sock.bind((interface, 3))
    sock.setsockopt(263, PACKET_AUXDATA, 1)  # the kernel takes the tag out of the frame
    print("ready", flush=True)
    while True:
        frame, extra, _, _ = sock.recvmsg(65536, 256)
        auxiliary = struct.unpack("IIIHHHH", extra[0][2][:20])
        tagged = auxiliary[0] & VLAN_VALID and auxiliary[5] & 0xFFF == tag
        if frame[:6] == mac and tagged and frame[12:14] == b"\x08\0":
            reply = answer(frame, tag)
            if reply:
                sock.send(reply)


if __name__ == "__main__":
    main()
