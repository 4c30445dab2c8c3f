// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/fd.hpp"
#include "wire/vfio_user.hpp"

namespace ernic::fuzz {

/// The client's end of a vfio-user connection. It remembers which answers the server owes for the bytes it
/// was sent, and fails the run on any other.
class VfioClient {
  public:
    /// Nothing happens when the server does not listen.
    void connect(const std::string& path);
    void disconnect();
    [[nodiscard]] bool open() const { return socket_.valid(); }

    /// One sendmsg. Fails: false when the socket is full or closed; nothing was sent then.
    bool send(Bytes data, const std::vector<UniqueFd>& fds);

    /// Reads what has come and checks it.
    void receive();

    /// The server has closed the connection or owes nothing any more.
    [[nodiscard]] bool settled() const { return !open() || owed_.empty(); }
    /// The id of the newest command the server sent, for answers to it.
    [[nodiscard]] std::uint16_t server_command() const { return server_command_; }

  private:
    struct Owed {
        std::uint16_t id;
        std::uint16_t command;
    };

    void remember(Bytes data);
    void check(const wire::vfio_user::Header& header);

    UniqueFd socket_;
    std::vector<std::byte> sent_;      // what is not a whole message yet
    std::vector<std::byte> received_;  // the same in the other direction
    /// The server loses track of messages that lie about their size, and so do we.
    bool out_of_step_ = false;
    std::deque<Owed> owed_;
    std::uint16_t server_command_ = 0;
};

/// Kinds of file descriptors a client may hand over.
enum class FdKind : std::uint8_t {
    Memory,
    SealableMemory,
    WriteSealedMemory,
    ReadOnlyMemory,
    EventFd,
    BlockingEventFd,
    FullEventFd,
    DevNull,
    Pipe,
    Socket,
};
inline constexpr std::uint32_t kFdKinds = 10;

/// A fresh descriptor; memory has `size` bytes.
UniqueFd make_fd(FdKind kind, std::uint64_t size);

}  // namespace ernic::fuzz
