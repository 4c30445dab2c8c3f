// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>

/// What the kernel tells about the server process.
namespace ernic::bench {

/// Nanoseconds the process has spent on a CPU.
std::uint64_t cpu_time(pid_t pid);

/// How often it has been put on a CPU because it woke up.
std::uint64_t wake_ups(pid_t pid);

/// Resident bytes without the mappings of guest RAM.
std::uint64_t resident_bytes(pid_t pid);

/// Counts the system calls a process makes while this exists, by stopping it at each one. Works as root or
/// for a child that has not given up being traced.
class SyscallCounter {
  public:
    /// Fails: `attached()` is false.
    explicit SyscallCounter(pid_t pid);
    ~SyscallCounter();
    SyscallCounter(const SyscallCounter&) = delete;
    SyscallCounter& operator=(const SyscallCounter&) = delete;

    [[nodiscard]] bool attached() const { return attached_; }
    /// Lets the process run while `done()` is false, then returns the calls by number.
    template <typename Predicate>
    std::map<long, std::uint64_t> count_until(Predicate done) {
        while (!done()) {
            follow();
        }
        return calls_;
    }

  private:
    /// Handles what the process has stopped for, if anything.
    void follow();

    pid_t pid_;
    bool attached_ = false;
    bool inside_ = false;
    std::map<long, std::uint64_t> calls_;
};

}  // namespace ernic::bench
