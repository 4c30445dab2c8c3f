// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "net/ip_address.hpp"

namespace ernic::net::stack {

/// One end of a UDP or TCP conversation.
struct Endpoint {
    IpAddress address;
    std::uint16_t port = 0;

    friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

}  // namespace ernic::net::stack
