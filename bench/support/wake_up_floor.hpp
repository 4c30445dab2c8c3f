// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/fd.hpp"

namespace ernic::bench {

/// The least a device in another process can cost: a child that receives a doorbell-sized message from a UNIX
/// socket and stores a number to shared memory. It either sleeps in epoll between messages or spins on the
/// socket. It can also do by hand what a device must do for one 64-byte WRITE, see `exchange`.
class WakeUpFloor {
  public:
    WakeUpFloor();
    ~WakeUpFloor();
    WakeUpFloor(const WakeUpFloor&) = delete;
    WakeUpFloor& operator=(const WakeUpFloor&) = delete;

    /// Sends one message and waits, spinning, until the child has stored its number. Returns the seconds that
    /// took.
    double round_trip();
    /// The same with the memory traffic and the system calls that the protocol demands, and no logic at all:
    /// a 64-byte request in shared memory, a doorbell message in three parts, received with room for
    /// descriptors; the child reads the request, copies 64 bytes and writes a 32-byte completion.
    double exchange();
    /// Whether the child serves `exchange` or `round_trip`. Call it while the child spins.
    void set_exchanging(bool exchanging);
    /// Whether the child spins or sleeps when it waits next.
    void set_spinning(bool spinning);

  private:
    static constexpr std::size_t kSlots = 64;
    struct alignas(64) Request {
        std::array<std::uint64_t, 8> words;
    };
    struct alignas(32) Completion {
        std::array<std::uint64_t, 3> words;
        std::atomic<std::uint64_t> number;
    };
    struct Shared {
        alignas(64) std::atomic<std::uint64_t> received;
        alignas(64) std::atomic<bool> spinning;
        std::atomic<bool> exchanging;
        std::atomic<bool> ready;
        std::array<Request, kSlots> requests;
        std::array<Completion, kSlots> completions;
        std::array<Request, 2> data;
    };
    [[noreturn]] static void serve(int socket, Shared& shared);

    Shared* shared_ = nullptr;
    UniqueFd socket_;
    pid_t child_ = -1;
    std::uint64_t sent_ = 0;
    std::uint64_t exchanged_ = 0;
};

}  // namespace ernic::bench
