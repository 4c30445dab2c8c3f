// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

/// What one target grants; docs/nvmeof-commands.md lists it for users.
namespace ernic::nvmeof {

/// Entries of an admin queue and of an I/O queue (CAP.MQES + 1).
inline constexpr std::uint16_t kAdminEntries = 32;
inline constexpr std::uint16_t kMaxEntries = 256;
inline constexpr std::uint16_t kMaxIoQueues = 64;
inline constexpr std::uint32_t kMaxInCapsule = 16U << 10U;
/// In-capsule buffers of all connections of one target together: a guest cannot make the server hold more.
inline constexpr std::uint64_t kMaxCapsuleMemory = 256U << 20U;
inline constexpr std::size_t kMaxConnections = 1024;
/// Controllers of one subsystem.
inline constexpr std::size_t kMaxControllers = 128;
/// Bytes of one command's data at most (MDTS); more would not fit a scatter list of staging buffers.
inline constexpr std::uint32_t kMaxTransfer = 8U << 20U;
/// Memory for data that cannot go straight to where it belongs, of all targets together.
inline constexpr std::size_t kStagingBytes = 64U << 20U;
inline constexpr std::size_t kAdminStagingBytes = 8U << 20U;
/// Bytes that one budgeted step copies, compares or fills.
inline constexpr std::size_t kStepBytes = 256U << 10U;
/// Asynchronous Event Requests held (AERL + 1) and Aborts at a time (ACL + 1).
inline constexpr std::size_t kAsyncEvents = 4;
inline constexpr std::uint8_t kAborts = 4;
/// Entries of the error log.
inline constexpr std::size_t kErrorEntries = 64;
/// Unit of the Keep Alive timer (KAS), milliseconds.
inline constexpr std::uint32_t kKeepAliveUnit = 100;
/// Keep Alive of a discovery controller whose host asks for none, so that forgotten ones end.
inline constexpr std::uint32_t kDiscoveryKeepAlive = 120'000;
/// Limits of Copy: ranges, blocks of one and of all.
inline constexpr std::uint16_t kCopyRanges = 128;
inline constexpr std::uint16_t kCopyRangeBlocks = 65535;
inline constexpr std::uint32_t kCopyBlocks = 1U << 20U;
/// Bytes of a fused Compare and Write.
inline constexpr std::uint32_t kFusedBytes = 128U << 10U;
/// Ranges marked by Write Uncorrectable in one namespace.
inline constexpr std::size_t kUncorrectableRanges = 4096;

}  // namespace ernic::nvmeof
