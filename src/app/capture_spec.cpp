// SPDX-License-Identifier: MIT
#include "app/capture_spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/number.hpp"
#include "base/suggest.hpp"

namespace ernic::app {
namespace {

constexpr std::array<std::string_view, 1> kKeys = {"snaplen"};

/// The N of `snaplen=N`. Fails: the sentence.
Result<std::uint32_t> parse_snaplen(std::string_view text) {
    const auto value = parse_saturating<std::uint64_t>(text);
    if (!value) {
        return invalid(fmt::format(
            "capture option snaplen '{}' is not a whole number: write bytes such as 'snaplen=128'", text));
    }
    constexpr std::uint64_t kLeast = net::Capture::kMinSnaplen;
    constexpr std::uint64_t kMost = net::Capture::kMaxSnaplen;
    if (*value < kLeast || *value > kMost) {
        return invalid(fmt::format(
            "capture option snaplen '{}' is out of range: the nearest valid value is '{}' ({} to {} bytes)",
            text, std::clamp(*value, kLeast, kMost), kLeast, kMost));
    }
    return static_cast<std::uint32_t>(*value);
}

/// One item behind a comma. Fails: the sentence.
std::optional<Error> apply_item(std::string_view item, CaptureSpec& spec, bool& snaplen_given) {
    const std::size_t equals = item.find('=');
    const std::string_view key = item.substr(0, equals);
    if (key != "snaplen") {
        return invalid(unknown_word("capture option", key, kKeys));
    }
    if (equals == std::string_view::npos) {
        return invalid("capture option 'snaplen' needs a value: write for example 'snaplen=128'");
    }
    if (snaplen_given) {
        return invalid("capture option 'snaplen' is given twice: write one 'snaplen=...'");
    }
    const auto snaplen = parse_snaplen(item.substr(equals + 1));
    if (!snaplen) {
        return snaplen.error();
    }
    spec.snaplen = snaplen.value();
    snaplen_given = true;
    return std::nullopt;
}

}  // namespace

Result<CaptureSpec> parse_capture(std::string_view text) {
    std::size_t comma = text.find(',');
    CaptureSpec spec{.path = std::string(text.substr(0, comma))};
    if (spec.path.empty()) {
        return invalid("capture file name is missing: write for example 'FILE' or 'FILE,snaplen=128'");
    }
    bool snaplen_given = false;
    while (comma != std::string_view::npos) {
        text.remove_prefix(comma + 1);
        comma = text.find(',');
        if (auto problem = apply_item(text.substr(0, comma), spec, snaplen_given)) {
            return *problem;
        }
    }
    return spec;
}

}  // namespace ernic::app
