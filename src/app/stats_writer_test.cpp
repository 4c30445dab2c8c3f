// SPDX-License-Identifier: MIT
#include "app/stats_writer.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

namespace ernic::app {
namespace {

namespace fs = std::filesystem;
constexpr Nanoseconds kSecond = 1'000'000'000;

class StatsWriterTest : public testing::Test {
  protected:
    StatsWriterTest() {
        std::string name = fs::temp_directory_path() / "ernic-writer-XXXXXX";
        directory_ = mkdtemp(name.data());
        registry_.add({"messages", "messages", "sent"}, messages_);
    }
    ~StatsWriterTest() override { fs::remove_all(directory_); }

    StatsFile open() { return std::move(StatsFile::open(directory_ / "s", registry_).value()); }
    /// True when the file was replaced by `action`; the hard link keeps the old inode number from being used
    /// again.
    template <typename Action>
    bool replaced(Action action) {
        fs::create_hard_link(directory_ / "s", directory_ / "old");
        action();
        const bool same = fs::equivalent(directory_ / "s", directory_ / "old");
        fs::remove(directory_ / "old");
        return !same;
    }
    void round() { loop_.run_once(false); }

    fs::path directory_;
    metrics::Counter messages_;
    metrics::Registry registry_;
    FakeClock clock_;
    EventLoop loop_{clock_};
    log::Logger log_{log::null_sink(), "test"};
};

TEST_F(StatsWriterTest, RewritesAfterEachIntervalInWhichANumberChanged) {
    StatsWriter writer(loop_, open(), 5 * kSecond, log_);
    messages_.add();
    EXPECT_FALSE(replaced([&] { round(); })) << "too early";
    clock_.advance(5 * kSecond);
    EXPECT_TRUE(replaced([&] { round(); }));
    clock_.advance(5 * kSecond);
    EXPECT_FALSE(replaced([&] { round(); })) << "nothing changed";
    messages_.add();
    clock_.advance(5 * kSecond);
    EXPECT_TRUE(replaced([&] { round(); }));
}

TEST_F(StatsWriterTest, WithoutAnIntervalWritesOnlyAtTheEnd) {
    StatsWriter writer(loop_, open(), 0, log_);
    messages_.add();
    clock_.advance(1000 * kSecond);
    EXPECT_FALSE(replaced([&] { round(); }));
    EXPECT_TRUE(replaced([&] { EXPECT_TRUE(writer.finish().ok()); }));
}

TEST_F(StatsWriterTest, AFailedWriteIsTriedAgain) {
    StatsWriter writer(loop_, open(), kSecond, log_);
    fs::rename(directory_ / "s", directory_ / "aside");
    fs::create_directory(directory_ / "s");  // renaming a file over a directory fails
    messages_.add();
    clock_.advance(kSecond);
    round();
    EXPECT_TRUE(fs::is_directory(directory_ / "s"));
    fs::remove(directory_ / "s");
    clock_.advance(kSecond);
    round();
    EXPECT_TRUE(fs::is_regular_file(directory_ / "s"));
}

}  // namespace
}  // namespace ernic::app
