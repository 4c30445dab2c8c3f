// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <variant>

namespace ernic::ctl {

inline constexpr int kRefused = 1;
inline constexpr int kUsageError = 2;

/// What the command line asks for, in the words of docs/control.md.
struct Job {
    std::string socket;
    bool json = false;
    std::string command;  ///< of the protocol; "completion" is our own
    nlohmann::json arguments = nlohmann::json::object();
    /// File to open and hand over; "-" is standard output.
    std::optional<std::string> output{};
    /// File of a namespace, to open and hand over; for reading only, if so.
    std::optional<std::string> file{};
    bool read_only = false;
    /// Ask again this often, in seconds, until interrupted.
    std::optional<double> watch{};
    std::string shell{};
};

/// Ends the program without a job: help, version, or a refusal (exit code 2, one sentence).
struct Farewell {
    int exit_code = 0;
    std::string text;
};

/// Environment variables that matter, as values.
struct Environment {
    std::string temp_dir = "/tmp";  ///< TMPDIR
    std::string control{};          ///< ERNIC_CONTROL

    [[nodiscard]] static Environment of_process();
};

/// Reads the arguments behind the program name. Thread: any. Fails: a Farewell.
[[nodiscard]] std::variant<Job, Farewell> parse(std::span<const char* const> arguments,
                                                const Environment& environment);

}  // namespace ernic::ctl
