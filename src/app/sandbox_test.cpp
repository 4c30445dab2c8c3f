// SPDX-License-Identifier: MIT
#include "app/sandbox.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/if_tun.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "app/stats_file.hpp"
#include "base/log.hpp"
#include "net/digest.hpp"

namespace ernic::app {
namespace {

/// Each test forks, since there is no way back: the child enters the sandbox and does one thing.
class SandboxTest : public testing::Test {
  protected:
    void SetUp() override {
        if (*sandbox_obstacle() != '\0') {
            GTEST_SKIP() << "this build has " << sandbox_obstacle();
        }
    }

    struct End {
        int exit_code;  // -1 when killed
        int signal;     // 0 when it ended by itself
    };

    /// `action` returns the child's exit code.
    static End in_sandbox(const SandboxNeeds& needs, const std::function<int()>& action) {
        const pid_t child = fork();
        if (child == 0) {
            constexpr int kNotEntered = 99;
            _exit(enter_sandbox(needs) ? action() : kNotEntered);
        }
        int status = 0;
        waitpid(child, &status, 0);
        return WIFSIGNALED(status) ? End{-1, WTERMSIG(status)} : End{WEXITSTATUS(status), 0};
    }

    static void expect_killed(const SandboxNeeds& needs, const std::function<int()>& action) {
        EXPECT_EQ(in_sandbox(needs, action).signal, SIGSYS);
    }
    static void expect_allowed(const SandboxNeeds& needs, const std::function<int()>& action) {
        const End end = in_sandbox(needs, action);
        EXPECT_EQ(end.signal, 0);
        EXPECT_EQ(end.exit_code, 0);
    }
};

TEST_F(SandboxTest, SetsEveryRestriction) {
    // Read from outside, because the child can open nothing any more.
    int ready[2];
    int leave[2];
    ASSERT_EQ(pipe(ready) + pipe(leave), 0);
    const pid_t child = fork();
    if (child == 0) {
        char byte = enter_sandbox({}) ? 'y' : 'n';
        _exit(write(ready[1], &byte, 1) == 1 && read(leave[0], &byte, 1) == 1 ? 0 : 1);
    }
    char answer = 0;
    ASSERT_EQ(read(ready[0], &answer, 1), 1);
    EXPECT_EQ(answer, 'y');
    const std::string path = "/proc/" + std::to_string(child) + "/status";
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    std::string status(8192, '\0');
    const ssize_t size = read(fd, status.data(), status.size());
    close(fd);
    ASSERT_GT(size, 0);
    EXPECT_NE(status.find("NoNewPrivs:\t1\n"), std::string::npos);
    EXPECT_NE(status.find("Seccomp:\t2\n"), std::string::npos);
    EXPECT_NE(status.find("CapEff:\t0000000000000000\n"), std::string::npos);
    EXPECT_NE(status.find("CapPrm:\t0000000000000000\n"), std::string::npos);
    ASSERT_EQ(write(leave[1], "x", 1), 1);
    int end = 0;
    waitpid(child, &end, 0);
    EXPECT_EQ(end, 0);
    for (const int pipe_end : {ready[0], ready[1], leave[0], leave[1]}) {
        close(pipe_end);
    }
}

TEST_F(SandboxTest, AllowsTheWorkOfTheServer) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    expect_allowed({}, [&] {
        char byte = 'x';
        const bool moved = write(ends[0], &byte, 1) == 1 && recv(ends[1], &byte, 1, 0) == 1;
        constexpr std::size_t kPage = 4096;
        void* const memory = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return moved && memory != MAP_FAILED && munmap(memory, kPage) == 0 ? 0 : 1;
    });
    close(ends[0]);
    close(ends[1]);
}

TEST_F(SandboxTest, AllowsFilesToBeSynchronisedOnlyWhenThereAreAny) {
    const int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    ASSERT_GE(fd, 0);
    const auto action = [fd] { return fdatasync(fd) == 0 && fallocate(fd, 0, 0, 4096) == 0 ? 0 : 1; };
    SandboxNeeds needs;
    needs.storage = true;
    expect_allowed(needs, action);
    expect_killed({}, action);
    expect_killed(needs, [] { return static_cast<int>(syscall(SYS_io_uring_setup, 1, nullptr)); });
    close(fd);
}

TEST_F(SandboxTest, HoldsThreadsThatStartedBeforeIt) {
    const pid_t child = fork();
    if (child == 0) {
        std::atomic<bool> inside{false};
        std::thread earlier([&inside] {
            drop_thread_capabilities();
            while (!inside) {
                std::this_thread::yield();
            }
            (void)open("/etc/passwd", O_RDONLY | O_CLOEXEC);
        });
        inside = enter_sandbox({}).ok();
        earlier.join();
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(WTERMSIG(status), SIGSYS);
}

TEST_F(SandboxTest, KillsWhatAnIntruderWouldTry) {
    expect_killed({}, [] { return open("/etc/passwd", O_RDONLY); });
    expect_killed({}, [] { return socket(AF_INET, SOCK_STREAM, 0); });
    expect_killed({}, [] { return execl("/bin/true", "true", nullptr); });
    expect_killed({}, [] { return fork(); });
    expect_killed({}, [] { return kill(getppid(), 0); });
    expect_killed({}, [] {
        return static_cast<int>(syscall(SYS_process_vm_readv, getpid(), nullptr, 0, nullptr, 0, 0));
    });
    constexpr std::size_t kPage = 4096;
    expect_killed({}, [] {
        mmap(nullptr, kPage, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return 0;
    });
    expect_killed({}, [] {
        void* const memory = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return mprotect(memory, kPage, PROT_READ | PROT_EXEC);
    });
}

TEST_F(SandboxTest, AnAbortStillLooksLikeAnAbort) {
    const auto end = in_sandbox({}, [] {
        std::abort();
        return 0;
    });
    EXPECT_EQ(end.signal, SIGABRT);
}

TEST_F(SandboxTest, PayloadDigestsWorkOnceOpensslHasReadItsConfiguration) {
    const log::Logger log(log::null_sink(), "test");
    (void)net::PayloadDigest(log).add({}, 0);
    expect_allowed({}, [&] { return net::PayloadDigest(log).add({}, 0).empty() ? 1 : 0; });
}

TEST_F(SandboxTest, StatisticsMayCreateFilesButNotOpenOthers) {
    namespace fs = std::filesystem;
    std::string name = fs::temp_directory_path() / "ernic-sandbox-XXXXXX";
    const fs::path directory = mkdtemp(name.data());
    const metrics::Registry registry;
    auto file = StatsFile::open(directory / "stats.json", registry);
    ASSERT_TRUE(file.ok());
    const SandboxNeeds needs{{directory}, true};
    expect_allowed(needs, [&] { return file.value().write() ? 0 : 1; });
    expect_killed(needs, [] { return open("/etc/passwd", O_RDONLY); });
    expect_killed({}, [&] { return file.value().write() ? 0 : 1; });
    fs::remove_all(directory);
}

TEST_F(SandboxTest, TapRequestsNeedATap) {
    const auto request = [](unsigned long number) {
        return [number] { return ioctl(-1, number, nullptr) == -1 && errno == EBADF ? 0 : 1; };
    };
    SandboxNeeds needs;
    expect_killed(needs, request(TUNSETIFF));
    needs.tap = true;
    expect_allowed(needs, request(TUNSETIFF));
    expect_allowed(needs, request(TUNSETVNETHDRSZ));
    expect_allowed(needs, request(TUNSETVNETLE));
    expect_allowed(needs, request(TUNSETOFFLOAD));
    expect_allowed(needs, request(SIOCGIFINDEX));
    expect_killed(needs, request(TUNSETPERSIST));
}

TEST_F(SandboxTest, ConnectionsToOtherServersAreTcpAndOnlyForAMesh) {
    const auto tcp = [] {
        const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        int waiting = 0;
        (void)::ioctl(fd, FIONREAD, &waiting);  // what it says does not matter
        return fd < 0 ? 1 : 0;
    };
    const auto datagrams = [] { return ::socket(AF_INET, SOCK_DGRAM, 0) < 0 ? 1 : 0; };
    const auto local = [] { return ::socket(AF_UNIX, SOCK_STREAM, 0) < 0 ? 1 : 0; };
    SandboxNeeds needs;
    expect_killed(needs, tcp);
    needs.mesh = true;
    expect_allowed(needs, tcp);
    expect_killed(needs, datagrams);
    expect_killed(needs, local);
}

}  // namespace
}  // namespace ernic::app
