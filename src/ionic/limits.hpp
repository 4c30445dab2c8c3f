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

/// Bytes of a TSO packet handed on at once; what the stack builds is no larger.
inline constexpr std::size_t kMaxTsoChunk = 65536;
/// Headers of a TSO packet: Ethernet, VLAN, IPv6 with options and TCP with options, twice for a tunnel.
inline constexpr std::size_t kMaxTsoHeader = 256;

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
