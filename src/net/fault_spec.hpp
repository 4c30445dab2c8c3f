// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "net/message.hpp"
#include "wire/ethernet.hpp"

namespace ernic::net {

enum class FaultKind : std::uint8_t { Drop, Delay, Duplicate, Reorder, Corrupt, Rate, LinkDown };
inline constexpr std::size_t kFaultKinds = 7;

/// The word a spec begins with.
[[nodiscard]] std::string_view name_of(FaultKind kind);

/// Relative to the guest whose card this is. What a guest sends to itself goes both ways.
enum class Direction : std::uint8_t { Any, FromGuest, ToGuest };

/// A set of message kinds, in which an acknowledgement that says no (NAK) is a kind of its own.
class OpcodeSet {
  public:
    constexpr OpcodeSet() = default;
    explicit constexpr OpcodeSet(std::uint16_t bits) : bits_(bits) {}

    static constexpr std::uint16_t kNak = 1U << 9U;
    static constexpr std::uint16_t bit(MessageKind kind) {
        return static_cast<std::uint16_t>(1U << static_cast<unsigned>(kind));
    }

    [[nodiscard]] constexpr std::uint16_t bits() const { return bits_; }
    [[nodiscard]] bool has(const Message& message) const {
        const bool nak = message.kind == MessageKind::Acknowledge && message.syndrome != Syndrome::Ack;
        return (bits_ & (nak ? kNak : bit(message.kind))) != 0;
    }
    friend constexpr bool operator==(OpcodeSet, OpcodeSet) = default;

  private:
    std::uint16_t bits_ = 0x3ff;
};

/// One fault as asked for: what is done, to which traffic, and how often. docs/faults.md explains every word.
struct FaultSpec {
    FaultKind kind = FaultKind::Drop;
    /// Delay: how long, and by how much longer at random.
    Nanoseconds delay = 0;
    Nanoseconds jitter = 0;
    /// Duplicate: further copies. Reorder: how many others overtake. Corrupt: bits flipped.
    std::uint32_t amount = 1;
    /// Rate: bits per second.
    std::uint64_t bits_per_second = 0;
    /// LinkDown: how long; 0 until cleared.
    Nanoseconds outage = 0;

    bool messages = true;
    bool frames = true;
    Direction direction = Direction::Any;
    std::optional<wire::MacAddress> from;
    std::optional<wire::MacAddress> to;
    std::optional<std::uint32_t> qp;
    OpcodeSet opcodes;
    std::optional<std::uint16_t> ether_type;
    std::optional<std::uint8_t> protocol;

    /// Of what matches, the first `after` are spared, then every `every`-th is hit with `probability`; when
    /// `count` have been hit the fault ends (0: never).
    std::uint64_t after = 0;
    std::uint64_t every = 1;
    double probability = 1;
    std::uint64_t seed = 1;
    std::uint64_t count = 0;

    /// A link that goes down at once rather than when something particular passes.
    [[nodiscard]] bool immediate() const;

    friend bool operator==(const FaultSpec&, const FaultSpec&) = default;
};

/// Reads `KIND[=VALUE][,KEY=VALUE]...`. Thread: any. Fails: InvalidArgument with one sentence that names the
/// nearest valid spelling.
[[nodiscard]] Result<FaultSpec> parse_fault(std::string_view text);

/// The shortest spelling that parse_fault() reads as `spec`. Thread: any.
[[nodiscard]] std::string to_string(const FaultSpec& spec);

}  // namespace ernic::net
