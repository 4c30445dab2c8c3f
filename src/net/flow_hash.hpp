// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.hpp"

namespace ernic::net {

/// As many bytes of a frame as flow_hash() looks at: Ethernet, one VLAN tag, IPv6, ports.
inline constexpr std::size_t kFlowBytes = 14 + 4 + 40 + 4;

/// The same number for all packets of a flow: of IPv4 and IPv6 addresses and TCP or UDP ports, of addresses
/// alone for fragments and other protocols, of the MAC addresses for all else. `frame` is the start of a
/// frame, at least kFlowBytes of it where it has as many.
std::uint32_t flow_hash(Bytes frame);

}  // namespace ernic::net
