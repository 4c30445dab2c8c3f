// SPDX-License-Identifier: MIT
#include "app/stats_file.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace ernic::app {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class StatsFileTest : public testing::Test {
  protected:
    StatsFileTest() {
        std::string name = fs::temp_directory_path() / "ernic-stats-XXXXXX";
        directory_ = mkdtemp(name.data());
        registry_.add({"card.messages", "messages", "RDMA messages sent"}, messages_);
    }
    ~StatsFileTest() override { fs::remove_all(directory_); }

    [[nodiscard]] std::string path() const { return directory_ / "stats.json"; }
    static std::string read(const std::string& path) {
        std::ifstream file(path);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    [[nodiscard]] std::size_t files() const {
        return static_cast<std::size_t>(
            std::distance(fs::directory_iterator(directory_), fs::directory_iterator{}));
    }

    /// All steps of one rewrite.
    static StatsFile::Progress rewrite(StatsFile& file) {
        for (;;) {
            const auto progress = file.step();
            if (progress.value() != StatsFile::Progress::More) {
                return progress.value();
            }
        }
    }

    fs::path directory_;
    metrics::Counter messages_;
    metrics::Registry registry_;
};

TEST_F(StatsFileTest, IsWrittenAtOpeningAndHoldsTheNumbers) {
    messages_.add(7);
    const auto file = StatsFile::open(path(), registry_);
    ASSERT_TRUE(file.ok());
    EXPECT_EQ(nlohmann::json::parse(read(path()))["card"]["messages"], 7);
    EXPECT_EQ(files(), 1U) << "no temporary file may stay behind";
    EXPECT_EQ(file.value().directory(), fs::canonical(directory_));
}

TEST_F(StatsFileTest, IsRewrittenOnlyWhenANumberChanged) {
    auto file = StatsFile::open(path(), registry_);
    ASSERT_TRUE(file.ok());
    EXPECT_EQ(rewrite(file.value()), StatsFile::Progress::Unchanged);
    messages_.add();
    EXPECT_EQ(rewrite(file.value()), StatsFile::Progress::Written);
    EXPECT_EQ(rewrite(file.value()), StatsFile::Progress::Unchanged);
    EXPECT_EQ(nlohmann::json::parse(read(path()))["card"]["messages"], 1);
}

TEST_F(StatsFileTest, ALongListIsReadAndWrittenInManySmallSteps) {
    constexpr std::uint64_t kRows = 10'000;
    std::uint64_t read_rows = 0;
    std::uint64_t last_value = 0;
    registry_.add_list("rows", [&] {
        return [&, row_number = std::uint64_t{0}](metrics::Row& row) mutable {
            row.add("number", row_number);
            row.add("words", "a value of some length that fills the file");
            row.add("value", row_number + 1 == kRows ? last_value : 0);
            ++read_rows;
            return ++row_number != kRows;
        };
    });
    auto file = StatsFile::open(path(), registry_);
    ASSERT_TRUE(file.ok());
    const auto old_size = fs::file_size(path());
    EXPECT_GT(old_size, 500'000U);
    EXPECT_EQ(rewrite(file.value()), StatsFile::Progress::Unchanged);

    last_value = 7;
    StatsFile::Progress progress = StatsFile::Progress::More;
    for (std::uint64_t before = 0; progress == StatsFile::Progress::More; before = read_rows) {
        progress = file.value().step().value();
        EXPECT_LE(read_rows - before, before == 0 ? 3 * kRows : 200U);
        if (progress == StatsFile::Progress::More) {
            EXPECT_EQ(fs::file_size(path()), old_size) << "the old file stays until the new one is whole";
        }
    }
    const auto all = nlohmann::json::parse(read(path()));
    EXPECT_EQ(all["rows"].size(), kRows);
    EXPECT_EQ(all["rows"][kRows - 1]["value"], 7);
    EXPECT_EQ(all["card"]["messages"], 0);
}

TEST_F(StatsFileTest, TheLastWriteIsCompleteWhateverWasUnderWay) {
    auto file = StatsFile::open(path(), registry_);
    ASSERT_TRUE(file.ok());
    for (int steps = 1; steps <= 3; ++steps) {
        messages_.add();
        for (int i = 0; i < steps; ++i) {
            ASSERT_EQ(file.value().step().value(), StatsFile::Progress::More);
        }
        messages_.add();
        ASSERT_TRUE(file.value().write().ok());
        EXPECT_EQ(nlohmann::json::parse(read(path()))["card"]["messages"], messages_.value());
        EXPECT_EQ(files(), 1U) << steps;
    }
}

TEST_F(StatsFileTest, AReaderKeepsTheOldFileWhileTheNewOneTakesItsPlace) {
    auto file = StatsFile::open(path(), registry_);
    ASSERT_TRUE(file.ok());
    std::ifstream reader(path());
    messages_.add(123);
    ASSERT_TRUE(file.value().write().ok());
    const std::string old{std::istreambuf_iterator<char>(reader), {}};
    EXPECT_EQ(nlohmann::json::parse(old)["card"]["messages"], 0);
    EXPECT_EQ(nlohmann::json::parse(read(path()))["card"]["messages"], 123);
}

TEST_F(StatsFileTest, FollowsALinkToItsTarget) {
    const std::string target = directory_ / "target.json";
    std::ofstream(target) << "old";
    fs::create_symlink(target, path());
    ASSERT_TRUE(StatsFile::open(path(), registry_).ok());
    EXPECT_TRUE(fs::is_symlink(path()));
    EXPECT_THAT(read(target), HasSubstr("messages"));
}

TEST_F(StatsFileTest, RefusesWhatIsNoRegularFileAndLeavesItAlone) {
    fs::create_directory(path());
    EXPECT_THAT(StatsFile::open(path(), registry_).error().message, HasSubstr("not a regular file"));
    EXPECT_TRUE(fs::is_directory(path()));
    EXPECT_THAT(StatsFile::open("/dev/null", registry_).error().message, HasSubstr("not a regular file"));
    EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(StatsFileTest, SaysWhyADirectoryCannotBeUsed) {
    const auto file = StatsFile::open(directory_ / "missing" / "stats.json", registry_);
    EXPECT_EQ(file.error().code, Errc::Io);
    EXPECT_THAT(file.error().message, HasSubstr("No such file or directory"));
}

TEST_F(StatsFileTest, ATemporaryFileLeftBehindIsNoObstacle) {
    std::ofstream(directory_ / fmt::format(".stats.json.{}.new", getpid())) << "rubbish";
    ASSERT_TRUE(StatsFile::open(path(), registry_).ok());
    EXPECT_EQ(files(), 1U);
}

}  // namespace
}  // namespace ernic::app
