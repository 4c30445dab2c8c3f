// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace ernic::control {

/// One line of a client, `{"id": 1, "command": "status", "arguments": {..}}`, read and checked.
struct Request {
    nlohmann::json id;  ///< a number, a string or null; what could be read of a malformed line, too
    std::string command;
    nlohmann::json arguments = nlohmann::json::object();
    std::string problem;  ///< one sentence; empty: well-formed
};

/// Reads one line without its line feed. Bounded in depth and number of values, so that no line takes long or
/// uses up the stack. Thread: any. Fails: by `problem`.
[[nodiscard]] Request parse_request(std::string_view line);

}  // namespace ernic::control
