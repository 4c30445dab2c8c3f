// SPDX-License-Identifier: MIT
#include "app/signals.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <vector>

namespace ernic::app {
namespace {

/// Puts the process's signal state back, so that an interrupted test run can still be stopped.
class SignalsTest : public testing::Test {
  protected:
    SignalsTest() { sigprocmask(SIG_BLOCK, nullptr, &before_); }
    ~SignalsTest() override {
        sigprocmask(SIG_SETMASK, &before_, nullptr);
        std::signal(SIGPIPE, SIG_DFL);
    }

    FakeClock clock_;
    EventLoop loop_{clock_};
    sigset_t before_{};
};

TEST_F(SignalsTest, EachEndingSignalBecomesACallOnTheLoop) {
    std::vector<int> seen;
    const auto signals = Signals::watch(loop_, [&](int signal) { seen.push_back(signal); });
    ASSERT_TRUE(signals.ok());
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
        raise(signal);
        loop_.run_once(true);
    }
    EXPECT_EQ(seen, (std::vector<int>{SIGTERM, SIGINT, SIGHUP}));
}

TEST_F(SignalsTest, ABrokenPipeIsAnErrorNotAnEnd) {
    const auto signals = Signals::watch(loop_, [](int) {});
    ASSERT_TRUE(signals.ok());
    raise(SIGPIPE);
    SUCCEED();
}

}  // namespace
}  // namespace ernic::app
