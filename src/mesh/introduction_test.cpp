// SPDX-License-Identifier: MIT
#include "mesh/introduction.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace ernic::mesh {
namespace {

constexpr Nanoseconds kSecond = 1'000'000'000;

/// Connections that were accepted, and somebody at the other end who writes what a test wants, when it wants.
class IntroductionTest : public ::testing::Test, public IntroductionOwner {
  protected:
    struct Connection {
        std::unique_ptr<Introduction> introduction;
        UniqueFd other_end;
    };

    void introduced(Introduction& introduction) override { links_.push_back(introduction.take_link()); }
    void not_introduced(Introduction& introduction, const std::string& why) override {
        (void)introduction;
        refusals_.push_back(why);
    }

    Connection& accept() {
        std::array<int, 2> ends{};
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
        connections_.push_back(
            {Introduction::accept(UniqueFd(ends[0]), {}, hello(), around_, *this), UniqueFd(ends[1])});
        return connections_.back();
    }

    [[nodiscard]] Hello hello() const {
        Hello hello;
        hello.capabilities = config_.key ? kCapabilityKey : 0U;
        hello.endpoint.port = 7000;
        hello.name = "node";
        return hello;
    }

    void say_hello(const Connection& connection) const {
        const auto head = encode(hello());
        const Prefix prefix{.body_size = be32(0),
                            .type = static_cast<std::uint8_t>(FrameType::Hello),
                            .reserved = 0,
                            .head_size = be16(static_cast<std::uint16_t>(head.size()))};
        std::vector<std::byte> bytes(bytes_of(prefix).begin(), bytes_of(prefix).end());
        bytes.insert(bytes.end(), head.begin(), head.end());
        EXPECT_EQ(::send(connection.other_end.get(), bytes.data(), bytes.size(), 0),
                  static_cast<ssize_t>(bytes.size()));
    }

    void after(Nanoseconds time) {
        clock_.advance(time);
        loop_.run_once(false);
    }

    FakeClock clock_;
    EventLoop loop_{clock_};
    Config config_;
    Counters counters_;
    LinkPool pool_;
    Surroundings around_{.loop = loop_, .config = config_, .counters = counters_, .pool = pool_};
    std::vector<std::string> refusals_;
    std::vector<std::unique_ptr<TcpLink>> links_;
    std::vector<Connection> connections_;
};

TEST_F(IntroductionTest, WhoSaysNothingIsClosedInTime) {
    accept();
    after(kIntroduction - 1);
    EXPECT_TRUE(refusals_.empty());
    after(1);
    EXPECT_EQ(refusals_.size(), 1U);
    EXPECT_EQ(counters_.silent.value(), 1U);
}

TEST_F(IntroductionTest, WhatWaitsInTheSocketCameInTime) {
    // More than the loop looks at in one round: timers have their turn before the last of them.
    for (int i = 0; i < 100; ++i) {
        accept();
    }
    for (const Connection& connection : connections_) {
        say_hello(connection);
    }
    after(kIntroduction + kSecond);
    for (int i = 0; i < 20; ++i) {
        after(0);
    }
    EXPECT_EQ(links_.size(), 100U);
    EXPECT_EQ(counters_.silent.value(), 0U);
}

TEST_F(IntroductionTest, WhoHasSleptGivesTheOtherSideAnotherPeriod) {
    accept();
    after(2 * kIntroduction + kSecond);
    EXPECT_EQ(counters_.silent.value(), 0U);
    after(kIntroduction);
    EXPECT_EQ(counters_.silent.value(), 1U);
}

TEST_F(IntroductionTest, EachStepHasItsOwnTime) {
    const std::string secret = "a key of some length";
    config_.key = Key::of(std::as_bytes(std::span(secret)));
    const Connection& connection = accept();
    after(kIntroduction - kSecond);
    say_hello(connection);
    after(0);
    after(kIntroduction - kSecond);
    EXPECT_EQ(counters_.silent.value(), 0U) << "the proof has its own time";
    after(kSecond);
    EXPECT_EQ(counters_.silent.value(), 1U) << "and no more than that";
}

}  // namespace
}  // namespace ernic::mesh
