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

/// Work of one step and queue before the event loop looks at its socket again: some 100 µs each.
inline constexpr std::uint32_t kAdminCommandsPerStep = 16;
inline constexpr std::uint32_t kTxDescriptorsPerStep = 64;

/// A TSO packet is handed on in one piece, so its run of descriptors may go on beyond the budget of a step.
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
