// SPDX-License-Identifier: MIT
#include "net/fault_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <tuple>
#include <utility>

#include "base/number.hpp"
#include "base/suggest.hpp"

namespace ernic::net::fault_words {
namespace {

struct Unit {
    std::string_view name;
    double factor;
};
/// The largest first, as they are tried when a quantity is printed.
constexpr std::array<Unit, 4> kTimes = {{{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}}};
constexpr std::array<Unit, 4> kRates = {{{"Gbit", 1e9}, {"Mbit", 1e6}, {"kbit", 1e3}, {"bit", 1}}};
constexpr double kLongestTime = 60e9;
constexpr double kLowestRate = 1e3;
constexpr double kHighestRate = 1e12;

/// A number and the longest unit name that fits behind it. Fails: nullopt.
std::optional<double> quantity(std::string_view text, std::span<const Unit> units) {
    const Unit* best = nullptr;
    for (const Unit& unit : units) {
        if (text.ends_with(unit.name) && (best == nullptr || unit.name.size() > best->name.size())) {
            best = &unit;
        }
    }
    if (best == nullptr) {
        return std::nullopt;
    }
    const auto number = parse_fraction(text.substr(0, text.size() - best->name.size()));
    return number ? std::optional(*number * best->factor) : std::nullopt;
}

std::string text_of(std::uint64_t value, std::span<const Unit> units) {
    for (const Unit& unit : units) {
        const auto factor = static_cast<std::uint64_t>(unit.factor);
        if (value != 0 && value % factor == 0) {
            return fmt::format("{}{}", value / factor, unit.name);
        }
    }
    return fmt::format("{}{}", value, units.back().name);
}

constexpr std::uint16_t bits(MessageKind kind) {
    return OpcodeSet::bit(kind);
}
constexpr std::uint16_t kAtomic = bits(MessageKind::CompareSwap) | bits(MessageKind::FetchAdd);
constexpr std::uint16_t kRequest =
    bits(MessageKind::Send) | bits(MessageKind::Write) | bits(MessageKind::ReadRequest) | kAtomic;
constexpr std::uint16_t kResponse = bits(MessageKind::Acknowledge) | bits(MessageKind::ReadResponse) |
                                    bits(MessageKind::AtomicResponse) | OpcodeSet::kNak;

struct OpcodeWord {
    std::string_view name;
    std::uint16_t bits;
};
/// Those that stand for several first, so that printing finds the shortest text.
constexpr std::array<OpcodeWord, 15> kOpcodes = {{
    {"any", OpcodeSet().bits()},
    {"request", kRequest},
    {"response", kResponse},
    {"atomic", kAtomic},
    {"send", bits(MessageKind::Send)},
    {"write", bits(MessageKind::Write)},
    {"read", bits(MessageKind::ReadRequest)},
    {"cmp_swap", bits(MessageKind::CompareSwap)},
    {"fetch_add", bits(MessageKind::FetchAdd)},
    {"datagram", bits(MessageKind::Datagram)},
    {"ud", bits(MessageKind::Datagram)},
    {"ack", bits(MessageKind::Acknowledge)},
    {"nak", OpcodeSet::kNak},
    {"read_response", bits(MessageKind::ReadResponse)},
    {"atomic_response", bits(MessageKind::AtomicResponse)},
}};

struct NumberWord {
    std::string_view name;
    std::uint16_t number;
};
constexpr std::array<NumberWord, 4> kEtherTypes = {{{"arp", 0x0806},
                                                    {"ipv4", wire::kEtherTypeIpv4},
                                                    {"ipv6", wire::kEtherTypeIpv6},
                                                    {"vlan", wire::kEtherTypeVlan}}};
constexpr std::array<NumberWord, 4> kProtocols = {
    {{"icmp", 1}, {"tcp", wire::kIpProtocolTcp}, {"udp", wire::kIpProtocolUdp}, {"icmpv6", 58}}};

/// The "unknown word" sentence over the names of a table.
template <typename Table>
Error unknown(std::string_view what, std::string_view word, const Table& table) {
    std::array<std::string_view, std::tuple_size_v<Table>> names;
    std::transform(table.begin(), table.end(), names.begin(), [](const auto& entry) { return entry.name; });
    return {Errc::InvalidArgument, unknown_word(what, word, names)};
}

template <typename Number, typename Table>
Result<Number> parse_name_or_number(std::string_view what, std::string_view text, const Table& table) {
    const bool hex = text.starts_with("0x");
    if (const auto number = parse_integer<Number>(text.substr(hex ? 2 : 0), hex ? 16 : 10)) {
        return *number;
    }
    const auto found = std::find_if(table.begin(), table.end(),
                                    [text](const NumberWord& word) { return word.name == text; });
    if (found == table.end()) {
        return unknown(what, text, table);
    }
    return static_cast<Number>(found->number);
}

template <typename Table>
std::string_view name_in(const Table& table, std::uint16_t number) {
    const auto found = std::find_if(table.begin(), table.end(),
                                    [number](const NumberWord& word) { return word.number == number; });
    return found == table.end() ? std::string_view() : found->name;
}

}  // namespace

std::optional<Nanoseconds> parse_time(std::string_view text) {
    const auto time = quantity(text, kTimes);
    // Written so that NaN is refused as well.
    return time && *time >= 1 && *time <= kLongestTime ? std::optional(static_cast<Nanoseconds>(*time))
                                                       : std::nullopt;
}

std::string time_text(Nanoseconds time) {
    return text_of(time, kTimes);
}

std::optional<std::uint64_t> parse_rate(std::string_view text) {
    const auto rate = quantity(text, kRates);
    return rate && *rate >= kLowestRate && *rate <= kHighestRate
               ? std::optional(static_cast<std::uint64_t>(*rate))
               : std::nullopt;
}

std::string rate_text(std::uint64_t bits_per_second) {
    return text_of(bits_per_second, kRates);
}

Result<OpcodeSet> parse_opcodes(std::string_view text) {
    std::uint16_t set = 0;
    for (;;) {
        const std::size_t plus = text.find('+');
        const std::string_view name = text.substr(0, plus);
        const auto found = std::find_if(kOpcodes.begin(), kOpcodes.end(),
                                        [name](const OpcodeWord& word) { return word.name == name; });
        if (found == kOpcodes.end()) {
            return unknown("opcode", name, kOpcodes);
        }
        set |= found->bits;
        if (plus == std::string_view::npos) {
            return OpcodeSet(set);
        }
        text.remove_prefix(plus + 1);
    }
}

std::string opcodes_text(OpcodeSet opcodes) {
    std::string text;
    std::uint16_t rest = opcodes.bits();
    for (const OpcodeWord& word : kOpcodes) {
        if (word.bits != 0 && (rest & word.bits) == word.bits) {
            text += (text.empty() ? "" : "+") + std::string(word.name);
            rest &= static_cast<std::uint16_t>(~word.bits);
        }
    }
    return text;
}

Result<std::uint16_t> parse_ether_type(std::string_view text) {
    return parse_name_or_number<std::uint16_t>("Ethernet type", text, kEtherTypes);
}

std::string ether_type_text(std::uint16_t type) {
    const std::string_view name = name_in(kEtherTypes, type);
    return name.empty() ? fmt::format("0x{:04x}", type) : std::string(name);
}

Result<std::uint8_t> parse_protocol(std::string_view text) {
    return parse_name_or_number<std::uint8_t>("IP protocol", text, kProtocols);
}

std::string protocol_text(std::uint8_t protocol) {
    const std::string_view name = name_in(kProtocols, protocol);
    return name.empty() ? std::to_string(protocol) : std::string(name);
}

}  // namespace ernic::net::fault_words
