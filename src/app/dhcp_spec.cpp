// SPDX-License-Identifier: MIT
#include "app/dhcp_spec.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "app/option_values.hpp"
#include "app/spec_items.hpp"
#include "services/dhcp_leases.hpp"

namespace ernic::app {
namespace {

using net::IpAddress;
using services::DhcpConfig;

constexpr std::array<std::string_view, 7> kKeys = {"prefix", "ip", "router", "dns", "mtu", "lease", "mac"};
constexpr std::array<std::string_view, 1> kRepeatable = {"dns"};
constexpr std::size_t kMostNameServers = 8;
constexpr unsigned kShortestPrefix = 8;
constexpr unsigned kLongestPrefix = 30;
constexpr unsigned long kShortestLease = 60;
constexpr unsigned long kLongestLease = 30UL * 86400;
constexpr unsigned long kLeastMtu = 576;

/// Stores the value of `result`. Fails: its error.
template <typename T, typename Target>
std::optional<Error> store(const Result<T>& result, Target& target) {
    if (!result) {
        return result.error();
    }
    target = static_cast<Target>(result.value());
    return std::nullopt;
}

std::optional<Error> apply(const SpecItem& item, DhcpConfig& config) {
    const auto& [key, value] = item;
    if (key == "prefix") {
        return store(parse_number("dhcp", key, value, kShortestPrefix, kLongestPrefix),
                     config.parameters.subnet.length);
    }
    if (key == "mtu") {
        std::uint16_t mtu = 0;
        auto problem =
            store(parse_number("dhcp", key, value, kLeastMtu, net::stack::HostConfig::kMaxMtu), mtu);
        config.parameters.mtu = mtu;
        return problem;
    }
    if (key == "lease") {
        return store(parse_number("dhcp", key, value, kShortestLease, kLongestLease), config.lease_seconds);
    }
    if (key == "mac") {
        return store(parse_mac(value), config.mac);
    }
    IpAddress address;
    if (auto problem = store(parse_ipv4("dhcp", key, value), address)) {
        return problem;
    }
    if (key == "ip") {
        config.address = address;
    } else if (key == "router") {
        config.parameters.router = address;
    } else if (config.parameters.name_servers.size() == kMostNameServers) {
        return invalid(fmt::format("more than {} name servers for the DHCP service", kMostNameServers));
    } else {
        config.parameters.name_servers.push_back(address);
    }
    return std::nullopt;
}

/// That all addresses lie in one subnet and are addresses of hosts.
std::optional<Error> check(DhcpConfig& config) {
    net::IpPrefix& subnet = config.parameters.subnet;
    subnet.address = IpAddress::v4(config.first.value_v4() & subnet.mask_v4());
    if (config.address.unspecified()) {
        config.address = IpAddress::v4(subnet.address.value_v4() + 1);
    }
    const IpAddress broadcast = subnet.last_v4();
    for (const IpAddress& address :
         {config.first, config.last, config.address, config.parameters.router.value_or(config.address)}) {
        if (!subnet.contains(address) || address == subnet.address || address == broadcast) {
            return invalid(fmt::format("dhcp address '{}' is not a host's in the subnet {} of the range",
                                       address.to_string(), subnet.to_string()));
        }
    }
    const std::uint32_t count = config.last.value_v4() - config.first.value_v4();
    if (config.last.value_v4() < config.first.value_v4()) {
        return invalid(fmt::format("dhcp range ends before it begins: write '{}-{}'", config.last.to_string(),
                                   config.first.to_string()));
    }
    if (count >= services::DhcpLeases::kMaxAddresses) {
        return invalid(fmt::format("dhcp range has {} addresses: at most {} are served", count + 1,
                                   services::DhcpLeases::kMaxAddresses));
    }
    return std::nullopt;
}

}  // namespace

Result<DhcpConfig> parse_dhcp_service(std::string_view text) {
    const std::size_t comma = text.find(',');
    const std::string_view range = text.substr(0, comma);
    const std::size_t dash = range.find('-');
    const auto first = net::IpAddress::parse(range.substr(0, dash));
    const auto last =
        dash == std::string_view::npos ? std::nullopt : IpAddress::parse(range.substr(dash + 1));
    if (!first || !last || !first->is_v4() || !last->is_v4()) {
        return invalid(fmt::format(
            "dhcp range '{}' is not two IPv4 addresses: write for example '10.0.0.100-10.0.0.200'", range));
    }
    DhcpConfig config;
    config.first = *first;
    config.last = *last;
    config.parameters.subnet.length = 24;
    const auto items = parse_items("dhcp", comma == std::string_view::npos ? "" : text.substr(comma + 1),
                                   kKeys, {.repeatable = kRepeatable});
    if (!items) {
        return items.error();
    }
    for (const SpecItem& item : items.value()) {
        if (auto problem = apply(item, config)) {
            return *problem;
        }
    }
    if (auto problem = check(config)) {
        return *problem;
    }
    return config;
}

}  // namespace ernic::app
