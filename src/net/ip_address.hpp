// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "wire/ethernet.hpp"

namespace ernic::net {

/// An IPv4 or IPv6 address. A value.
class IpAddress {
  public:
    /// 0.0.0.0.
    constexpr IpAddress() = default;
    /// From a number in host order: 0x0a000001 is 10.0.0.1.
    static constexpr IpAddress v4(std::uint32_t value) {
        IpAddress address;
        for (unsigned i = 0; i < 4; ++i) {
            address.bytes_[i] = static_cast<std::uint8_t>(value >> (24U - 8U * i));
        }
        return address;
    }
    static constexpr IpAddress v6(const std::array<std::uint8_t, 16>& bytes) {
        IpAddress address;
        address.bytes_ = bytes;
        address.v6_ = true;
        return address;
    }
    /// Dotted decimal, or the forms of RFC 4291 2.2. Fails: nullopt.
    static std::optional<IpAddress> parse(std::string_view text);

    [[nodiscard]] constexpr bool is_v4() const { return !v6_; }
    /// 4 or 16 bytes as they lie in a packet.
    [[nodiscard]] Bytes bytes() const {
        return std::as_bytes(std::span(bytes_)).first(v6_ ? std::size_t{16} : std::size_t{4});
    }
    /// Precondition: is_v4(). Host order.
    [[nodiscard]] constexpr std::uint32_t value_v4() const {
        return std::uint32_t{bytes_[0]} << 24U | std::uint32_t{bytes_[1]} << 16U |
               std::uint32_t{bytes_[2]} << 8U | bytes_[3];
    }
    /// Precondition: not is_v4().
    [[nodiscard]] constexpr const std::array<std::uint8_t, 16>& bytes_v6() const { return bytes_; }

    /// May be the source of a packet or belong to a host: not unspecified, loopback, multicast or broadcast.
    [[nodiscard]] bool unicast() const;
    [[nodiscard]] bool unspecified() const { return bytes_ == std::array<std::uint8_t, 16>{}; }

    [[nodiscard]] std::string to_string() const;

    friend constexpr bool operator==(const IpAddress&, const IpAddress&) = default;

  private:
    std::array<std::uint8_t, 16> bytes_{};
    bool v6_ = false;
};

/// An address and how many of its leading bits name its subnet.
struct IpPrefix {
    IpAddress address;
    unsigned length = 0;

    /// `ADDRESS/LENGTH`. Fails: nullopt.
    static std::optional<IpPrefix> parse(std::string_view text);
    [[nodiscard]] bool contains(const IpAddress& other) const;
    /// The last address of an IPv4 subnet, which is its broadcast address.
    [[nodiscard]] IpAddress last_v4() const { return IpAddress::v4(address.value_v4() | ~mask_v4()); }
    [[nodiscard]] std::uint32_t mask_v4() const {
        return length == 0 ? 0 : ~std::uint32_t{0} << (32U - length);
    }
    [[nodiscard]] std::string to_string() const;

    friend bool operator==(const IpPrefix&, const IpPrefix&) = default;
};

/// fe80::/64 with the interface identifier made from `mac` (RFC 4291 2.5.1, appendix A).
IpAddress link_local_of(const wire::MacAddress& mac);

/// The group that solicitations for `address` are sent to (RFC 4291 2.7.1), and the MAC address of any
/// multicast group (RFC 2464 7).
IpAddress solicited_node_of(const IpAddress& address);
wire::MacAddress multicast_mac_of(const IpAddress& group);

}  // namespace ernic::net
