// SPDX-License-Identifier: MIT
#include "app/backend_spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "app/nvmeof_spec.hpp"
#include "base/suggest.hpp"

namespace ernic::app {
namespace {

constexpr std::array<std::string_view, 4> kKinds = {"none", "loopback", "tcp", "nvmeof"};
constexpr std::array<std::string_view, 2> kKeys = {"mode", "md5"};
// In the order of net::PayloadMode.
constexpr std::array<std::string_view, 7> kModes = {"preserve",  "zeros",     "ones",  "increment",
                                                    "decrement", "alternate", "random"};

/// One item behind the colon: `mode=MODE` or `md5`. Fails: the sentence.
std::optional<Error> apply_item(std::string_view item, BackendSpec& spec, bool& mode_given) {
    const std::size_t equals = item.find('=');
    const std::string_view key = item.substr(0, equals);
    if (key == "md5") {
        if (equals != std::string_view::npos) {
            return invalid("backend option 'md5' takes no value: write just 'md5'");
        }
        if (spec.md5) {
            return invalid("backend option 'md5' is given twice: write it once");
        }
        spec.md5 = true;
        return std::nullopt;
    }
    if (key != "mode") {
        return invalid(unknown_word("loopback option", key, kKeys));
    }
    if (equals == std::string_view::npos) {
        return invalid("backend option 'mode' needs a value: write for example 'mode=preserve'");
    }
    if (mode_given) {
        return invalid("backend option 'mode' is given twice: write one 'mode=...'");
    }
    const std::string_view value = item.substr(equals + 1);
    const auto* const found = std::find(kModes.begin(), kModes.end(), value);
    if (found == kModes.end()) {
        return invalid(unknown_word("loopback mode", value, kModes));
    }
    spec.mode = static_cast<net::PayloadMode>(found - kModes.begin());
    mode_given = true;
    return std::nullopt;
}

}  // namespace

Result<BackendSpec> parse_backend(std::string_view text) {
    const std::size_t colon = text.find(':');
    const std::string_view kind = text.substr(0, colon);
    BackendSpec spec;
    if (kind == "none") {
        if (colon != std::string_view::npos) {
            return invalid("backend 'none' takes no options: write just 'none'");
        }
        spec.kind = BackendSpec::Kind::None;
        return spec;
    }
    if (kind == "tcp") {
        auto mesh = parse_mesh(colon == std::string_view::npos ? "" : text.substr(colon + 1));
        if (!mesh) {
            return mesh.error();
        }
        spec.kind = BackendSpec::Kind::Tcp;
        spec.mesh = std::move(mesh.value());
        return spec;
    }
    if (kind == "nvmeof") {
        spec.kind = BackendSpec::Kind::Nvmeof;
        spec.target = text;
        const auto target = parse_nvmeof(colon == std::string_view::npos ? "" : text.substr(colon + 1));
        return target ? Result<BackendSpec>(std::move(spec)) : target.error();
    }
    if (kind != "loopback") {
        return invalid(unknown_word("backend", kind, kKinds));
    }
    if (colon == std::string_view::npos) {
        return spec;
    }
    std::string_view rest = text.substr(colon + 1);
    bool mode_given = false;
    while (true) {
        const std::size_t comma = rest.find(',');
        if (auto problem = apply_item(rest.substr(0, comma), spec, mode_given)) {
            return *problem;
        }
        if (comma == std::string_view::npos) {
            return spec;
        }
        rest.remove_prefix(comma + 1);
    }
}

std::string to_string(const BackendSpec& spec) {
    if (spec.kind == BackendSpec::Kind::None) {
        return "none";
    }
    if (spec.kind == BackendSpec::Kind::Tcp) {
        return "tcp:" + to_string(spec.mesh);
    }
    if (spec.kind == BackendSpec::Kind::Nvmeof) {
        return spec.target;
    }
    std::string text = "loopback";
    char separator = ':';
    if (spec.mode != net::PayloadMode::Preserve) {
        text += fmt::format("{}mode={}", separator, kModes[static_cast<std::size_t>(spec.mode)]);
        separator = ',';
    }
    if (spec.md5) {
        text += fmt::format("{}md5", separator);
    }
    return text;
}

}  // namespace ernic::app
