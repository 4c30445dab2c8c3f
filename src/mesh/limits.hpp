// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/clock.hpp"

namespace ernic::mesh {

/// Nodes of one mesh, this one included.
inline constexpr std::size_t kMaxNodes = 1024;
/// Longest body: one fragment of an RDMA message (rdma::kFragment, which app checks), or one TCP packet that
/// is still to be cut, or a list of kMaxNodes nodes.
inline constexpr std::size_t kMaxBody = std::size_t{256} * 1024;
/// Longest head: an Ethernet frame's with a TCP header template of net::kMaxHeader bytes, or kMaxMacs
/// addresses.
inline constexpr std::size_t kMaxHead = 512;
/// Longest frame of the Ethernet kind: 64 KiB of IP packet and what stands in front.
inline constexpr std::size_t kMaxEthernet = 65536 + 256;
/// Longest body of a datagram: the largest path MTU.
inline constexpr std::size_t kMaxDatagram = 4096;
/// Addresses that one node may announce: a guest's port has a few.
inline constexpr std::size_t kMaxMacs = 64;
/// Bytes of a node's name.
inline constexpr std::size_t kMaxName = 64;

/// What is read from a socket before it is known where it belongs. More saves system calls when messages are
/// small; less copies fewer bytes of large ones twice.
inline constexpr std::size_t kReadAhead = 16384;
/// The same while large messages arrive.
inline constexpr std::size_t kReadAheadLarge = 1024;
/// Buffers for it that are kept for the next link that needs one.
inline constexpr std::size_t kSpareBuffers = 8;
/// A frame up to this size is collected with others of the same turn of the loop and written with them.
inline constexpr std::size_t kSmallFrame = 4096;
/// So many collected bytes are written at once.
inline constexpr std::size_t kBatch = std::size_t{64} * 1024;
/// Bytes that wait behind a socket that takes no more; further messages and Ethernet frames are lost. One
/// fragment that was half written, and what came from senders that cannot wait.
inline constexpr std::size_t kMaxQueued = 2 * kMaxBody;
/// The same for what keeps the mesh together (addresses, heartbeats): beyond it the connection ends.
inline constexpr std::size_t kMaxQueuedControl = 4 * kMaxBody;
/// TCP_NOTSENT_LOWAT: bytes that wait in the socket itself in front of a small message: 4 ms at 1 Gbit/s.
inline constexpr int kNotSent = 512 * 1024;
/// A datagram waits so long for a peer that takes nothing; after that it is lost.
inline constexpr Nanoseconds kDatagramPatience = 100'000'000;
/// Bytes and time one readable socket gets before others have their turn.
inline constexpr std::size_t kBytesPerRound = 4 * kMaxBody;
inline constexpr Nanoseconds kLongestRound = 200'000;

/// Connections that have not said yet who they are. A further one takes the place of the oldest.
inline constexpr std::size_t kMaxStrangers = 64;
/// Time for each step of an introduction.
inline constexpr Nanoseconds kIntroduction = 5'000'000'000;
/// Connections accepted in one round of the loop.
inline constexpr int kAcceptsPerRound = 16;
/// Pause after accept() failed for want of descriptors or memory.
inline constexpr Nanoseconds kAcceptPause = 100'000'000;
inline constexpr int kBacklog = 1024;
/// Between two attempts to reach a node: doubled from the first to the last.
inline constexpr Nanoseconds kFirstRetry = 50'000'000;
inline constexpr Nanoseconds kLastRetry = 5'000'000'000;
/// Attempts under way at once, so that a node that joins a large mesh does not flood it.
inline constexpr std::size_t kMaxDialing = 64;

/// Bounds of what the command line may ask for.
inline constexpr std::uint32_t kLeastHeartbeat = 10;
inline constexpr std::uint32_t kMostHeartbeat = 60'000;
inline constexpr std::uint32_t kMostDeadAfter = 600'000;
/// Fewer bytes of key can be guessed.
inline constexpr std::size_t kLeastKey = 16;
inline constexpr std::size_t kMostKey = 4096;

}  // namespace ernic::mesh
