// SPDX-License-Identifier: MIT
#include "base/event_loop.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace ernic {
namespace {

/// From now on this process is on a kernel without `call`.
void remove_system_call(unsigned call) {
    std::array<sock_filter, 4> program = {{
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    }};
    const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
        _exit(2);
    }
}

struct Pipe {
    Pipe() {
        std::array<int, 2> ends{};
        EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
        read_end.reset(ends[0]);
        write_end.reset(ends[1]);
    }
    void put() const { EXPECT_EQ(::write(write_end.get(), "x", 1), 1); }
    void take() const {
        char byte = 0;
        EXPECT_EQ(::read(read_end.get(), &byte, 1), 1);
    }
    [[nodiscard]] int fd() const { return read_end.get(); }

    UniqueFd read_end;
    UniqueFd write_end;
};

class EventLoopTest : public testing::Test {
  protected:
    FakeClock clock_;
    EventLoop loop_{clock_};
    Pipe pipe_;
};

TEST_F(EventLoopTest, CallsTheHandlerOfAReadyDescriptor) {
    int calls = 0;
    loop_.add(pipe_.fd(), EPOLLIN, [&](std::uint32_t events) {
        EXPECT_EQ(events, static_cast<std::uint32_t>(EPOLLIN));
        pipe_.take();
        ++calls;
    });
    loop_.run_once(false);
    EXPECT_EQ(calls, 0);
    pipe_.put();
    loop_.run_once(true);
    EXPECT_EQ(calls, 1);
    loop_.run_once(false);
    EXPECT_EQ(calls, 1);
}

TEST_F(EventLoopTest, ForgetsARemovedDescriptor) {
    int calls = 0;
    loop_.add(pipe_.fd(), EPOLLIN, [&](std::uint32_t) { ++calls; });
    pipe_.put();
    loop_.remove(pipe_.fd());
    loop_.run_once(false);
    EXPECT_EQ(calls, 0);
}

TEST_F(EventLoopTest, ModifyChangesWhatIsWaitedFor) {
    int calls = 0;
    loop_.add(pipe_.fd(), EPOLLIN, [&](std::uint32_t) { ++calls; });
    pipe_.put();
    loop_.modify(pipe_.fd(), 0);
    loop_.run_once(false);
    EXPECT_EQ(calls, 0);
    loop_.modify(pipe_.fd(), EPOLLIN);
    loop_.run_once(false);
    EXPECT_EQ(calls, 1);
}

TEST_F(EventLoopTest, AHandlerMayRemoveItself) {
    const auto witness = std::make_shared<int>(0);
    loop_.add(pipe_.fd(), EPOLLIN, [&loop = loop_, &pipe = pipe_, witness](std::uint32_t) {
        loop.remove(pipe.fd());
        ++*witness;  // still alive although the loop no longer holds the handler
    });
    pipe_.put();
    loop_.run_once(false);
    loop_.run_once(false);
    EXPECT_EQ(*witness, 1);
    EXPECT_EQ(witness.use_count(), 1) << "the handler must be gone";
}

TEST_F(EventLoopTest, AHandlerMayRemoveAnotherThatIsReadyInTheSameRound) {
    Pipe second;
    int calls = 0;
    loop_.add(pipe_.fd(), EPOLLIN, [&](std::uint32_t) {
        ++calls;
        loop_.remove(second.fd());
    });
    loop_.add(second.fd(), EPOLLIN, [&](std::uint32_t) {
        ++calls;
        loop_.remove(pipe_.fd());
    });
    pipe_.put();
    second.put();
    loop_.run_once(false);
    EXPECT_EQ(calls, 1);
}

TEST_F(EventLoopTest, TimersFireInOrderOfTheirDeadlinesOnce) {
    std::vector<int> fired;
    Timer late(loop_, [&] { fired.push_back(2); });
    Timer early(loop_, [&] { fired.push_back(1); });
    Timer never(loop_, [&] { fired.push_back(3); });
    const Nanoseconds start = clock_.now();
    late.arm(start + 20);
    early.arm(start + 10);
    never.arm(start + 21);
    loop_.run_once(false);
    EXPECT_TRUE(fired.empty());
    clock_.advance(20);
    loop_.run_once(false);
    EXPECT_EQ(fired, (std::vector<int>{1, 2}));
    EXPECT_FALSE(early.armed());
    EXPECT_TRUE(never.armed());
    loop_.run_once(false);
    EXPECT_EQ(fired.size(), 2U);
}

TEST_F(EventLoopTest, ManyTimersAtOnceAreSpreadOverRounds) {
    constexpr int kTimers = 1000;
    int fired = 0;
    std::vector<std::unique_ptr<Timer>> timers;
    for (int i = 0; i < kTimers; ++i) {
        timers.push_back(std::make_unique<Timer>(loop_, [&] { ++fired; }));
        timers.back()->arm(clock_.now());
    }
    loop_.run_once(true);
    EXPECT_GT(fired, 0);
    EXPECT_LE(fired, 100) << "a register access may be waiting";
    for (int i = 0; i < kTimers && fired < kTimers; ++i) {
        loop_.run_once(true);  // would sleep for ever if it forgot the others
    }
    EXPECT_EQ(fired, kTimers);
}

TEST_F(EventLoopTest, ArmingAgainMovesTheDeadline) {
    int fired = 0;
    Timer timer(loop_, [&] { ++fired; });
    const Nanoseconds start = clock_.now();
    timer.arm(start + 10);
    timer.arm(start + 30);
    EXPECT_EQ(timer.deadline(), start + 30);
    clock_.advance(20);
    loop_.run_once(false);
    EXPECT_EQ(fired, 0);
    clock_.advance(10);
    loop_.run_once(false);
    EXPECT_EQ(fired, 1);
}

TEST_F(EventLoopTest, ACancelledOrDeadTimerDoesNotFire) {
    int fired = 0;
    Timer cancelled(loop_, [&] { ++fired; });
    auto dead = std::make_unique<Timer>(loop_, [&] { ++fired; });
    cancelled.arm(clock_.now());
    dead->arm(clock_.now());
    cancelled.cancel();
    dead.reset();
    loop_.run_once(false);
    EXPECT_EQ(fired, 0);
}

TEST_F(EventLoopTest, ATimerMayCancelAnotherOfTheSameInstant) {
    int fired = 0;
    std::unique_ptr<Timer> second;
    Timer first(loop_, [&] {
        ++fired;
        second.reset();
    });
    second = std::make_unique<Timer>(loop_, [&] { ++fired; });
    first.arm(clock_.now());
    second->arm(clock_.now());
    loop_.run_once(false);
    EXPECT_EQ(fired, 1);
}

TEST_F(EventLoopTest, ATimerMayArmItselfAgain) {
    int fired = 0;
    std::function<void()> again;
    Timer timer(loop_, [&] { again(); });
    again = [&] {
        ++fired;
        timer.arm(clock_.now() + 10);
    };
    timer.arm(clock_.now() + 10);
    for (int i = 0; i < 3; ++i) {
        clock_.advance(10);
        loop_.run_once(false);
    }
    EXPECT_EQ(fired, 3);
}

TEST_F(EventLoopTest, ADueTimerKeepsTheLoopFromBlocking) {
    int fired = 0;
    Timer timer(loop_, [&] { ++fired; });
    timer.arm(clock_.now());
    loop_.run_once(true);  // would hang if it slept: the fake clock stands still
    EXPECT_EQ(fired, 1);
}

TEST_F(EventLoopTest, WorkLeftKeepsTheLoopFromBlocking) {
    int steps = 0;
    loop_.set_worker([&] {
        clock_.advance(1'000'000);
        return ++steps < 6;
    });
    for (int i = 0; i < 3; ++i) {
        loop_.run_once(i != 0);  // the first round has no work yet and would sleep
    }
    EXPECT_EQ(steps, 6) << "two steps of a millisecond are more than a round's time";
}

TEST_F(EventLoopTest, DescriptorsAreServedBetweenStepsOfLongWork) {
    int steps = 0;
    int handled_at = 0;
    loop_.set_worker([&] {
        clock_.advance(30'000);
        return ++steps < 100;
    });
    loop_.add(pipe_.fd(), EPOLLIN, [&](std::uint32_t) {
        pipe_.take();
        handled_at = steps;
    });
    loop_.run_once(false);
    pipe_.put();
    loop_.run_once(true);
    EXPECT_EQ(handled_at, 5) << "one step, then steps for 100 us";
}

TEST_F(EventLoopTest, RunEndsWhenAHandlerStopsIt) {
    loop_.add(pipe_.fd(), EPOLLIN, [&](std::uint32_t) { loop_.stop(); });
    pipe_.put();
    loop_.run();
    SUCCEED();
}

TEST_F(EventLoopTest, SpinsForTheWindowAfterProgressThenSleeps) {
    int polls = 0;
    loop_.set_busy_poll(100);
    loop_.set_poller([&] {
        clock_.advance(30);
        return ++polls == 2;  // progress once, 60 ns after the start
    });
    loop_.add(pipe_.fd(), EPOLLIN, [&](std::uint32_t) { pipe_.take(); });
    pipe_.put();
    loop_.run_once(true);
    // The window opens again at 60 and is over after 160: the polls at 90, 120, 150 and 180.
    EXPECT_EQ(polls, 6);
}

TEST_F(EventLoopTest, AKernelThatIsTooOldIsToldAtOnce) {
    EXPECT_TRUE(loop_.usable().ok());
    const pid_t child = fork();
    if (child == 0) {
        remove_system_call(SYS_epoll_pwait2);
        const Status usable = loop_.usable();
        _exit(!usable && usable.error().message.find("Linux 5.11") != std::string::npos ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}

TEST_F(EventLoopTest, ALongWindowStaysOpenAcrossLooksAtTheDescriptors) {
    int polls = 0;
    loop_.set_busy_poll(5'000'000);
    loop_.set_poller([&] {
        clock_.advance(100'000);
        ++polls;
        return false;
    });
    loop_.add(pipe_.fd(), EPOLLIN, [&](std::uint32_t) { pipe_.take(); });
    pipe_.put();
    for (int i = 0; i < 5; ++i) {
        loop_.run_once(true);  // would hang if it slept within the window
    }
    EXPECT_EQ(polls, 51) << "every 100 us until 5 ms have passed";
}

TEST_F(EventLoopTest, WithoutAWindowNeverPolls) {
    loop_.set_poller([&] {
        ADD_FAILURE();
        return false;
    });
    loop_.add(pipe_.fd(), EPOLLIN, [&](std::uint32_t) { pipe_.take(); });
    pipe_.put();
    loop_.run_once(true);
}

TEST_F(EventLoopTest, EndlessProgressDoesNotStarveOtherDescriptors) {
    // A guest that never pauses longer than the window must not keep a signal or a second client from being
    // seen.
    constexpr int kSecondsInMicroseconds = 1'000'000;
    int polls = 0;
    bool stopped = false;
    Pipe signal;
    loop_.set_busy_poll(20'000);
    loop_.set_poller([&] {
        clock_.advance(1000);
        if (++polls > kSecondsInMicroseconds) {
            loop_.stop();
        }
        return true;
    });
    loop_.add(pipe_.fd(), EPOLLIN, [&](std::uint32_t) { signal.put(); });
    loop_.add(signal.fd(), EPOLLIN, [&](std::uint32_t) {
        stopped = true;
        loop_.stop();
    });
    pipe_.put();
    loop_.run();
    EXPECT_TRUE(stopped);
    EXPECT_LT(polls, 10'000) << "10 ms is too long for a signal to wait";
}

TEST_F(EventLoopTest, TimersFireWhileSpinning) {
    int fired = 0;
    Timer timer(loop_, [&] { ++fired; });
    timer.arm(clock_.now() + 500);
    loop_.set_busy_poll(10'000);
    loop_.set_poller([&] {
        clock_.advance(100);
        return false;
    });
    loop_.add(pipe_.fd(), EPOLLIN, [&](std::uint32_t) { pipe_.take(); });
    pipe_.put();
    loop_.run_once(true);
    loop_.run_once(false);
    EXPECT_EQ(fired, 1);
    EXPECT_LT(clock_.now() - timer.deadline(), 1000U);
}

}  // namespace
}  // namespace ernic
