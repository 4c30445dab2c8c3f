// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "net/fault_spec.hpp"

/// The words and quantities a fault spec is made of, both ways. Thread: any.
namespace ernic::net::fault_words {

/// `200us`, `5ms`, `1.5s`: up to one minute. Fails: nullopt.
std::optional<Nanoseconds> parse_time(std::string_view text);
std::string time_text(Nanoseconds time);

/// `64kbit`, `100Mbit`, `2.5Gbit` (per second, powers of 1000): 1 kbit to 1 Tbit. Fails: nullopt.
std::optional<std::uint64_t> parse_rate(std::string_view text);
std::string rate_text(std::uint64_t bits_per_second);

/// One or more opcode names with '+' in between. Fails: the sentence.
Result<OpcodeSet> parse_opcodes(std::string_view text);
std::string opcodes_text(OpcodeSet opcodes);

/// `arp`, `ipv4`, `ipv6`, `vlan`, or a number such as `0x88cc`. Fails: the sentence.
Result<std::uint16_t> parse_ether_type(std::string_view text);
std::string ether_type_text(std::uint16_t type);

/// `icmp`, `tcp`, `udp`, `icmpv6`, or a number. Fails: the sentence.
Result<std::uint8_t> parse_protocol(std::string_view text);
std::string protocol_text(std::uint8_t protocol);

}  // namespace ernic::net::fault_words
