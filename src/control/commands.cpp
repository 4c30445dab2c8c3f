// SPDX-License-Identifier: MIT
#include "control/commands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/suggest.hpp"
#include "control/limits.hpp"

namespace ernic::control {

Result<std::optional<std::string>> Call::text(const char* name) const {
    const auto found = arguments.find(name);
    if (found == arguments.end()) {
        return std::optional<std::string>();
    }
    if (!found->is_string()) {
        return Error{Errc::InvalidArgument, fmt::format("argument '{}' must be a string", name)};
    }
    if (found->get_ref<const std::string&>().size() > kMaxText) {
        return Error{Errc::OutOfRange, fmt::format("argument '{}' has more than {} bytes", name, kMaxText)};
    }
    return std::optional(found->get<std::string>());
}

Result<bool> Call::flag(const char* name) const {
    const auto found = arguments.find(name);
    if (found == arguments.end()) {
        return false;
    }
    if (!found->is_boolean()) {
        return Error{Errc::InvalidArgument, fmt::format("argument '{}' must be true or false", name)};
    }
    return found->get<bool>();
}

bool can_be_shown(std::string_view text) {
    return std::none_of(text.begin(), text.end(),
                        [](char letter) { return static_cast<unsigned char>(letter) < ' '; });
}

Result<std::optional<std::uint64_t>> Call::number(const char* name, std::uint64_t least,
                                                  std::uint64_t most) const {
    const auto found = arguments.find(name);
    if (found == arguments.end()) {
        return std::optional<std::uint64_t>();
    }
    if (!found->is_number_integer()) {
        return Error{Errc::InvalidArgument, fmt::format("argument '{}' must be a whole number", name)};
    }
    const bool negative = !found->is_number_unsigned() && found->get<std::int64_t>() < 0;
    const auto value = found->get<std::uint64_t>();  // of a negative one: something large
    if (negative || value < least || value > most) {
        return Error{Errc::OutOfRange, fmt::format("argument '{}' must be {} to {}", name, least, most)};
    }
    return std::optional(value);
}

void Later::answer(Result<nlohmann::json> result) {
    if (!result_) {
        result_.emplace(std::move(result));
        if (wake_) {
            wake_();
        }
    }
}

std::string_view word_of(Errc code) {
    switch (code) {
        case Errc::InvalidArgument:
            return "invalid_argument";
        case Errc::OutOfRange:
            return "out_of_range";
        case Errc::AlreadyExists:
            return "already_exists";
        case Errc::NoSpace:
            return "no_space";
        case Errc::PermissionDenied:
            return "permission_denied";
        case Errc::Unsupported:
            return "unsupported";
        case Errc::Io:
            return "io";
        case Errc::Busy:
            return "busy";
    }
    return "io";
}

void Commands::add(std::string name, std::vector<std::string_view> arguments, Handler handler) {
    [[maybe_unused]] const bool is_new =
        commands_.try_emplace(std::move(name), Command{std::move(arguments), std::move(handler)}).second;
    assert(is_new);
}

Answer Commands::run(const std::string& name, Call& call) const {
    const auto found = commands_.find(name);
    if (found == commands_.end()) {
        return Error{Errc::InvalidArgument, unknown_word("command", name, names())};
    }
    const auto& allowed = found->second.arguments;
    for (const auto& [argument, value] : call.arguments.items()) {
        if (std::find(allowed.begin(), allowed.end(), argument) != allowed.end()) {
            continue;
        }
        constexpr std::size_t kShown = 256;
        const std::string_view shown = std::string_view(argument).substr(0, kShown);
        return Error{Errc::InvalidArgument,
                     allowed.empty()
                         ? fmt::format("command '{}' takes no arguments, leave '{}' out", name, shown)
                         : unknown_word("argument", shown, allowed)};
    }
    return found->second.handler(call);
}

std::vector<std::string_view> Commands::names() const {
    std::vector<std::string_view> names;
    names.reserve(commands_.size());
    for (const auto& [name, command] : commands_) {
        names.emplace_back(name);
    }
    return names;
}

}  // namespace ernic::control
