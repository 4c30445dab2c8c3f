// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/clock.hpp"

namespace ernic::rdma {

/// Longest message (InfiniBand 9.7.4, port attribute max_msg_sz).
inline constexpr std::uint64_t kMaxMessage = std::uint64_t{1} << 31U;
/// Bytes moved in one piece before the device looks at its socket again: about 50 µs of memcpy, and a
/// multiple of every path MTU.
inline constexpr std::uint64_t kFragment = std::uint64_t{256} * 1024;
/// Largest path MTU and with it the largest datagram.
inline constexpr std::uint32_t kMaxMtu = 4096;
/// SGEs of one work request; the stock driver and provider never use more.
inline constexpr std::size_t kMaxSges = 8;
/// Inline bytes of one work request: the largest stride (512) less the header of 32.
inline constexpr std::size_t kMaxInline = 480;
/// Work requests of one QP that may be under way without acknowledgement.
inline constexpr std::uint32_t kMaxInFlight = 256;
/// Bytes of one QP that may be under way without acknowledgement.
inline constexpr std::uint64_t kMaxBytesInFlight = std::uint64_t{8} * 1024 * 1024;
/// Work requests one QP may run before it goes to the back of the queue.
inline constexpr std::uint32_t kRequestsPerTurn = 64;
/// What one step of the engine may do before the event loop looks at the socket: at most about 100 µs.
inline constexpr std::uint64_t kBytesPerStep = std::uint64_t{512} * 1024;
inline constexpr std::uint32_t kRequestsPerStep = 256;
/// Most entries of one page table: the driver's tables are single kernel allocations of at most 4 MiB.
inline constexpr std::uint32_t kMaxTableEntries = 512 * 1024;
/// Entries of a page table that are copied before others have their turn: four fresh pages of host memory,
/// which may cost a page fault each.
inline constexpr std::size_t kTableEntriesAtOnce = 2048;
/// What has been destroyed is given back in pieces of this many slots of an object table, and one block of
/// page tables.
inline constexpr std::uint32_t kSlotsPerSweep = 16;
/// Atomic results a responder remembers for repeated requests: not fewer than a requester may have under way
/// without an answer (62 with the largest depth code of MODIFY_QP), or one of them could be executed and its
/// result be lost for good.
inline constexpr std::size_t kAtomicHistory = 64;

/// Answers of one QP that may wait for room on the way to the peer. More than a requester of ours can have
/// under way in requests; what a peer asks for beyond that is lost, as it would be in a switch.
inline constexpr std::size_t kMaxAnswers = std::size_t{2} * kMaxInFlight;

/// Minimum RNR NAK timer values by code (InfiniBand table 45).
constexpr Nanoseconds rnr_delay(std::uint8_t code) {
    constexpr std::array<std::uint32_t, 32> kHundredthsOfMilliseconds = {
        65536, 1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,   192,
        256,   384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
    return Nanoseconds{kHundredthsOfMilliseconds[code & 31U]} * 10'000;
}

/// Local ACK timeout: 4.096 µs times 2^code; code 0 never expires (InfiniBand 9.7.6.1.3).
constexpr Nanoseconds acknowledge_timeout(std::uint8_t code) {
    return Nanoseconds{4096} << (code & 31U);
}

}  // namespace ernic::rdma
