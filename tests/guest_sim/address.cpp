// SPDX-License-Identifier: MIT
#include "guest_sim/address.hpp"

#include <array>
#include <cstddef>
#include <cstring>

namespace ernic::guest_sim {
namespace {

/// What the driver uses for every address handle.
constexpr std::uint16_t kSourcePort = 28272;
constexpr std::uint16_t kPlaceholderLength = 32;
constexpr std::uint8_t kTtl = 64;
constexpr std::uint16_t kDontFragment = 0x4000;

/// Ethernet, VLAN, IPv6, UDP.
constexpr std::size_t kLongest = 14 + 4 + 40 + 8;

/// Header parts, one after the other.
class Packer {
  public:
    template <WireValue T>
    void append(const T& value) {
        std::memcpy(bytes_.data() + size_, &value, sizeof(T));
        size_ += sizeof(T);
    }
    [[nodiscard]] std::vector<std::byte> take() const {
        return {bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(size_)};
    }

  private:
    std::array<std::byte, kLongest> bytes_{};
    std::size_t size_ = 0;
};

}  // namespace

std::vector<std::byte> header_template(const Address& address) {
    Packer out;
    const std::uint16_t inner = address.ipv6 ? wire::kEtherTypeIpv6 : wire::kEtherTypeIpv4;
    out.append(wire::EthernetHeader{address.destination, address.source,
                                    be16(address.vlan ? wire::kEtherTypeVlan : inner)});
    if (address.vlan) {
        out.append(wire::VlanTag{be16(*address.vlan), be16(inner)});
    }
    if (address.ipv6) {
        wire::Ipv6Header ip{};
        ip.version_class_flow.set(6U << 28U);
        ip.payload_length.set(kPlaceholderLength);
        ip.next_header = wire::kIpProtocolUdp;
        ip.hop_limit = kTtl;
        ip.source[0] = ip.destination[0] = 0xfe;
        ip.source[1] = ip.destination[1] = 0x80;
        ip.source[15] = 1;
        ip.destination[15] = 2;
        out.append(ip);
    } else {
        wire::Ipv4Header ip{};
        ip.version_ihl = 0x45;
        ip.total_length.set(0xffff);
        ip.flags_fragment.set(kDontFragment);
        ip.ttl = kTtl;
        ip.protocol = wire::kIpProtocolUdp;
        ip.source.set(kSourceIpv4);
        ip.destination.set(kDestinationIpv4);
        out.append(ip);
    }
    out.append(
        wire::UdpHeader{be16(kSourcePort), be16(wire::kRoceUdpPort), be16(kPlaceholderLength), be16(0)});
    return out.take();
}

}  // namespace ernic::guest_sim
