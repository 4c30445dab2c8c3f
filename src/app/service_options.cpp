// SPDX-License-Identifier: MIT
#include "app/service_options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "app/dhcp_spec.hpp"
#include "app/option_values.hpp"
#include "app/spec_items.hpp"
#include "base/suggest.hpp"
#include "net/mac_text.hpp"

namespace ernic::app {
namespace {

constexpr unsigned long kLeastMemory = 1;
constexpr unsigned long kMostMemory = 4096;

/// Remembers who has which address. Fails: the sentence.
class Uniqueness {
  public:
    std::optional<Error> add(const wire::MacAddress& mac) {
        if (std::find(macs_.begin(), macs_.end(), mac) != macs_.end()) {
            return invalid(fmt::format("MAC address {} is given to two on one segment: change one",
                                       net::to_string(mac)));
        }
        macs_.push_back(mac);
        return std::nullopt;
    }
    std::optional<Error> add(const net::IpAddress& address) {
        if (std::find(addresses_.begin(), addresses_.end(), address) != addresses_.end()) {
            return invalid(
                fmt::format("IP address {} is given to two services: change one", address.to_string()));
        }
        addresses_.push_back(address);
        return std::nullopt;
    }
    std::optional<Error> add_nqn(const std::string& nqn) {
        if (std::find(nqns_.begin(), nqns_.end(), nqn) != nqns_.end()) {
            return invalid(fmt::format("NQN '{}' is given to two targets: change one 'nqn=..'", nqn));
        }
        nqns_.push_back(nqn);
        return std::nullopt;
    }
    [[nodiscard]] std::optional<Error> find_nqn(const std::string& nqn) const {
        if (std::find(nqns_.begin(), nqns_.end(), nqn) == nqns_.end()) {
            return invalid(
                nqns_.empty()
                    ? fmt::format("nvmeof option path-of names '{0}', and there is no target: add '--target "
                                  "nvmeof:nqn={0}'",
                                  nqn)
                    : unknown_word("nvmeof target", nqn,
                                   std::vector<std::string_view>(nqns_.begin(), nqns_.end())));
        }
        return std::nullopt;
    }

  private:
    std::vector<wire::MacAddress> macs_;
    std::vector<net::IpAddress> addresses_;
    std::vector<std::string> nqns_;
};

std::optional<Error> check(ServiceOptions& options, const wire::MacAddress& card, std::string_view path) {
    Uniqueness used;
    (void)used.add(card);
    std::optional<Error> problem;
    const auto add_mac = [&](wire::MacAddress& mac, std::string_view name) {
        if (mac.zero()) {
            mac = mac_of_path(fmt::format("{}#{}", path, name));
        }
        problem = problem ? problem : used.add(mac);
    };
    std::size_t number = 0;
    for (TargetSpec& target : options.targets) {
        if (target.kind == TargetSpec::Kind::Null) {
            continue;
        }
        add_mac(target.host.mac, fmt::format("target{}", ++number));
        if (target.nvmeof) {
            target.nvmeof->host.mac = target.host.mac;
            if (target.nvmeof->path_of.empty()) {
                problem = problem ? problem : used.add_nqn(target.nvmeof->nqn);
            }
        }
        if (target.host.ipv4) {
            problem = problem ? problem : used.add(target.host.ipv4->address);
        }
        for (const net::IpPrefix& prefix : target.host.ipv6) {
            problem = problem ? problem : used.add(prefix.address);
        }
    }
    for (const TargetSpec& target : options.targets) {
        if (target.nvmeof && !target.nvmeof->path_of.empty()) {
            problem = problem ? problem : used.find_nqn(target.nvmeof->path_of);
        }
    }
    if (options.dhcp) {
        add_mac(options.dhcp->mac, "dhcp");
        problem = problem ? problem : used.add(options.dhcp->address);
    }
    return problem;
}

}  // namespace

Result<ServiceOptions> parse_services(const ServiceWords& words, const wire::MacAddress& card,
                                      std::string_view absolute_path) {
    ServiceOptions options;
    if (words.targets.size() > TargetSpec::kMost) {
        return invalid(fmt::format("option '--target' is given {} times: at most {} fit on a segment",
                                   words.targets.size(), TargetSpec::kMost));
    }
    for (const std::string& word : words.targets) {
        auto target = parse_target(word);
        if (!target) {
            return target.error();
        }
        options.targets.push_back(std::move(target.value()));
    }
    if (!words.dhcp.empty()) {
        auto dhcp = parse_dhcp_service(words.dhcp[0]);
        if (!dhcp) {
            return dhcp.error();
        }
        options.dhcp = std::move(dhcp.value());
    }
    if (!words.memory.empty()) {
        const auto mebibytes =
            parse_number("command line", "--stack-memory", words.memory[0], kLeastMemory, kMostMemory);
        if (!mebibytes) {
            return mebibytes.error();
        }
        if (!options.needs_stack()) {
            return invalid(
                "option '--stack-memory' means nothing without '--target echo:..', '--target nvmeof' or "
                "'--dhcp': add one or leave it out");
        }
        options.limits.memory = std::size_t{mebibytes.value()} << 20U;
    }
    if (auto problem = check(options, card, absolute_path)) {
        return *problem;
    }
    return options;
}

}  // namespace ernic::app
