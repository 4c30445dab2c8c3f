// SPDX-License-Identifier: MIT
#include "app/sandbox.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>

#include "app/stats_file.hpp"

namespace ernic::app {
namespace {

/// Calls allowed with any arguments. Nothing here opens a file, makes a socket, starts a program or a thread,
/// or reaches another process.
constexpr std::array kAllowed = {
    // The event loop.
    SCMP_SYS(epoll_wait), SCMP_SYS(epoll_pwait), SCMP_SYS(epoll_pwait2), SCMP_SYS(epoll_ctl), SCMP_SYS(poll),
    SCMP_SYS(ppoll), SCMP_SYS(clock_gettime), SCMP_SYS(gettimeofday), SCMP_SYS(time),
    // The VMM's connection. New descriptors arrive only from there.
    SCMP_SYS(accept), SCMP_SYS(accept4), SCMP_SYS(recvmsg), SCMP_SYS(sendmsg), SCMP_SYS(recvfrom),
    SCMP_SYS(sendto), SCMP_SYS(getsockopt), SCMP_SYS(setsockopt), SCMP_SYS(getsockname),
    SCMP_SYS(getpeername), SCMP_SYS(shutdown),
    // Descriptors that are open already: log, eventfds, guest memory.
    SCMP_SYS(read), SCMP_SYS(write), SCMP_SYS(readv), SCMP_SYS(writev), SCMP_SYS(pread64), SCMP_SYS(pwrite64),
    SCMP_SYS(preadv), SCMP_SYS(pwritev), SCMP_SYS(lseek), SCMP_SYS(fstat), SCMP_SYS(newfstatat),
    SCMP_SYS(fcntl), SCMP_SYS(close),
    // Memory. Mapping executable pages is cut out below.
    SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise), SCMP_SYS(brk),
    // Removing the socket at the end.
    SCMP_SYS(unlink), SCMP_SYS(unlinkat),
    // What the C library needs to run and to end.
    SCMP_SYS(futex), SCMP_SYS(sched_yield), SCMP_SYS(sched_getaffinity), SCMP_SYS(getrandom),
    SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn), SCMP_SYS(sigaltstack), SCMP_SYS(restart_syscall), SCMP_SYS(exit),
    SCMP_SYS(exit_group)};

/// The further calls of a statistics file: put the new one in the place of the old.
constexpr std::array kRenames = {SCMP_SYS(rename), SCMP_SYS(renameat), SCMP_SYS(renameat2)};

/// The further calls of namespaces in files. A new ring cannot be made, and the one there is knows only
/// reading, writing, synchronising and allocating (nvmeof::FileUring). Files that come later are open
/// already.
constexpr std::array kStorage = {SCMP_SYS(io_uring_enter), SCMP_SYS(fdatasync), SCMP_SYS(fsync),
                                 SCMP_SYS(fallocate),      SCMP_SYS(ftruncate), SCMP_SYS(fsetxattr),
                                 SCMP_SYS(fgetxattr)};

/// The bits of socket()'s second argument that are no flags.
constexpr scmp_datum_t kSocketType = 0xf;

Error failed(const char* what, int error) {
    return {Errc::Io, fmt::format("cannot enter the sandbox ({}: {}); --sandbox off starts without it", what,
                                  std::strerror(error))};
}

/// True when user id 0 can create and remove entries of `directory` without any capability.
bool plain_access(const std::string& directory) {
    struct stat info {};
    return stat(directory.c_str(), &info) == 0 && info.st_uid == geteuid() && (info.st_mode & S_IWUSR) != 0;
}

/// Drops capabilities for good: from the bounding set, and from this process. A no-op for an ordinary user.
Status drop_capabilities(const SandboxNeeds& needs) {
    std::uint32_t kept = 0;
    for (const std::string& directory : needs.directories) {
        if (!plain_access(directory)) {
            // Root's socket in a user's directory: without these two it could not be removed at the end.
            kept = 1U << CAP_DAC_OVERRIDE | 1U << CAP_FOWNER;
        }
    }
    for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; ++capability) {
        // Fails without CAP_SETPCAP, that is for ordinary users, who have nothing to drop: no new privileges
        // suffices.
        (void)prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
    }
    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<__user_cap_data_struct, 2> data{};
    if (syscall(SYS_capget, &header, data.data()) != 0) {
        return failed("capget", errno);
    }
    data[0] = {data[0].effective & kept, data[0].permitted & kept, 0};
    data[1] = {0, 0, 0};
    if (syscall(SYS_capset, &header, data.data()) != 0) {
        return failed("capset", errno);
    }
    return Done{};
}

/// Collects rules and remembers the first that failed.
class Filter {
  public:
    Filter() : context_(seccomp_init(SCMP_ACT_KILL_PROCESS), &seccomp_release) {
        if (context_ == nullptr) {
            error_ = ENOMEM;
            return;
        }
        // 32-bit calls on a 64-bit kernel bypass nothing: same end.
        keep(seccomp_attr_set(context_.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS));
        // A thread that was started earlier, such as a capture's writer, gets the same filter.
        keep(seccomp_attr_set(context_.get(), SCMP_FLTATR_CTL_TSYNC, 1));
        // A search tree instead of a list of some seventy comparisons per call.
        keep(seccomp_attr_set(context_.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2));
    }

    template <typename... Compare>
    void allow(int call, Compare... compare) {
        if (error_ == 0) {
            keep(seccomp_rule_add(context_.get(), SCMP_ACT_ALLOW, call, sizeof...(compare), compare...));
        }
    }

    /// Fails: the errno of the first step that failed.
    int load() {
        if (error_ == 0) {
            keep(seccomp_load(context_.get()));
        }
        return error_;
    }

  private:
    void keep(int result) {
        if (result < 0 && error_ == 0) {
            error_ = -result;
        }
    }

    std::unique_ptr<void, decltype(&seccomp_release)> context_;
    int error_ = 0;
};

Status load_filter(const SandboxNeeds& needs) {
    Filter filter;
    for (const int call : kAllowed) {
        filter.allow(call);
    }
    const scmp_arg_cmp not_executable{2, SCMP_CMP_MASKED_EQ, PROT_EXEC, 0};
    filter.allow(SCMP_SYS(mmap), not_executable);
    filter.allow(SCMP_SYS(mprotect), not_executable);
    // abort() and assert() raise SIGABRT in this very process.
    filter.allow(SCMP_SYS(tgkill), scmp_arg_cmp{0, SCMP_CMP_EQ, static_cast<scmp_datum_t>(getpid()), 0});
    if (needs.creates_files) {
        for (const int call : kRenames) {
            filter.allow(call);
        }
        filter.allow(SCMP_SYS(openat),
                     scmp_arg_cmp{2, SCMP_CMP_EQ, static_cast<scmp_datum_t>(StatsFile::kOpenFlags), 0});
    }
    if (needs.tap) {
        for (const unsigned long request :
             {TUNSETIFF, TUNSETVNETHDRSZ, TUNSETVNETLE, TUNSETOFFLOAD, std::size_t{SIOCGIFINDEX}}) {
            filter.allow(SCMP_SYS(ioctl), scmp_arg_cmp{1, SCMP_CMP_EQ, request, 0});
        }
    }
    if (needs.storage) {
        for (const int call : kStorage) {
            filter.allow(call);
        }
    }
    if (needs.mesh) {
        // TCP over IPv4 and IPv6 only; what may be reached is the business of the host's firewall.
        for (const int family : {AF_INET, AF_INET6}) {
            filter.allow(SCMP_SYS(socket), scmp_arg_cmp{0, SCMP_CMP_EQ, static_cast<scmp_datum_t>(family), 0},
                         scmp_arg_cmp{1, SCMP_CMP_MASKED_EQ, kSocketType, SOCK_STREAM});
        }
        filter.allow(SCMP_SYS(connect));
        for (const unsigned long request : {std::size_t{FIONREAD}, std::size_t{SIOCOUTQNSD}}) {
            filter.allow(SCMP_SYS(ioctl), scmp_arg_cmp{1, SCMP_CMP_EQ, request, 0});
        }
    }
    const int error = filter.load();
    return error == 0 ? Status(Done{}) : Status(failed("seccomp", error));
}

}  // namespace

const char* sandbox_obstacle() {
#if defined(__SANITIZE_ADDRESS__)
    return "address sanitizer";
#elif defined(__SANITIZE_THREAD__)
    return "thread sanitizer";
#elif defined(ERNIC_COVERAGE)
    return "coverage";
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
    return "address sanitizer";
#elif __has_feature(thread_sanitizer)
    return "thread sanitizer";
#elif __has_feature(memory_sanitizer)
    return "memory sanitizer";
#else
    return "";
#endif
#else
    return "";
#endif
}

void drop_thread_capabilities() {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    const std::array<__user_cap_data_struct, 2> none{};
    (void)syscall(SYS_capset, &header, none.data());
}

Status enter_sandbox(const SandboxNeeds& needs) {
    tzset();  // the log's time stamps would read /etc/localtime at their first use
    if (Status dropped = drop_capabilities(needs); !dropped) {
        return dropped;
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return failed("no_new_privs", errno);
    }
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) {
        return failed("dumpable", errno);
    }
    return load_filter(needs);
}

}  // namespace ernic::app
