// SPDX-License-Identifier: MIT
#include "app/target_spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "app/option_values.hpp"
#include "app/spec_items.hpp"
#include "base/suggest.hpp"

namespace ernic::app {
namespace {

using net::stack::HostConfig;

constexpr std::array<std::string_view, 3> kKinds = {"echo", "null", "reflect"};  // as TargetSpec::Kind
constexpr std::array<std::string_view, 4> kKeys = {"ip", "gw", "mac", "mtu"};
constexpr std::array<std::string_view, 1> kReflectKeys = {"mac"};
constexpr std::array<std::string_view, 1> kRepeatable = {"ip"};
constexpr std::string_view kExample = "'echo:ip=10.0.0.2/24' or 'echo:ip=10.0.0.2/24,ip=fd00::2/64'";

Error invalid(std::string sentence) {
    return {Errc::InvalidArgument, std::move(sentence)};
}

std::optional<Error> add_address(std::string_view text, HostConfig& host) {
    const auto prefix = net::IpPrefix::parse(text);
    if (!prefix) {
        return invalid(fmt::format(
            "echo option ip '{}' is not an address with a prefix length: write for example 'ip=10.0.0.2/24'",
            text));
    }
    if (!prefix->address.unicast() || (prefix->address.is_v4() && prefix->length < 1)) {
        return invalid(fmt::format("echo option ip '{}' is no address that a host may have", text));
    }
    if (!prefix->address.is_v4()) {
        if (prefix->length != 64) {
            return invalid(
                fmt::format("echo option ip '{}' has another prefix length than IPv6 hosts here can "
                            "have: write '{}/64'",
                            text, prefix->address.to_string()));
        }
        if (host.ipv6.size() == HostConfig::kMaxIpv6) {
            return invalid(
                fmt::format("more than {} IPv6 addresses for one echo service", HostConfig::kMaxIpv6));
        }
        host.ipv6.push_back(*prefix);
        return std::nullopt;
    }
    if (host.ipv4) {
        return invalid(
            fmt::format("a second IPv4 address '{}' for one echo service: use another '--target'", text));
    }
    const std::uint32_t inside = prefix->address.value_v4() & ~prefix->mask_v4();
    if (prefix->length <= 30 && (inside == 0 || inside == ~prefix->mask_v4())) {
        return invalid(fmt::format("echo option ip '{}' is the subnet's own or its broadcast address", text));
    }
    host.ipv4 = *prefix;
    return std::nullopt;
}

std::optional<Error> apply(const SpecItem& item, HostConfig& host) {
    if (item.key == "ip") {
        return add_address(item.value, host);
    }
    if (item.key == "gw") {
        const auto gateway = parse_ipv4("echo", item.key, item.value);
        if (!gateway) {
            return gateway.error();
        }
        host.ipv4_gateway = gateway.value();
        return std::nullopt;
    }
    if (item.key == "mac") {
        const auto mac = parse_mac(item.value);
        if (!mac) {
            return mac.error();
        }
        host.mac = mac.value();
        return std::nullopt;
    }
    const auto mtu = parse_number("echo", item.key, item.value, HostConfig::kMinMtu, HostConfig::kMaxMtu);
    if (!mtu) {
        return mtu.error();
    }
    host.mtu = static_cast<std::uint16_t>(mtu.value());
    return std::nullopt;
}

/// What an echo service needs and cannot have.
std::optional<Error> check_host(const HostConfig& host) {
    if (!host.ipv4 && host.ipv6.empty()) {
        return invalid(fmt::format("target 'echo' needs an address: write for example {}", kExample));
    }
    if (host.ipv4_gateway && (!host.ipv4 || !host.ipv4->contains(*host.ipv4_gateway))) {
        return invalid(
            fmt::format("echo option gw '{}' is not in the subnet of an IPv4 address of the service",
                        host.ipv4_gateway->to_string()));
    }
    return std::nullopt;
}

std::span<const std::string_view> keys_of(TargetSpec::Kind kind) {
    switch (kind) {
        case TargetSpec::Kind::Echo:
            return kKeys;
        case TargetSpec::Kind::Reflect:
            return kReflectKeys;
        case TargetSpec::Kind::Null:
            break;
    }
    return {};
}

}  // namespace

Result<TargetSpec> parse_target(std::string_view text) {
    const std::size_t colon = text.find(':');
    const std::string_view word = text.substr(0, colon);
    const auto kind = std::find(kKinds.begin(), kKinds.end(), word);
    if (kind == kKinds.end()) {
        return invalid(unknown_word("target", word, kKinds));
    }
    TargetSpec spec;
    spec.kind = static_cast<TargetSpec::Kind>(kind - kKinds.begin());
    const std::string_view rest = colon == std::string_view::npos ? "" : text.substr(colon + 1);
    if (spec.kind == TargetSpec::Kind::Null && !rest.empty()) {
        return invalid(fmt::format("target 'null' has no options, and '{}' is one: write 'null'", rest));
    }
    const auto items = parse_items(word, rest, keys_of(spec.kind), kRepeatable);
    if (!items) {
        return items.error();
    }
    for (const SpecItem& item : items.value()) {
        if (auto problem = apply(item, spec.host)) {
            return *problem;
        }
    }
    if (spec.kind == TargetSpec::Kind::Echo) {
        if (auto problem = check_host(spec.host)) {
            return *problem;
        }
    }
    return spec;
}

}  // namespace ernic::app
