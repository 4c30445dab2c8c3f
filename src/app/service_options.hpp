// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/target_spec.hpp"
#include "base/result.hpp"
#include "net/stack/stack.hpp"
#include "services/dhcp.hpp"
#include "wire/ethernet.hpp"

namespace ernic::app {

/// The in-process services that the command line asks for: complete and checked against each other.
struct ServiceOptions {
    std::vector<TargetSpec> targets;
    std::optional<services::DhcpConfig> dhcp;
    net::stack::Limits limits;
    /// An operator may add namespaces while the server runs.
    bool namespaces_later = false;

    [[nodiscard]] bool any() const { return !targets.empty() || dhcp; }
    [[nodiscard]] bool has(TargetSpec::Kind kind) const {
        return std::any_of(targets.begin(), targets.end(),
                           [kind](const TargetSpec& target) { return target.kind == kind; });
    }
    /// Namespaces in files, now or later.
    [[nodiscard]] bool storage() const {
        return (namespaces_later && has(TargetSpec::Kind::Nvmeof)) ||
               std::any_of(targets.begin(), targets.end(), [](const TargetSpec& target) {
                   return target.nvmeof &&
                          std::any_of(target.nvmeof->namespaces.begin(), target.nvmeof->namespaces.end(),
                                      [](const auto& space) { return !space.file.empty(); });
               });
    }
    /// Something that has IP addresses.
    [[nodiscard]] bool needs_stack() const {
        return dhcp || has(TargetSpec::Kind::Echo) || has(TargetSpec::Kind::Nvmeof);
    }
};

/// The words behind `--target`, `--dhcp` and `--stack-memory`.
struct ServiceWords {
    std::span<const std::string> targets;
    std::span<const std::string> dhcp;
    std::span<const std::string> memory;
};

/// Reads the words. MAC addresses that are not given are made from `absolute_path` of the socket; none may be
/// `card` or be there twice, nor may any IP address. Thread: any. Fails: InvalidArgument with one sentence
/// that names the nearest valid spelling.
[[nodiscard]] Result<ServiceOptions> parse_services(const ServiceWords& words, const wire::MacAddress& card,
                                                    std::string_view absolute_path);

}  // namespace ernic::app
