// SPDX-License-Identifier: MIT
#include "support/process_probe.hpp"

#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#include <csignal>
#include <fstream>
#include <sstream>

namespace ernic::bench {
namespace {

std::string proc(pid_t pid, const char* file) {
    return "/proc/" + std::to_string(pid) + "/" + file;
}

constexpr std::uint64_t kKiB = 1024;

}  // namespace

std::uint64_t cpu_time(pid_t pid) {
    std::uint64_t nanoseconds = 0;
    std::ifstream(proc(pid, "schedstat")) >> nanoseconds;
    return nanoseconds;
}

std::uint64_t wake_ups(pid_t pid) {
    // Each voluntary switch is one sleep, and so one wake-up.
    std::ifstream file(proc(pid, "status"));
    std::string line;
    while (std::getline(file, line)) {
        if (line.starts_with("voluntary_ctxt_switches:")) {
            return std::stoull(line.substr(line.find(':') + 1));
        }
    }
    return 0;
}

std::uint64_t resident_bytes(pid_t pid) {
    std::ifstream file(proc(pid, "smaps"));
    std::string line;
    bool guest_ram = false;
    std::uint64_t sum = 0;
    while (std::getline(file, line)) {
        const std::size_t colon = line.find(':');
        const bool is_field = colon != std::string::npos && line.find(' ') > colon;
        if (!is_field) {
            guest_ram = line.find("guest-ram") != std::string::npos;
        } else if (!guest_ram && line.starts_with("Rss:")) {
            sum += std::stoull(line.substr(colon + 1)) * kKiB;
        }
    }
    return sum;
}

SyscallCounter::SyscallCounter(pid_t pid) : pid_(pid) {
    attached_ = ::ptrace(PTRACE_SEIZE, pid, nullptr, PTRACE_O_TRACESYSGOOD) == 0;
    if (attached_) {
        ::ptrace(PTRACE_INTERRUPT, pid, nullptr, nullptr);
        int status = 0;
        ::waitpid(pid, &status, __WALL);
        ::ptrace(PTRACE_SYSCALL, pid, nullptr, nullptr);
    }
}

void SyscallCounter::follow() {
    int status = 0;
    if (::waitpid(pid_, &status, __WALL | WNOHANG) != pid_ || !WIFSTOPPED(status)) {
        return;
    }
    if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
        inside_ = !inside_;
        if (inside_) {
            user_regs_struct registers{};
            ::ptrace(PTRACE_GETREGS, pid_, nullptr, &registers);
            ++calls_[static_cast<long>(registers.orig_rax)];
        }
    }
    ::ptrace(PTRACE_SYSCALL, pid_, nullptr, nullptr);
}

SyscallCounter::~SyscallCounter() {
    if (!attached_) {
        return;
    }
    ::ptrace(PTRACE_INTERRUPT, pid_, nullptr, nullptr);
    int status = 0;
    if (::waitpid(pid_, &status, __WALL) == pid_) {
        ::ptrace(PTRACE_DETACH, pid_, nullptr, nullptr);
    }
}

}  // namespace ernic::bench
