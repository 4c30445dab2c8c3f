// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "metrics/registry.hpp"

namespace ernic::vfio_user {

/// Why a message was refused. Each has its own counter `vfio_user.reject.<name>` and its own limited log
/// line.
enum class Reject : std::uint8_t {
    HeaderSize,      ///< shorter than a header or longer than the largest legal message; the connection ends
    HeaderType,      ///< neither command nor reply
    NotNegotiated,   ///< a command before VERSION; the connection ends
    Version,         ///< VERSION that cannot be accepted, or a second one
    UnknownCommand,  ///< a command number without meaning, or one only servers send
    Unsupported,     ///< a known optional command we do not have
    ShortPayload,    ///< fewer bytes than the command's fixed part
    PayloadSize,     ///< the variable part does not match its count
    Argsz,           ///< argsz too small or absurdly large
    Index,           ///< no such region or irq index
    Range,           ///< outside the region, the irq index or the address space
    Flags,           ///< unknown or contradicting flags
    Fds,             ///< file descriptors where none belong, or too many or few
    Overlap,         ///< a DMA map that overlaps another
    NotMapped,       ///< a DMA unmap that names no map
    Limit,           ///< more maps or files than we keep
    File,            ///< a file that cannot be mapped as asked
};
inline constexpr std::size_t kRejectCount = static_cast<std::size_t>(Reject::File) + 1;

/// Name as in the counters.
std::string_view name(Reject reason);

/// A refused message: why, and the errno of the error reply.
struct Rejection {
    Reject reason;
    int error;
};

/// All numbers of one server. Written by the device thread.
struct Counters {
    metrics::Counter clients;                ///< accepted as the client
    metrics::Counter clients_refused;        ///< closed at once because another client is served
    metrics::Counter clients_too_slow;       ///< lost because they did not read their replies
    metrics::Counter clients_truncated;      ///< lost because the kernel dropped file descriptors
    metrics::Counter clients_shrunk_memory;  ///< lost because they made a mapped file shorter
    metrics::Counter receives;
    metrics::Counter messages;
    metrics::Counter posted;
    metrics::Counter sends;
    metrics::Counter unexpected_replies;
    metrics::Counter stray_fds;
    metrics::Counter resets;
    metrics::Counter dma_maps;
    metrics::Counter dma_unmaps;
    metrics::Counter dma_unreachable;
    metrics::Counter interrupts;
    metrics::Counter interrupts_saturated;
    metrics::Counter interrupts_unroutable;
    metrics::Counter memory_checks;
    metrics::Counter memory_mismatches;
    std::array<metrics::Counter, kRejectCount> rejects;

    void add(Reject reason) { rejects[static_cast<std::size_t>(reason)].add(); }

    /// Adds all of them as `vfio_user.*`. This object must live as long as the registry is read.
    void register_in(metrics::Registry& registry) const;
};

}  // namespace ernic::vfio_user
