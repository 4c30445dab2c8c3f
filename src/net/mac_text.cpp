// SPDX-License-Identifier: MIT
#include "net/mac_text.hpp"

#include <fmt/format.h>

#include "base/number.hpp"

namespace ernic::net {

std::optional<wire::MacAddress> read_mac(std::string_view text) {
    constexpr std::size_t kLength = 17;
    if (text.size() != kLength || (text[2] != ':' && text[2] != '-')) {
        return std::nullopt;
    }
    wire::MacAddress mac;
    for (std::size_t i = 0; i < mac.bytes.size(); ++i) {
        const auto pair = parse_integer<std::uint8_t>(text.substr(i * 3, 2), 16);
        const bool separated = i == 5 || text[i * 3 + 2] == text[2];
        if (!pair || !separated) {
            return std::nullopt;
        }
        mac.bytes[i] = *pair;
    }
    return mac;
}

std::string to_string(const wire::MacAddress& mac) {
    const auto& b = mac.bytes;
    return fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", b[0], b[1], b[2], b[3], b[4], b[5]);
}

}  // namespace ernic::net
