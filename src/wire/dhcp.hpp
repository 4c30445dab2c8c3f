// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/byte_order.hpp"

/// DHCP for IPv4: the message (RFC 2131 2) and its options (RFC 2132).
namespace ernic::wire::dhcp {

inline constexpr std::uint16_t kServerPort = 67;
inline constexpr std::uint16_t kClientPort = 68;

struct Header {
    std::uint8_t operation;  ///< 1 from a client, 2 from a server
    std::uint8_t hardware_type;
    std::uint8_t hardware_size;
    std::uint8_t hops;
    be32 transaction;
    be16 seconds;
    be16 flags;
    be32 client_ip;   ///< ciaddr: the client has it and answers ARP for it
    be32 your_ip;     ///< yiaddr: what the server gives
    be32 server_ip;   ///< siaddr: the next server of a boot
    be32 gateway_ip;  ///< giaddr: the relay agent
    std::array<std::uint8_t, 16> client_hardware;
    std::array<std::byte, 64> server_name;
    std::array<std::byte, 128> file;
    be32 cookie;
};
ERNIC_WIRE(Header, 240);
ERNIC_WIRE_AT(Header, client_hardware, 28);
ERNIC_WIRE_AT(Header, cookie, 236);
inline constexpr std::uint8_t kRequest = 1;
inline constexpr std::uint8_t kReply = 2;
inline constexpr std::uint16_t kBroadcastFlag = 0x8000;
inline constexpr std::uint32_t kCookie = 0x63825363;

enum class MessageType : std::uint8_t {
    Discover = 1,
    Offer = 2,
    Request = 3,
    Decline = 4,
    Ack = 5,
    Nak = 6,
    Release = 7,
    Inform = 8,
};

namespace option {
inline constexpr std::uint8_t kPad = 0;
inline constexpr std::uint8_t kSubnetMask = 1;
inline constexpr std::uint8_t kRouter = 3;
inline constexpr std::uint8_t kNameServers = 6;
inline constexpr std::uint8_t kMtu = 26;
inline constexpr std::uint8_t kRequestedAddress = 50;
inline constexpr std::uint8_t kLeaseTime = 51;
inline constexpr std::uint8_t kOverload = 52;
inline constexpr std::uint8_t kMessageType = 53;
inline constexpr std::uint8_t kServerIdentifier = 54;
inline constexpr std::uint8_t kRenewalTime = 58;
inline constexpr std::uint8_t kRebindingTime = 59;
inline constexpr std::uint8_t kEnd = 255;
}  // namespace option

}  // namespace ernic::wire::dhcp
