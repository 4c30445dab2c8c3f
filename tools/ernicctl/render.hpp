// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace ernic::ctl {

/// The result of a command of the protocol, for people. Copes with members that an older or newer server
/// leaves out or adds. Thread: any. Fails: never.
[[nodiscard]] std::string render(const std::string& command, const nlohmann::json& result);

/// The numbers of `now` that differ from those of `before`, with how much they grew per second.
[[nodiscard]] std::string render_changes(const nlohmann::json& before, const nlohmann::json& now,
                                         double seconds);

}  // namespace ernic::ctl
