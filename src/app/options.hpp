// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "app/backend_spec.hpp"
#include "app/capture_spec.hpp"
#include "app/service_options.hpp"
#include "base/clock.hpp"
#include "base/log.hpp"
#include "net/fault_spec.hpp"
#include "wire/ethernet.hpp"

namespace ernic::app {

/// What the command line and the environment ask for: complete, checked and typed. Documented in
/// docs/usage.md.
struct Options {
    std::string socket_path;
    std::optional<gid_t> socket_group;
    BackendSpec backend;
    bool link_follows_mesh = false;  ///< no peer, no link
    wire::MacAddress mac;
    std::string tap;                              ///< empty: no TAP interface
    std::string stats_file;                       ///< empty: no statistics file
    Nanoseconds stats_interval = 5'000'000'000U;  ///< 0: only at start and exit
    CaptureSpec capture;
    std::string control_path;  ///< empty: no control socket
    std::vector<net::FaultSpec> faults;
    ServiceOptions services;
    std::string log_file;  ///< empty: standard error
    log::Level log_level = log::Level::Info;
    bool sandbox = true;
    /// Enough to catch the next doorbell of a guest that posts work in a row, which spares it the wake-up of
    /// a sleeping server (about 5 us); short enough that a quiet guest costs next to nothing.
    Nanoseconds busy_poll = 20'000;
};

/// Why the program ends without having started: help, version, or a refusal.
struct Farewell {
    int exit_code = 0;
    std::string text;  ///< for standard output when exit_code is 0, else one sentence for standard error
};

/// The environment variables that matter, as values, so that tests need not change their own environment.
struct Environment {
    std::string temp_dir = "/tmp";         ///< TMPDIR
    std::optional<std::string> log_level;  ///< ERNIC_LOG_LEVEL
    std::string host_name = {};

    /// Thread: any, while nobody changes the environment.
    [[nodiscard]] static Environment of_process();
};

/// Reads the arguments behind the program name. Touches nothing outside but the group database
/// (--socket-group). Thread: any. Fails: a Farewell with exit code 2 and a sentence that names the nearest
/// valid spelling.
[[nodiscard]] std::variant<Options, Farewell> parse_options(std::span<const char* const> arguments,
                                                            const Environment& environment);

}  // namespace ernic::app
