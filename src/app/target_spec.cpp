// SPDX-License-Identifier: MIT
#include "app/target_spec.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "app/option_values.hpp"
#include "app/spec_items.hpp"
#include "app/suggest.hpp"

namespace ernic::app {
namespace {

using net::stack::HostConfig;

constexpr std::array<std::string_view, 1> kKinds = {"echo"};
constexpr std::array<std::string_view, 4> kKeys = {"ip", "gw", "mac", "mtu"};
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

}  // namespace

Result<TargetSpec> parse_target(std::string_view text) {
    const std::size_t colon = text.find(':');
    const std::string_view kind = text.substr(0, colon);
    if (kind != kKinds[0]) {
        return invalid(unknown_word("target", kind, kKinds));
    }
    const auto items = parse_items("echo", colon == std::string_view::npos ? "" : text.substr(colon + 1),
                                   kKeys, kRepeatable);
    if (!items) {
        return items.error();
    }
    TargetSpec spec;
    for (const SpecItem& item : items.value()) {
        if (auto problem = apply(item, spec.host)) {
            return *problem;
        }
    }
    if (!spec.host.ipv4 && spec.host.ipv6.empty()) {
        return invalid(fmt::format("target 'echo' needs an address: write for example {}", kExample));
    }
    if (spec.host.ipv4_gateway && (!spec.host.ipv4 || !spec.host.ipv4->contains(*spec.host.ipv4_gateway))) {
        return invalid(
            fmt::format("echo option gw '{}' is not in the subnet of an IPv4 address of the service",
                        spec.host.ipv4_gateway->to_string()));
    }
    return spec;
}

}  // namespace ernic::app
