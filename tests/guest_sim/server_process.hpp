// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.hpp"

namespace ernic::guest_sim {

/// The real server binary as a child process with a socket in a directory of its own.
/// Which binary: the environment variable ERNIC_SERVER, else the one that was built beside the tests.
class ServerProcess {
  public:
    struct Options {
        /// Further command line arguments.
        std::vector<std::string> arguments = {"--backend", "loopback"};
        /// CPU the server is bound to, for measurements.
        std::optional<int> cpu = std::nullopt;
        /// Network namespace (a name of `ip netns`) the server lives in. Its sockets in the file system are
        /// reached from everywhere.
        std::string network_namespace = {};
        /// Listen for operators at control_path().
        bool control = false;
        /// False: the constructor does not wait, and wait_until_up() comes before anything else. So several
        /// start at once.
        bool wait = true;
    };

    /// Starts the server, and waits until it is up. Fails: as wait_until_up().
    explicit ServerProcess(const Options& options);
    ServerProcess() : ServerProcess(Options{}) {}
    /// SIGTERM, and SIGKILL for a server that does not obey.
    ~ServerProcess();
    ServerProcess(const ServerProcess&) = delete;
    ServerProcess& operator=(const ServerProcess&) = delete;

    /// Waits until the server accepts connections. Fails: GuestError with its log.
    void wait_until_up();

    /// A connection to the server's socket.
    [[nodiscard]] UniqueFd connect();

    [[nodiscard]] pid_t pid() const { return pid_; }
    [[nodiscard]] const std::string& directory() const { return directory_; }
    [[nodiscard]] std::string control_path() const { return directory_ + "/control"; }
    /// From starting the process to the first accepted connection.
    [[nodiscard]] std::chrono::nanoseconds start_time() const { return start_time_; }
    [[nodiscard]] bool running();
    [[nodiscard]] std::string log() const;

    /// Ends the server with SIGTERM. Returns its exit code, or minus the signal that killed it.
    int stop();
    /// Asks it to end with SIGTERM, and does not wait.
    void terminate();
    /// Ends it with SIGKILL.
    void kill();

  private:
    void spawn(const Options& options);
    [[nodiscard]] UniqueFd try_connect() const;
    void remove_directory() const;

    std::string directory_;
    pid_t pid_ = -1;
    int exit_code_ = 0;
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
    std::chrono::nanoseconds start_time_{};
    /// The connection that proved the server to be up; the first connect() gets it.
    UniqueFd first_;
};

}  // namespace ernic::guest_sim
