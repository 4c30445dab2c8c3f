// SPDX-License-Identifier: MIT
#include "net/fault_spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/number.hpp"
#include "base/suggest.hpp"
#include "net/fault_words.hpp"
#include "net/mac_text.hpp"

namespace ernic::net {
namespace {

using Problem = std::optional<Error>;

/// In the order of FaultKind.
constexpr std::array<std::string_view, kFaultKinds> kKinds = {"drop",    "delay", "duplicate", "reorder",
                                                              "corrupt", "rate",  "link-down"};
constexpr std::array<std::string_view, 14> kKeys = {"what",   "direction",   "from",     "to",    "qp",
                                                    "opcode", "ethertype",   "protocol", "after", "every",
                                                    "count",  "probability", "seed",     "jitter"};
constexpr std::array<std::string_view, 3> kWhats = {"all", "messages", "frames"};
/// In the order of Direction.
constexpr std::array<std::string_view, 3> kDirections = {"any", "from-guest", "to-guest"};
constexpr std::uint64_t kMostAmount = 1000;
/// Each copy of a fragment that is kept back is one of 256 KiB, made at once.
constexpr std::uint64_t kMostCopies = 16;
constexpr std::uint32_t kMostQpn = 0xffffff;

Error bad_time(std::string_view word, std::string_view text) {
    return invalid(
        fmt::format("fault option {} '{}' is not a time: write for example '{}=5ms' (with ns, us, "
                    "ms or s, up to 60s)",
                    word, text, word));
}

/// A whole number in a range. Fails: the sentence.
template <typename T>
Problem read_number(std::string_view word, std::string_view text, std::uint64_t least, std::uint64_t most,
                    T& target) {
    const auto number = parse_integer<std::uint64_t>(text);
    if (!number || *number < least || *number > most) {
        return invalid(
            fmt::format("fault option {} '{}' is not a whole number from {} to {}: write for example '{}={}'",
                        word, text, least, most, word,
                        number ? std::clamp(*number, least, most) : std::max<std::uint64_t>(least, 5)));
    }
    target = static_cast<T>(*number);
    return std::nullopt;
}

template <typename Target, typename Value>
Problem store(Result<Value> result, Target& target) {
    if (!result) {
        return result.error();
    }
    target = std::move(result.value());
    return std::nullopt;
}

Problem read_time(std::string_view word, std::string_view text, Nanoseconds& target) {
    const auto time = fault_words::parse_time(text);
    if (!time) {
        return bad_time(word, text);
    }
    target = *time;
    return std::nullopt;
}

Problem read_mac_of(std::string_view word, std::string_view text, std::optional<wire::MacAddress>& target) {
    target = read_mac(text);
    if (!target) {
        return invalid(
            fmt::format("fault option {} '{}' is not a MAC address: write for example "
                        "'{}=02:00:5e:10:00:01'",
                        word, text, word));
    }
    return std::nullopt;
}

template <typename Words>
Result<std::size_t> index_of(std::string_view what, std::string_view text, const Words& words) {
    const auto found = std::find(words.begin(), words.end(), text);
    if (found == words.end()) {
        return invalid(unknown_word(what, text, words));
    }
    return static_cast<std::size_t>(found - words.begin());
}

/// The first word, `KIND[=VALUE]`. Fails: the sentence.
Problem read_kind(std::string_view item, FaultSpec& spec) {
    const std::size_t equals = item.find('=');
    const std::string_view word = item.substr(0, equals);
    const bool has_value = equals != std::string_view::npos;
    const std::string_view value = has_value ? item.substr(equals + 1) : std::string_view();
    const auto kind = index_of("fault", word, kKinds);
    if (!kind) {
        return kind.error();
    }
    spec.kind = static_cast<FaultKind>(kind.value());
    switch (spec.kind) {
        case FaultKind::Drop:
            return has_value ? Problem(invalid("fault 'drop' takes no value: write 'drop', and 'count=5' to "
                                               "drop five"))
                             : std::nullopt;
        case FaultKind::Delay:
            return read_time(word, value, spec.delay);
        case FaultKind::Duplicate:
            return has_value ? read_number(word, value, 1, kMostCopies, spec.amount) : std::nullopt;
        case FaultKind::Reorder:
        case FaultKind::Corrupt:
            return has_value ? read_number(word, value, 1, kMostAmount, spec.amount) : std::nullopt;
        case FaultKind::Rate: {
            const auto rate = fault_words::parse_rate(value);
            if (!rate) {
                return invalid(
                    fmt::format("fault rate '{}' is not a rate: write for example 'rate=100Mbit' "
                                "(1kbit to 1000Gbit, per second)",
                                value));
            }
            spec.bits_per_second = *rate;
            return std::nullopt;
        }
        case FaultKind::LinkDown:
            return has_value ? read_time(word, value, spec.outage) : std::nullopt;
    }
    return std::nullopt;
}

Problem read_what(std::string_view value, FaultSpec& spec) {
    const auto what = index_of("traffic", value, kWhats);
    if (!what) {
        return what.error();
    }
    spec.messages = what.value() != 2;
    spec.frames = what.value() != 1;
    return std::nullopt;
}

Problem read_probability(std::string_view value, double& target) {
    const auto probability = parse_fraction(value);
    const bool valid = probability && *probability > 0 && *probability <= 1;
    if (!valid) {
        return invalid(
            fmt::format("fault option probability '{}' is not above 0 and at most 1: write for "
                        "example 'probability=0.01'",
                        value));
    }
    target = *probability;
    return std::nullopt;
}

Problem read_pair(std::string_view key, std::string_view value, FaultSpec& spec) {
    if (key == "what") {
        return read_what(value, spec);
    }
    if (key == "direction") {
        std::size_t index = 0;
        Problem problem = store(index_of("direction", value, kDirections), index);
        spec.direction = static_cast<Direction>(index);
        return problem;
    }
    if (key == "from" || key == "to") {
        return read_mac_of(key, value, key == "from" ? spec.from : spec.to);
    }
    if (key == "qp") {
        return read_number(key, value, 0, kMostQpn, spec.qp.emplace());
    }
    if (key == "opcode") {
        return store(fault_words::parse_opcodes(value), spec.opcodes);
    }
    if (key == "ethertype") {
        return store(fault_words::parse_ether_type(value), spec.ether_type);
    }
    if (key == "protocol") {
        return store(fault_words::parse_protocol(value), spec.protocol);
    }
    if (key == "probability") {
        return read_probability(value, spec.probability);
    }
    if (key == "jitter") {
        return read_time(key, value, spec.jitter);
    }
    if (key == "every" || key == "count") {
        return read_number(key, value, 1, UINT64_MAX, key == "every" ? spec.every : spec.count);
    }
    return read_number(key, value, 0, UINT64_MAX, key == "after" ? spec.after : spec.seed);
}

/// What no single word can be blamed for. Fails: the sentence.
Problem check_together(bool says_what, FaultSpec& spec) {
    const bool for_messages = spec.qp || !(spec.opcodes == OpcodeSet());
    const bool for_frames = spec.ether_type || spec.protocol;
    if (for_messages && for_frames) {
        return invalid(
            "'qp' and 'opcode' select RDMA messages, 'ethertype' and 'protocol' Ethernet frames: "
            "give two faults, one for each");
    }
    if ((for_messages && says_what && spec.frames) || (for_frames && says_what && spec.messages)) {
        return invalid(fmt::format("{} only: write 'what={}' or leave 'what' out",
                                   for_messages ? "'qp' and 'opcode' select RDMA messages"
                                                : "'ethertype' and 'protocol' select Ethernet frames",
                                   for_messages ? "messages" : "frames"));
    }
    spec.frames = spec.frames && !for_messages;
    spec.messages = spec.messages && !for_frames;
    if (spec.jitter != 0 && spec.kind != FaultKind::Delay) {
        return invalid(
            fmt::format("'jitter' belongs to a delay: write for example 'delay=5ms,jitter=1ms', or "
                        "leave it out of '{}'",
                        name_of(spec.kind)));
    }
    return std::nullopt;
}

}  // namespace

std::string_view name_of(FaultKind kind) {
    return kKinds[static_cast<std::size_t>(kind)];
}

bool FaultSpec::immediate() const {
    FaultSpec plain;
    plain.kind = kind;
    plain.outage = outage;
    return kind == FaultKind::LinkDown && *this == plain;
}

Result<FaultSpec> parse_fault(std::string_view text) {
    FaultSpec spec;
    std::size_t comma = text.find(',');
    if (auto problem = read_kind(text.substr(0, comma), spec)) {
        return *problem;
    }
    std::array<bool, kKeys.size()> given{};
    while (comma != std::string_view::npos) {
        text.remove_prefix(comma + 1);
        comma = text.find(',');
        const std::string_view item = text.substr(0, comma);
        const std::size_t equals = item.find('=');
        const std::string_view key = item.substr(0, equals);
        const auto index = index_of("fault option", key, kKeys);
        if (!index) {
            return index.error();
        }
        if (equals == std::string_view::npos || equals + 1 == item.size()) {
            return invalid(fmt::format("fault option '{}' needs a value: write '{}=...'", key, key));
        }
        if (std::exchange(given[index.value()], true)) {
            return invalid(fmt::format("fault option '{}' is given twice: write one '{}=...'", key, key));
        }
        if (auto problem = read_pair(key, item.substr(equals + 1), spec)) {
            return *problem;
        }
    }
    if (auto problem = check_together(given[0], spec)) {
        return *problem;
    }
    return spec;
}

std::string to_string(const FaultSpec& spec) {
    std::string text(name_of(spec.kind));
    const auto add = [&text](std::string_view key, const auto& value) {
        text += fmt::format(",{}={}", key, value);
    };
    if (spec.kind == FaultKind::Delay || (spec.kind == FaultKind::LinkDown && spec.outage != 0)) {
        text += "=" + fault_words::time_text(spec.kind == FaultKind::Delay ? spec.delay : spec.outage);
    } else if (spec.kind == FaultKind::Rate) {
        text += "=" + fault_words::rate_text(spec.bits_per_second);
    } else if (spec.amount != 1) {
        text += fmt::format("={}", spec.amount);
    }
    const bool for_messages = spec.qp || !(spec.opcodes == OpcodeSet());
    const bool for_frames = spec.ether_type || spec.protocol;
    if (spec.messages != spec.frames && !for_messages && !for_frames) {
        add("what", kWhats[spec.messages ? 1 : 2]);
    }
    if (spec.direction != Direction::Any) {
        add("direction", kDirections[static_cast<std::size_t>(spec.direction)]);
    }
    if (spec.from) {
        add("from", to_string(*spec.from));
    }
    if (spec.to) {
        add("to", to_string(*spec.to));
    }
    if (spec.qp) {
        add("qp", *spec.qp);
    }
    if (!(spec.opcodes == OpcodeSet())) {
        add("opcode", fault_words::opcodes_text(spec.opcodes));
    }
    if (spec.ether_type) {
        add("ethertype", fault_words::ether_type_text(*spec.ether_type));
    }
    if (spec.protocol) {
        add("protocol", fault_words::protocol_text(*spec.protocol));
    }
    const FaultSpec plain;
    const auto add_number = [&add](std::string_view key, auto value, auto usual) {
        if (value != usual) {
            add(key, value);
        }
    };
    add_number("after", spec.after, plain.after);
    add_number("every", spec.every, plain.every);
    add_number("count", spec.count, plain.count);
    add_number("probability", spec.probability, plain.probability);
    add_number("seed", spec.seed, plain.seed);
    if (spec.jitter != 0) {
        add("jitter", fault_words::time_text(spec.jitter));
    }
    return text;
}

}  // namespace ernic::net
