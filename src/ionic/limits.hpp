// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/clock.hpp"

namespace ernic::ionic {

/// Entries of a ring, log2, as the interface allows them (ring_size of Q_INIT).
inline constexpr std::uint8_t kMinRingSizeLog2 = 2;
inline constexpr std::uint8_t kMaxRingSizeLog2 = 16;
/// Rings lie in page-aligned memory (ionic 7.2, ionic_qcq_alloc).
inline constexpr std::uint64_t kRingAlignment = 4096;

/// Admin commands of one step, some 100 µs.
inline constexpr std::uint32_t kAdminCommandsPerStep = 16;
/// What all transmit queues together may do in one step, in bytes copied: about 50 µs, and the event loop
/// looks at the time after each step.
inline constexpr std::uint64_t kTxWorkPerStep = std::uint64_t{256} * 1024;
/// What handing a frame on costs beside its bytes: a system call of two microseconds or so at a TAP.
inline constexpr std::uint64_t kTxWorkPerFrame = std::uint64_t{16} * 1024;
/// What reading a descriptor and finding its memory costs.
inline constexpr std::uint64_t kTxWorkPerDescriptor = 512;

/// A TSO packet is handed on in one piece, so its run of descriptors may go on beyond the budget of a step
/// until that piece is full.
inline constexpr std::uint32_t kTsoDescriptorsBeyondStep = 128;
/// Headers of a TSO packet: Ethernet, VLAN, IPv6 with options and TCP with options, twice for a tunnel.
inline constexpr std::size_t kMaxTsoHeader = 256;
/// Payload of a TSO packet handed on at once: with its headers it fits into one IP packet. What the stack
/// builds is no larger (Linux tcp_v4_connect: gso_max_size less MAX_TCP_HEADER, which is more than this
/// header).
inline constexpr std::size_t kMaxTsoChunk = 65535 - kMaxTsoHeader;

/// The transmit queues that may have work are bits of one word.
inline constexpr std::uint32_t kMaxTxQueues = 64;

/// Smallest MTU an IPv4 host may have (RFC 791), and what a frame has beyond its MTU: Ethernet header and
/// VLAN tag.
inline constexpr std::uint32_t kMinMtu = 68;
inline constexpr std::uint32_t kFrameOverhead = 18;

/// The credits register is a signed 16-bit number.
inline constexpr std::uint32_t kMaxCredits = 0x7fff;

/// A changed counter is in guest memory within this time; `ip -s link` shows nothing else.
inline constexpr Nanoseconds kStatsRefresh = 100'000'000;

}  // namespace ernic::ionic
