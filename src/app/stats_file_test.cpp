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
    EXPECT_FALSE(file.value().write_if_changed().value());
    messages_.add();
    EXPECT_TRUE(file.value().write_if_changed().value());
    EXPECT_FALSE(file.value().write_if_changed().value());
    EXPECT_EQ(nlohmann::json::parse(read(path()))["card"]["messages"], 1);
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
