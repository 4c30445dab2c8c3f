// SPDX-License-Identifier: MIT
#include "ernicctl/connection.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "base/fd_passing.hpp"

namespace ernic::ctl {
namespace {

using nlohmann::json;

/// A full disk may keep the end of a capture waiting, and a slow one a namespace in a file; everything else
/// is answered within a millisecond.
constexpr timeval kPatience{30, 0};

Error failed(std::string sentence) {
    return {Errc::Io, std::move(sentence)};
}

}  // namespace

Result<Connection> Connection::open(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.empty() || path.size() >= sizeof(address.sun_path)) {
        return failed(
            fmt::format("socket path '{}' must have 1 to {} bytes", path, sizeof(address.sun_path) - 1));
    }
    std::memcpy(address.sun_path, path.data(), path.size());
    UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
        if (errno == ENOENT || errno == ECONNREFUSED) {
            return failed(fmt::format(
                "no server listens on '{0}': start it with --control {0}, or name its socket with -c", path));
        }
        return failed(fmt::format("cannot connect to '{}': {}", path, std::strerror(errno)));
    }
    ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof(kPatience));
    ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof(kPatience));
    return Connection(std::move(socket));
}

Status Connection::send(const std::string& line, int fd) {
    Bytes rest = std::as_bytes(std::span(line));
    while (!rest.empty()) {
        const ssize_t sent = send_with_fd(socket_.get(), rest, std::exchange(fd, -1));
        if (sent < 0) {
            return failed(fmt::format("cannot send to the server: {}", std::strerror(errno)));
        }
        rest = rest.subspan(static_cast<std::size_t>(sent));
    }
    return Done{};
}

Result<std::string> Connection::receive() {
    std::size_t looked_at = 0;
    std::size_t end = 0;
    while ((end = in_.find('\n', looked_at)) == std::string::npos) {
        looked_at = in_.size();
        std::array<char, 65536> buffer;
        const ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
        if (got > 0) {
            in_.append(buffer.data(), static_cast<std::size_t>(got));
        } else if (got == 0) {
            return failed("the server has hung up");
        } else if (errno == EAGAIN) {
            return failed(fmt::format("the server does not answer within {} s", kPatience.tv_sec));
        } else if (errno != EINTR) {
            return failed(fmt::format("cannot read the answer: {}", std::strerror(errno)));
        }
    }
    std::string line = in_.substr(0, end);
    in_.erase(0, end + 1);
    return line;
}

Result<json> Connection::request(const std::string& command, const json& arguments, int fd) {
    const int id = next_id_++;
    answered_ = false;
    const json request = {{"id", id}, {"command", command}, {"arguments", arguments}};
    // A word of the command line need not be UTF-8; the server says what it thinks of it.
    const std::string line = request.dump(-1, ' ', false, json::error_handler_t::replace) + '\n';
    const Status sent = send(line, fd);
    // A server that refuses a client says so before it hangs up.
    auto received = receive();
    if (!received) {
        return sent ? received.error() : sent.error();
    }
    json answer = json::parse(received.value(), nullptr, false);
    if (!answer.is_object() || !answer.contains("ok")) {
        return failed("the answer is not of the control protocol: is this the socket of a VMM?");
    }
    answered_ = true;
    if (answer["ok"] == json(true) && answer.contains("result")) {
        return std::move(answer["result"]);
    }
    const json& error = answer["error"];
    const bool has_message = error.is_object() && error.contains("message") && error["message"].is_string();
    return failed(has_message ? error["message"].get<std::string>() : "the server gives no reason");
}

}  // namespace ernic::ctl
