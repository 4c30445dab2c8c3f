// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/fd.hpp"
#include "base/result.hpp"

namespace ernic::ctl {

/// A connection to the control socket of a server. Owns: the socket. Thread: one.
class Connection {
  public:
    /// Fails: Io with one sentence that says what to do.
    static Result<Connection> open(const std::string& path);

    /// Sends one request, with a copy of `fd` unless it is negative, and waits for its answer, half a minute
    /// at most. Fails: with the server's sentence, or Io when there is no usable answer.
    [[nodiscard]] Result<nlohmann::json> request(const std::string& command, const nlohmann::json& arguments,
                                                 int fd = -1);
    /// The last request was answered: if it failed, nothing was done.
    [[nodiscard]] bool answered() const { return answered_; }

  private:
    explicit Connection(UniqueFd socket) : socket_(std::move(socket)) {}
    [[nodiscard]] Status send(const std::string& line, int fd);
    /// The next line, without its end.
    [[nodiscard]] Result<std::string> receive();

    UniqueFd socket_;
    std::string in_;
    int next_id_ = 1;
    bool answered_ = false;
};

}  // namespace ernic::ctl
