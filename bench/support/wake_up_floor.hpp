// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "base/fd.hpp"

namespace ernic::bench {

/// The least a device in another process can cost: a child that receives a doorbell-sized message from a UNIX
/// socket and stores a number to shared memory. It either sleeps in epoll between messages or spins on the
/// socket.
class WakeUpFloor {
  public:
    WakeUpFloor();
    ~WakeUpFloor();
    WakeUpFloor(const WakeUpFloor&) = delete;
    WakeUpFloor& operator=(const WakeUpFloor&) = delete;

    /// Sends one message and waits, spinning, until the child has stored its number. Returns the seconds that
    /// took.
    double round_trip();
    /// Whether the child spins or sleeps when it waits next.
    void set_spinning(bool spinning);

  private:
    struct Shared {
        std::atomic<std::uint64_t> received;
        std::atomic<bool> spinning;
        std::atomic<bool> ready;
    };
    [[noreturn]] static void serve(int socket, Shared& shared);

    Shared* shared_ = nullptr;
    UniqueFd socket_;
    pid_t child_ = -1;
    std::uint64_t sent_ = 0;
};

}  // namespace ernic::bench
