// SPDX-License-Identifier: MIT
#include "base/log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace ernic::log {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class MemorySink final : public Sink {
  public:
    void write(Level, std::string_view component, std::string_view text) override {
        lines.push_back(fmt::format("{}: {}", component, text));
    }
    std::vector<std::string> lines;
};

class LoggerTest : public testing::Test {
  protected:
    std::shared_ptr<MemorySink> sink_ = std::make_shared<MemorySink>();
    Logger log_{sink_, "unit"};
};

TEST_F(LoggerTest, PrintsItsComponentAndFormatsItsArguments) {
    log_.info("qp={} state={}", 7, "RTS");
    log_.named("other").error("gone");
    EXPECT_THAT(sink_->lines, ElementsAre("unit: qp=7 state=RTS", "other: gone"));
}

TEST_F(LoggerTest, EachLevelIncludesTheGraverOnes) {
    const auto lines_at = [this](Level level) {
        sink_->lines.clear();
        sink_->set_level(level);
        log_.error("e");
        log_.warn("w");
        log_.info("i");
        log_.debug("d");
        return sink_->lines.size();
    };
    EXPECT_EQ(lines_at(Level::None), 0U);
    EXPECT_EQ(lines_at(Level::Error), 1U);
    EXPECT_EQ(lines_at(Level::Warn), 2U);
    EXPECT_EQ(lines_at(Level::Info), 3U);
    EXPECT_EQ(lines_at(Level::Debug), 4U);
}

TEST_F(LoggerTest, ALimitedLineIsPrintedOnceASecondAndCountsWhatItHid) {
    Limiter limiter;
    for (int i = 0; i < 1000; ++i) {
        log_.warn_limited(limiter, "bad doorbell {}", i);
    }
    EXPECT_THAT(sink_->lines, ElementsAre("unit: bad doorbell 0"));
    EXPECT_EQ(limiter.hidden, 999U);
    limiter.last -= 1'000'000'000;  // a second passes
    log_.warn_limited(limiter, "bad doorbell {}", 1000);
    EXPECT_THAT(sink_->lines,
                ElementsAre("unit: bad doorbell 0", "unit: bad doorbell 1000 (999 similar lines hidden)"));
    EXPECT_EQ(limiter.hidden, 0U);
}

TEST_F(LoggerTest, LinesOfEveryLevelCanBeLimited) {
    Limiter info;
    Limiter error;
    for (int i = 0; i < 3; ++i) {
        log_.info_limited(info, "i{}", i);
        log_.error_limited(error, "e{}", i);
    }
    EXPECT_THAT(sink_->lines, ElementsAre("unit: i0", "unit: e0"));
}

TEST_F(LoggerTest, ALimitedLineBelowTheLevelIsNotCounted) {
    sink_->set_level(Level::Error);
    Limiter limiter;
    log_.warn_limited(limiter, "x");
    EXPECT_TRUE(sink_->lines.empty());
    EXPECT_EQ(limiter.last, 0U);
}

TEST(OpenSink, AppendsToAFile) {
    const auto path = std::filesystem::temp_directory_path() / fmt::format("ernic-log-{}", getpid());
    std::ofstream(path) << "before\n";
    {
        auto sink = open_sink(path);
        ASSERT_TRUE(sink.ok());
        Logger(sink.value(), "unit").warn("disk={}", 3);
    }
    std::ifstream file(path);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    EXPECT_THAT(text, testing::StartsWith("before\n"));
    EXPECT_THAT(text, HasSubstr(" warning unit: disk=3\n"));
    std::filesystem::remove(path);
}

TEST(OpenSink, SaysWhyAFileCannotBeOpened) {
    const auto sink = open_sink("/dev/null/log");
    ASSERT_FALSE(sink.ok());
    EXPECT_EQ(sink.error().code, Errc::Io);
    EXPECT_THAT(sink.error().message, HasSubstr("cannot open log file '/dev/null/log'"));
}

TEST(NullSink, HasEveryLevelOff) {
    EXPECT_FALSE(Logger(null_sink(), "x").on(Level::Error));
}

}  // namespace
}  // namespace ernic::log
