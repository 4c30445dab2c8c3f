// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "base/bytes.hpp"

namespace ernic::net {

/// CRC-32 of IEEE 802.3 over `data`, to be continued: start with kCrcStart, complement at the end.
/// Thread: any. Fails: never.
inline constexpr std::uint32_t kCrcStart = 0xffffffff;
[[nodiscard]] std::uint32_t crc32(std::uint32_t crc, Bytes data);

/// The invariant CRC of a RoCE v2 packet as a number whose little-endian bytes go on the wire. `packet`
/// begins with the IPv4 (without options) or IPv6 header and ends before the ICRC. Fields that routers may
/// change count as ones, and eight bytes of ones stand for the link header that RoCE v2 does not have
/// (InfiniBand 7.8.1, annex A17.3.3). Precondition: at least IP, UDP and BTH are there. Thread: any. Fails:
/// never.
[[nodiscard]] std::uint32_t invariant_crc(Bytes packet);

}  // namespace ernic::net
