// SPDX-License-Identifier: MIT
#pragma once

#include <lwip/etharp.h>
#include <lwip/ethip6.h>
#include <lwip/init.h>
#include <lwip/ip4_frag.h>
#include <lwip/ip6_frag.h>
#include <lwip/mld6.h>
#include <lwip/nd6.h>
#include <lwip/netif.h>
#include <lwip/pbuf.h>
#include <lwip/priv/nd6_priv.h>
#include <lwip/priv/tcp_priv.h>
#include <lwip/tcp.h>
#include <lwip/udp.h>
#include <netif/ethernet.h>

#include <cstring>

#include "net/ip_address.hpp"

/// Private to this folder: lwIP and the way between its types and ours. No public header includes it.
namespace ernic::net::stack {

inline ip_addr_t to_lwip(const IpAddress& address) {
    ip_addr_t result{};
    if (address.is_v4()) {
        std::memcpy(&result.u_addr.ip4.addr, address.bytes().data(), sizeof result.u_addr.ip4.addr);
        result.type = IPADDR_TYPE_V4;
    } else {
        std::memcpy(result.u_addr.ip6.addr, address.bytes().data(), sizeof result.u_addr.ip6.addr);
        result.type = IPADDR_TYPE_V6;
    }
    return result;
}

/// The same, with the scope that lwIP wants of link-local addresses.
inline ip_addr_t to_lwip(const IpAddress& address, const netif& on) {
    ip_addr_t result = to_lwip(address);
    if (!address.is_v4()) {
        ip6_addr_assign_zone(&result.u_addr.ip6, IP6_UNICAST, &on);
    }
    return result;
}

inline IpAddress from_lwip(const ip_addr_t& address) {
    if (IP_IS_V4_VAL(address)) {
        return IpAddress::v4(lwip_ntohl(address.u_addr.ip4.addr));
    }
    std::array<std::uint8_t, 16> bytes;
    std::memcpy(bytes.data(), address.u_addr.ip6.addr, bytes.size());
    return IpAddress::v6(bytes);
}

}  // namespace ernic::net::stack
