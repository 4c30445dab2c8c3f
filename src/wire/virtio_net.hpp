// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "base/byte_order.hpp"

/// The header in front of every frame on a TAP device with IFF_VNET_HDR (virtio 1.2, section 5.1.6).
namespace ernic::wire {

struct VirtioNetHeader {
    std::uint8_t flags;
    std::uint8_t gso_type;
    le16 header_size;
    le16 gso_size;
    le16 checksum_start;
    le16 checksum_offset;
    le16 buffers;
};
ERNIC_WIRE(VirtioNetHeader, 12);

inline constexpr std::uint8_t kVirtioNeedsChecksum = 1;
inline constexpr std::uint8_t kVirtioDataValid = 2;

inline constexpr std::uint8_t kVirtioGsoNone = 0;
inline constexpr std::uint8_t kVirtioGsoTcp4 = 1;
inline constexpr std::uint8_t kVirtioGsoTcp6 = 4;
/// Added to the type when the packet carries CWR.
inline constexpr std::uint8_t kVirtioGsoEcn = 0x80;

}  // namespace ernic::wire
