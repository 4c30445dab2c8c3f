// SPDX-License-Identifier: MIT
#include "ernicctl/command_line.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace ernic::ctl {
namespace {

using nlohmann::json;
using testing::HasSubstr;

Job accepted(const std::vector<const char*>& arguments, const Environment& environment = {}) {
    const auto parsed = parse(arguments, environment);
    if (const auto* farewell = std::get_if<Farewell>(&parsed)) {
        ADD_FAILURE() << farewell->text;
        return {};
    }
    return std::get<Job>(parsed);
}

std::string refused(const std::vector<const char*>& arguments) {
    const auto parsed = parse(arguments, {});
    const auto* farewell = std::get_if<Farewell>(&parsed);
    if (farewell == nullptr) {
        ADD_FAILURE() << "accepted";
        return {};
    }
    EXPECT_EQ(farewell->exit_code, 2);
    EXPECT_EQ(std::count(farewell->text.begin(), farewell->text.end(), '\n'), 1) << farewell->text;
    return farewell->text;
}

TEST(ErnicctlCommandLine, EachCommandIsOneOfTheProtocol) {
    EXPECT_EQ(accepted({"status"}).command, "status");
    EXPECT_EQ(accepted({"version"}).command, "version");
    EXPECT_EQ(accepted({"ports"}).command, "ports");
    EXPECT_EQ(accepted({"peers"}).command, "peers");
    EXPECT_EQ(accepted({"macs"}).command, "mac-table");
    EXPECT_EQ(accepted({"link"}).arguments, json::object());
    EXPECT_EQ(accepted({"link", "down"}).arguments, (json{{"state", "down"}}));
    EXPECT_EQ(accepted({"log-level", "debug"}).arguments, (json{{"level", "debug"}}));
    EXPECT_EQ(accepted({"pcap", "stop"}).command, "pcap-stop");
    EXPECT_EQ(accepted({"fault", "list"}).command, "fault-list");
    EXPECT_EQ(accepted({"fault", "add", "drop=1%"}).arguments, (json{{"spec", "drop=1%"}}));
    EXPECT_EQ(accepted({"nvme", "list"}).command, "nvme-list");
    EXPECT_EQ(accepted({"nvme", "add", "64M", "--nsid", "3"}).arguments,
              (json{{"size", "64M"}, {"nsid", 3}}));
    EXPECT_EQ(accepted({"nvme", "add", "--file", "/a"}).file, "/a");
    EXPECT_TRUE(accepted({"nvme", "add", "--file", "/a", "--ro"}).read_only);
    EXPECT_EQ(accepted({"nvme", "resize", "3", "1G", "--nqn", "x"}).arguments,
              (json{{"size", "1G"}, {"nsid", 3}, {"nqn", "x"}}));
    EXPECT_EQ(accepted({"nvme", "remove", "3"}).command, "nvme-remove");
    EXPECT_EQ(accepted({"nvme", "ana", "10.0.0.1", "change"}).arguments,
              (json{{"address", "10.0.0.1"}, {"state", "change"}}));
    EXPECT_EQ(accepted({"fault", "clear", "12"}).arguments, (json{{"id", 12}}));
    EXPECT_EQ(accepted({"fault", "clear", "all"}).arguments, (json{{"all", true}}));
    EXPECT_EQ(accepted({"completion", "zsh"}).shell, "zsh");
    const Job start = accepted({"pcap", "start", "-", "--snaplen", "96"});
    EXPECT_EQ(start.command, "pcap-start");
    EXPECT_EQ(start.output, "-");
    EXPECT_EQ(start.arguments, (json{{"snaplen", 96}}));
    const Job stats = accepted({"stats", "--match", "rdma.", "--watch", "0.5"});
    EXPECT_EQ(stats.arguments, (json{{"match", "rdma."}}));
    EXPECT_EQ(stats.watch, 0.5);
}

TEST(ErnicctlCommandLine, CommonOptionsMayStandAnywhere) {
    EXPECT_EQ(accepted({"status"}).socket, "/tmp/rocm-ernic-control.sock");
    EXPECT_EQ(accepted({"status"}, {.temp_dir = "/x", .control = ""}).socket, "/x/rocm-ernic-control.sock");
    EXPECT_EQ(accepted({"status"}, {.temp_dir = "/x", .control = "/c"}).socket, "/c");
    EXPECT_EQ(accepted({"-c", "/d", "status"}, {.temp_dir = "", .control = "/c"}).socket, "/d");
    EXPECT_EQ(accepted({"pcap", "stop", "--control", "/d"}).socket, "/d");
    EXPECT_FALSE(accepted({"status"}).json);
    EXPECT_TRUE(accepted({"--json", "status"}).json);
    EXPECT_TRUE(accepted({"fault", "list", "--json"}).json);
}

TEST(ErnicctlCommandLine, WrongWordsAreRefusedWithTheNearestOnes) {
    EXPECT_THAT(refused({"statz"}), HasSubstr("did you mean 'stats'?"));
    EXPECT_THAT(refused({"pcap", "strat", "f"}), HasSubstr("did you mean 'start'?"));
    EXPECT_THAT(refused({"-c", "/x", "lnik"}), HasSubstr("did you mean 'link'?"));
    EXPECT_THAT(refused({"link", "dwon"}), HasSubstr("did you mean 'down'?"));
    EXPECT_THAT(refused({"completion", "bsh"}), HasSubstr("did you mean 'bash'?"));
    EXPECT_THAT(refused({"fault", "clear", "x"}), HasSubstr("neither"));
    for (const std::vector<const char*>& wrong :
         std::vector<std::vector<const char*>>{{},
                                               {"pcap"},
                                               {"pcap", "start"},
                                               {"fault", "add"},
                                               {"status", "--match", "x"},
                                               {"status", "extra"},
                                               {"stats", "--watch", "0"},
                                               {"stats", "--watch", "soon"},
                                               {"pcap", "start", "f", "--snaplen", "x"},
                                               {"--nonsense"}}) {
        refused(wrong);
    }
}

TEST(ErnicctlCommandLine, HelpAndVersionEndWell) {
    for (const char* option : {"--help", "--version"}) {
        const auto parsed = parse(std::vector{option}, {});
        ASSERT_TRUE(std::holds_alternative<Farewell>(parsed));
        EXPECT_EQ(std::get<Farewell>(parsed).exit_code, 0);
    }
}

}  // namespace
}  // namespace ernic::ctl
