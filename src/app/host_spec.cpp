// SPDX-License-Identifier: MIT
#include "app/host_spec.hpp"

#include <fmt/format.h>

#include "app/option_values.hpp"

namespace ernic::app {
namespace {

using net::stack::HostConfig;

std::optional<Error> add_address(std::string_view what, std::string_view text, HostConfig& host) {
    const auto prefix = net::IpPrefix::parse(text);
    if (!prefix) {
        return invalid(fmt::format(
            "{} option ip '{}' is not an address with a prefix length: write for example 'ip=10.0.0.2/24'",
            what, text));
    }
    if (!prefix->address.unicast() || (prefix->address.is_v4() && prefix->length < 1)) {
        return invalid(fmt::format("{} option ip '{}' is no address that a host may have", what, text));
    }
    if (!prefix->address.is_v4()) {
        if (prefix->length != 64) {
            return invalid(
                fmt::format("{} option ip '{}' has another prefix length than IPv6 hosts here can "
                            "have: write '{}/64'",
                            what, text, prefix->address.to_string()));
        }
        if (host.ipv6.size() == HostConfig::kMaxIpv6) {
            return invalid(
                fmt::format("more than {} IPv6 addresses for one {} service", HostConfig::kMaxIpv6, what));
        }
        host.ipv6.push_back(*prefix);
        return std::nullopt;
    }
    if (host.ipv4) {
        return invalid(
            fmt::format("a second IPv4 address '{}' for one {} service: use another '--target'", text, what));
    }
    const std::uint32_t inside = prefix->address.value_v4() & ~prefix->mask_v4();
    if (prefix->length <= 30 && (inside == 0 || inside == ~prefix->mask_v4())) {
        return invalid(
            fmt::format("{} option ip '{}' is the subnet's own or its broadcast address", what, text));
    }
    host.ipv4 = *prefix;
    return std::nullopt;
}

}  // namespace

std::optional<Error> apply_host_item(std::string_view what, const SpecItem& item, HostConfig& host) {
    if (item.key == "ip") {
        return add_address(what, item.value, host);
    }
    if (item.key == "gw") {
        const auto gateway = parse_ipv4(what, item.key, item.value);
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
    const auto mtu = parse_number(what, item.key, item.value, HostConfig::kMinMtu, HostConfig::kMaxMtu);
    if (!mtu) {
        return mtu.error();
    }
    host.mtu = static_cast<std::uint16_t>(mtu.value());
    return std::nullopt;
}

std::optional<Error> check_host(std::string_view what, std::string_view example, const HostConfig& host) {
    if (!host.ipv4 && host.ipv6.empty()) {
        return invalid(fmt::format("target '{}' needs an address: write for example {}", what, example));
    }
    if (host.ipv4_gateway && (!host.ipv4 || !host.ipv4->contains(*host.ipv4_gateway))) {
        return invalid(fmt::format("{} option gw '{}' is not in the subnet of an IPv4 address of the service",
                                   what, host.ipv4_gateway->to_string()));
    }
    return std::nullopt;
}

}  // namespace ernic::app
