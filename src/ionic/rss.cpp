// SPDX-License-Identifier: MIT
#include "ionic/rss.hpp"

#include <algorithm>
#include <cstddef>
#include <span>

#include "wire/ionic_identity.hpp"

namespace ernic::ionic {
namespace {

using wire::ionic::PacketType;
using wire::ionic::Status;
namespace rss_type = wire::ionic::rss_type;

struct Types {
    std::uint16_t addresses = 0;
    std::uint16_t ports = 0;
};

Types types_for(PacketType type) {
    switch (type) {
        case PacketType::Ipv4:
            return {rss_type::kIpv4, 0};
        case PacketType::Ipv4Tcp:
            return {rss_type::kIpv4, rss_type::kIpv4Tcp};
        case PacketType::Ipv4Udp:
            return {rss_type::kIpv4, rss_type::kIpv4Udp};
        case PacketType::Ipv6:
            return {rss_type::kIpv6, 0};
        case PacketType::Ipv6Tcp:
            return {rss_type::kIpv6, rss_type::kIpv6Tcp};
        case PacketType::Ipv6Udp:
            return {rss_type::kIpv6, rss_type::kIpv6Udp};
        case PacketType::NonIp:
            break;
    }
    return {};
}

}  // namespace

Status Rss::configure(const wire::ionic::RssAttribute& attribute, const mem::GuestMemory& memory) {
    const std::uint16_t types = attribute.types.get();
    std::vector<std::uint8_t> table(table_.size());
    if (!memory.read({attribute.table_address.get()}, std::as_writable_bytes(std::span(table)))) {
        // Switching it off needs no table.
        if (types != 0) {
            return Status::BadAddress;
        }
    }
    types_ = types;
    key_ = attribute.key;
    table_ = std::move(table);
    return Status::Success;
}

std::uint32_t Rss::toeplitz(Bytes input) const {
    // `window` holds 32 key bits; it slides one bit per input bit (Microsoft RSS specification).
    std::uint64_t window = 0;
    for (std::size_t i = 0; i < 8; ++i) {
        window = window << 8U | key_[i];
    }
    std::size_t next = 8;
    std::uint32_t hash = 0;
    for (const std::byte byte : input) {
        for (unsigned bit = 0; bit < 8; ++bit) {
            if ((byte & std::byte{0x80} >> bit) != std::byte{0}) {
                hash ^= static_cast<std::uint32_t>(window << bit >> 32U);
            }
        }
        window = window << 8U | (next < key_.size() ? key_[next] : 0);
        ++next;
    }
    return hash;
}

Rss::Choice Rss::choose(const PacketInfo& packet) const {
    const Types types = types_for(packet.type);
    const bool ports = (types_ & types.ports) != 0;
    if (!ports && (types_ & types.addresses) == 0) {
        return {};
    }
    const std::size_t size = packet.address_bytes + (ports ? packet.port_bytes : 0U);
    const std::uint32_t hash = toeplitz(Bytes(packet.tuple).first(size));
    return {.queue = table_.empty() ? 0U : table_[hash % table_.size()],
            .hash = hash,
            .hashed = true,
            .ports_hashed = ports};
}

void Rss::reset() {
    types_ = 0;
    key_ = {};
    std::fill(table_.begin(), table_.end(), std::uint8_t{0});
}

}  // namespace ernic::ionic
