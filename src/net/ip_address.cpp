// SPDX-License-Identifier: MIT
#include "net/ip_address.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

#include "base/number.hpp"

namespace ernic::net {

std::optional<IpAddress> IpAddress::parse(std::string_view text) {
    const std::string terminated(text);
    IpAddress address;
    if (text.find(':') != std::string_view::npos) {
        address.v6_ = true;
        return inet_pton(AF_INET6, terminated.c_str(), address.bytes_.data()) == 1 ? std::optional(address)
                                                                                   : std::nullopt;
    }
    return inet_pton(AF_INET, terminated.c_str(), address.bytes_.data()) == 1 ? std::optional(address)
                                                                              : std::nullopt;
}

bool IpAddress::unicast() const {
    if (is_v4()) {
        return bytes_[0] != 0 && bytes_[0] != 127 && bytes_[0] < 224;
    }
    constexpr std::array<std::uint8_t, 16> kLoopback = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    return !unspecified() && bytes_ != kLoopback && bytes_[0] != 0xff;
}

std::string IpAddress::to_string() const {
    std::array<char, INET6_ADDRSTRLEN> text{};
    inet_ntop(v6_ ? AF_INET6 : AF_INET, bytes_.data(), text.data(), text.size());
    return text.data();
}

std::optional<IpPrefix> IpPrefix::parse(std::string_view text) {
    const std::size_t slash = text.find('/');
    if (slash == std::string_view::npos) {
        return std::nullopt;
    }
    const auto address = IpAddress::parse(text.substr(0, slash));
    const auto length = parse_integer<decltype(IpPrefix::length)>(text.substr(slash + 1));
    if (!address || !length || *length > address->bytes().size() * 8) {
        return std::nullopt;
    }
    return IpPrefix{*address, *length};
}

bool IpPrefix::contains(const IpAddress& other) const {
    if (other.is_v4() != address.is_v4()) {
        return false;
    }
    const Bytes ours = address.bytes();
    const Bytes theirs = other.bytes();
    const std::size_t whole = length / 8;
    if (std::memcmp(ours.data(), theirs.data(), whole) != 0) {
        return false;
    }
    const unsigned rest = length % 8;
    const unsigned difference =
        rest == 0 ? 0 : std::to_integer<unsigned>(ours[whole] ^ theirs[whole]) >> (8U - rest);
    return difference == 0;
}

std::string IpPrefix::to_string() const {
    return address.to_string() + "/" + std::to_string(length);
}

IpAddress link_local_of(const wire::MacAddress& mac) {
    const auto& m = mac.bytes;
    return IpAddress::v6({0xfe, 0x80, 0, 0, 0, 0, 0, 0, static_cast<std::uint8_t>(m[0] ^ 2U), m[1], m[2],
                          0xff, 0xfe, m[3], m[4], m[5]});
}

IpAddress solicited_node_of(const IpAddress& address) {
    const auto& a = address.bytes_v6();
    return IpAddress::v6({0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, a[13], a[14], a[15]});
}

wire::MacAddress multicast_mac_of(const IpAddress& group) {
    const auto& g = group.bytes_v6();
    return {{0x33, 0x33, g[12], g[13], g[14], g[15]}};
}

}  // namespace ernic::net
