# SPDX-License-Identifier: MIT
"""Watches an interface and checks the IP, TCP and UDP checksums of every packet from some source.

Runs as a program of its own inside a network namespace: wire_check.py INTERFACE ADDRESS [ADDRESS...]
Prints "ready", then on standard input's end one line of JSON: how many packets of which kind were seen,
the largest, and what was wrong.
"""
import json
import socket
import struct
import sys
import threading

TCP, UDP = 6, 17


def ones_sum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def check(packet):
    """Returns (source, kind, fault or None) of an IP packet, or None for anything else."""
    version = packet[0] >> 4
    if version == 4:
        size = (packet[0] & 15) * 4
        length, protocol = struct.unpack("!H", packet[2:4])[0], packet[9]
        addresses, fault = packet[12:20], None if ones_sum(packet[:size]) == 0xFFFF else "IPv4 header"
        source = socket.inet_ntop(socket.AF_INET, packet[12:16])
    elif version == 6:
        size, protocol = 40, packet[6]
        length = 40 + struct.unpack("!H", packet[4:6])[0]
        addresses, fault = packet[8:40], None
        source = socket.inet_ntop(socket.AF_INET6, packet[8:24])
    else:
        return None
    if protocol not in (TCP, UDP):
        return None
    body = packet[size:length]
    if ones_sum(addresses + struct.pack("!II", len(body), protocol) + body) != 0xFFFF:
        fault = fault or "transport"
    if protocol == UDP and body[6:8] == b"\0\0":
        fault = fault or "UDP without checksum"
    return source, f"{'tcp' if protocol == TCP else 'udp'}{version}", fault


def main():
    interface, wanted = sys.argv[1], set(sys.argv[2:])
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
    sock.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
    sock.bind((interface, 3))
    sock.settimeout(0.2)
    seen, faults, largest, ended = {}, [], 0, threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    print("ready", flush=True)
    while True:
        try:
            packet = sock.recv(65536)
        except TimeoutError:
            if ended.is_set():
                break
            continue
        result = check(packet) if len(packet) >= 28 else None
        if result is None or result[0] not in wanted:
            continue
        seen[result[1]] = seen.get(result[1], 0) + 1
        largest = max(largest, len(packet))
        if result[2]:
            faults.append(f"{result[1]} {len(packet)} bytes: {result[2]}")
    dropped = struct.unpack("II", sock.getsockopt(263, 6, 8))[1]  # SOL_PACKET, PACKET_STATISTICS
    print(json.dumps({"seen": seen, "faults": faults[:5], "faulty": len(faults), "largest": largest,
                      "missed": dropped}), flush=True)


if __name__ == "__main__":
    main()
