// SPDX-License-Identifier: MIT
#include "app/wiring.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace ernic::app {
namespace {

namespace fs = std::filesystem;

class InstanceTest : public testing::Test {
  protected:
    InstanceTest() {
        options_.socket_path = fs::temp_directory_path() / fmt::format("ernic-instance-{}.sock", getpid());
        options_.mac = {{2, 0, 0, 0, 0, 1}};
    }

    std::unique_ptr<NvmeofTargets> targets() {
        return std::move(NvmeofTargets::open(loop_, options_.services, log_).value());
    }

    Options options_;
    SystemClock clock_;
    EventLoop loop_{clock_};
    metrics::Registry registry_;
    log::Logger log_{log::null_sink(), "test"};
};

TEST_F(InstanceTest, IsInvisibleUntilItListensAndLeavesNothingBehind) {
    {
        Instance instance(loop_, registry_, options_, log_, targets());
        EXPECT_FALSE(fs::exists(options_.socket_path));
        ASSERT_TRUE(instance.listen().ok());
        EXPECT_TRUE(fs::is_socket(options_.socket_path));
        loop_.run_once(false);
    }
    EXPECT_FALSE(fs::exists(options_.socket_path));
}

TEST_F(InstanceTest, TellsWhyItCannotListen) {
    options_.socket_path = "/proc/no-such-place/socket";
    Instance instance(loop_, registry_, options_, log_, targets());
    EXPECT_FALSE(instance.listen().ok());
}

TEST_F(InstanceTest, SaysWhoItIsInTheStatistics) {
    options_.backend = {BackendSpec::Kind::Loopback, net::PayloadMode::Zeros, true};
    const Instance instance(loop_, registry_, options_, log_, targets());
    const nlohmann::json process = registry_.to_json()["process"];
    EXPECT_EQ(process["backend"], "loopback:mode=zeros,md5");
    EXPECT_EQ(process["mac"], "02:00:00:00:00:01");
    EXPECT_EQ(process["socket"], options_.socket_path);
}

TEST_F(InstanceTest, FaultsAreThereFromTheBeginningAndTheLinkListensToThem) {
    options_.faults = {net::parse_fault("link-down").value(), net::parse_fault("drop").value()};
    Instance instance(loop_, registry_, options_, log_, targets());
    ASSERT_EQ(instance.faults().list().size(), 2U);
    EXPECT_EQ(instance.faults().list()[0].text, "link-down");
    EXPECT_FALSE(instance.link().up());
    EXPECT_TRUE(instance.faults().clear(1));
    EXPECT_TRUE(instance.link().up());
    instance.link().set(net::Link::Source::Operator, false);
    EXPECT_FALSE(instance.link().up());
}

/// The table between the two marks in docs/usage.md is made from the registry, so that it cannot become
/// untrue: `ERNIC_UPDATE_DOCS=1 unit_tests --gtest_filter='*DocumentListsEveryNumber'` writes it anew.
TEST_F(InstanceTest, TheDocumentListsEveryNumber) {
    const Instance instance(loop_, registry_, options_, log_, targets());
    std::vector<std::string> rows;
    for (const auto& number : registry_.numbers()) {
        EXPECT_FALSE(number.description.help.empty()) << number.description.name;
        rows.push_back(fmt::format("| `{}` | {} | {} |\n", number.description.name, number.description.unit,
                                   number.description.help));
    }
    std::sort(rows.begin(), rows.end());
    std::string table = "\n| key | unit | meaning |\n|---|---|---|\n";
    for (const std::string& row : rows) {
        table += row;
    }
    table += "\n";

    const std::string path = ERNIC_SOURCE_DIR "/docs/usage.md";
    std::ifstream file(path);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    const std::string begin = "<!-- numbers: begin -->\n";
    const std::string end = "<!-- numbers: end -->\n";
    const std::size_t first = text.find(begin);
    const std::size_t last = text.find(end);
    ASSERT_TRUE(first < last && last != std::string::npos) << "the marks are missing in " << path;
    const std::size_t start = first + begin.size();
    if (std::getenv("ERNIC_UPDATE_DOCS") != nullptr) {
        std::ofstream(path) << text.replace(start, last - start, table);
        return;
    }
    EXPECT_EQ(text.substr(start, last - start), table)
        << "run: ERNIC_UPDATE_DOCS=1 unit_tests --gtest_filter='*DocumentListsEveryNumber'";
}

}  // namespace
}  // namespace ernic::app
