// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/byte_order.hpp"

/// Messages of in-band authentication by DH-HMAC-CHAP (NVM Express Base Specification 2.0, 8.13.5).
namespace ernic::wire::nvme::auth {

/// Of Authentication Send and Receive (dword 10).
inline constexpr std::uint8_t kProtocol = 0xe9;
inline constexpr std::uint8_t kProtocolSpecific = 0x01;

inline constexpr std::uint8_t kCommon = 0;
inline constexpr std::uint8_t kDhChap = 1;
inline constexpr std::uint8_t kNegotiate = 0x00;
inline constexpr std::uint8_t kChallenge = 0x01;
inline constexpr std::uint8_t kReply = 0x02;
inline constexpr std::uint8_t kSuccess1 = 0x03;
inline constexpr std::uint8_t kSuccess2 = 0x04;
inline constexpr std::uint8_t kFailure2 = 0xf0;
inline constexpr std::uint8_t kFailure1 = 0xf1;

/// Hash functions; and no Diffie-Hellman group.
inline constexpr std::uint8_t kSha256 = 1;
inline constexpr std::uint8_t kSha384 = 2;
inline constexpr std::uint8_t kSha512 = 3;
inline constexpr std::uint8_t kNullGroup = 0;

/// Why an authentication fails (explanations of reason 1).
enum class Failure : std::uint8_t {
    Failed = 1,
    NotUsable = 2,
    ConcatenationMismatch = 3,
    HashUnusable = 4,
    GroupUnusable = 5,
    IncorrectPayload = 6,
    IncorrectMessage = 7,
};

/// What all messages begin with.
struct Header {
    std::uint8_t type;
    std::uint8_t id;
    le16 reserved2;
    le16 transaction;
};
ERNIC_WIRE(Header, 6);

struct Descriptor {
    std::uint8_t method;
    std::uint8_t reserved1;
    std::uint8_t hashes;
    std::uint8_t groups;
    std::array<std::uint8_t, 30> hash_list;
    std::array<std::uint8_t, 30> group_list;
};
ERNIC_WIRE(Descriptor, 64);

struct Negotiate {
    Header header;
    std::uint8_t secure_channel;
    std::uint8_t descriptors;
    Descriptor descriptor;
};
ERNIC_WIRE(Negotiate, 72);

/// The challenge (hash length) and our public value (value length, 0 without a group) follow.
struct Challenge {
    Header header;
    std::uint8_t hash_length;
    std::uint8_t reserved7;
    std::uint8_t hash;
    std::uint8_t group;
    le16 value_length;
    le32 sequence;
};
ERNIC_WIRE(Challenge, 16);

/// The response, the host's challenge (hash length each; zeroes when it is not valid) and its public value
/// follow.
struct Reply {
    Header header;
    std::uint8_t hash_length;
    std::uint8_t reserved7;
    std::uint8_t challenge_valid;
    std::uint8_t reserved9;
    le16 value_length;
    le32 sequence;
};
ERNIC_WIRE(Reply, 16);

/// The response (hash length) follows when it is valid.
struct Success1 {
    Header header;
    std::uint8_t hash_length;
    std::uint8_t reserved7;
    std::uint8_t response_valid;
    std::array<std::uint8_t, 7> reserved9;
};
ERNIC_WIRE(Success1, 16);

struct Failed {
    Header header;
    std::uint8_t reason;
    std::uint8_t explanation;
    static constexpr std::uint8_t kAuthenticationFailure = 1;
};
ERNIC_WIRE(Failed, 8);

}  // namespace ernic::wire::nvme::auth
