// SPDX-License-Identifier: MIT
#include "app/target_spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "app/host_spec.hpp"
#include "app/nvmeof_spec.hpp"
#include "app/spec_items.hpp"
#include "base/suggest.hpp"

namespace ernic::app {
namespace {

// In the order of TargetSpec::Kind.
constexpr std::array<std::string_view, 4> kKinds = {"echo", "null", "reflect", "nvmeof"};
constexpr std::array<std::string_view, 1> kReflectKeys = {"mac"};
constexpr std::array<std::string_view, 1> kRepeatable = {"ip"};
constexpr std::string_view kExample = "'echo:ip=10.0.0.2/24' or 'echo:ip=10.0.0.2/24,ip=fd00::2/64'";

std::span<const std::string_view> keys_of(TargetSpec::Kind kind) {
    switch (kind) {
        case TargetSpec::Kind::Echo:
            return kHostKeys;
        case TargetSpec::Kind::Reflect:
            return kReflectKeys;
        case TargetSpec::Kind::Null:
        case TargetSpec::Kind::Nvmeof:
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
    if (spec.kind == TargetSpec::Kind::Nvmeof) {
        auto config = parse_nvmeof(rest);
        if (!config) {
            return config.error();
        }
        spec.host = config.value().host;
        spec.nvmeof = std::move(config.value());
        return spec;
    }
    const auto items = parse_items(word, rest, keys_of(spec.kind), {.repeatable = kRepeatable});
    if (!items) {
        return items.error();
    }
    for (const SpecItem& item : items.value()) {
        if (auto problem = apply_host_item(word, item, spec.host)) {
            return *problem;
        }
    }
    if (spec.kind == TargetSpec::Kind::Echo) {
        if (auto problem = check_host(word, kExample, spec.host)) {
            return *problem;
        }
    }
    return spec;
}

}  // namespace ernic::app
