// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/clock.hpp"

/// Every limit of the vfio-user server with its reason.
namespace ernic::vfio_user {

/// Data bytes of one REGION_READ or REGION_WRITE. QEMU reads all 4096 bytes of config space at once and
/// refuses less; 1 MiB is the protocol's default.
inline constexpr std::uint32_t kMaxDataTransfer = 1U << 20U;

/// Largest legal message: header, region access, data.
inline constexpr std::uint32_t kMaxMessage = 16 + 16 + kMaxDataTransfer;

/// File descriptors in one message. QEMU refuses a server that advertises more than 16.
inline constexpr std::size_t kMaxMessageFds = 16;

/// Receive buffer at rest: about 1600 posted doorbells per system call.
inline constexpr std::size_t kReceiveBuffer = 64U << 10U;

/// Replies a client may leave unread before it loses its connection; eight of the largest.
inline constexpr std::size_t kMaxUnsent = 8U << 20U;

/// DMA maps of one client; the protocol's default and QEMU's maximum.
inline constexpr std::size_t kMaxDmaMaps = 65535;

/// Files mapped at a time. Far below vm.max_map_count (65530), so that a client cannot use up the process's
/// mappings.
inline constexpr std::size_t kMaxFiles = 4096;

/// Mapped files no DMA map uses any more. Two because firmware remaps read-only and writable views of guest
/// RAM.
inline constexpr std::size_t kMaxUnusedFiles = 2;

/// How long an unused file stays mapped: long enough for firmware's unmap and map storms, short enough for
/// memory unplug.
inline constexpr Nanoseconds kUnusedFileGrace = 2'000'000'000;

/// JSON text of VERSION; QEMU's has 190 bytes.
inline constexpr std::size_t kMaxVersionText = 64U << 10U;

/// Entries of one REGION_WRITE_MULTI. QEMU sends at most 200; the message size bounds the rest.
inline constexpr std::size_t kMaxMultiWrites = 4096;

/// Bytes of one DMA_READ: QEMU 11.1 sends its reply with one non-blocking call and loses what does not fit
/// the socket.
inline constexpr std::uint32_t kMaxDmaRead = 32U << 10U;

/// A DMA_READ without answer is forgotten after this time.
inline constexpr Nanoseconds kDmaReadTimeout = 5'000'000'000;

/// recvmsg calls per wake-up when each brings file descriptors (a read stops behind them), for bursts of
/// DMA_MAP.
inline constexpr unsigned kReadsPerWakeup = 64;

}  // namespace ernic::vfio_user
