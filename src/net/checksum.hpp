// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "base/bytes.hpp"

/// The Internet checksum (RFC 1071). Sums are of little-endian 16-bit words, not inverted: one's complement
/// addition does not care about byte order, so a finished sum is stored as le16. Thread: any. Fails: never.
namespace ernic::net {

/// One's complement sum of `data` as little-endian 16-bit words, the last one padded with 0, added to
/// `initial`; not inverted.
std::uint16_t ones_complement_sum(Bytes data, std::uint16_t initial = 0);

/// Sum of two sums, with end-around carry.
constexpr std::uint16_t ones_complement_add(std::uint16_t a, std::uint16_t b) {
    const std::uint32_t sum = std::uint32_t{a} + b;
    return static_cast<std::uint16_t>(sum + (sum >> 16U));
}

/// What is stored in a checksum field: the complement of `sum`, and 0xffff for 0, which UDP takes for "none"
/// (RFC 768) and which means the same to everybody else.
constexpr std::uint16_t finished_checksum(std::uint16_t sum) {
    const auto complement = static_cast<std::uint16_t>(~sum);
    return complement == 0 ? std::uint16_t{0xffff} : complement;
}

/// A sum over bytes that come in several pieces of any length.
class ChecksumAccumulator {
  public:
    explicit ChecksumAccumulator(std::uint16_t initial = 0) : sum_(initial) {}
    void add(Bytes data);
    [[nodiscard]] std::uint16_t sum() const { return sum_; }

  private:
    std::uint16_t sum_;
    /// An odd number of bytes so far: the next piece starts in the upper half of a word.
    bool odd_ = false;
};

/// Sum of the pseudo header of TCP and UDP (RFC 9293 3.1, RFC 8200 8.1). `addresses` are source and
/// destination as they lie in the IP header, `length` counts transport header and payload.
std::uint16_t pseudo_header_sum(Bytes addresses, std::uint8_t protocol, std::uint32_t length);

}  // namespace ernic::net
