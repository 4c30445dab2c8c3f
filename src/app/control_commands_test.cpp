// SPDX-License-Identifier: MIT
#include "app/control_commands.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <map>
#include <string>

#include "metrics/report.hpp"

namespace ernic::app {
namespace {

using control::Answer;
using control::Call;
using nlohmann::json;
using testing::HasSubstr;

class SilentSink final : public net::FrameSink {
  public:
    void transmit(const net::Frame& /*frame*/) override {}
};

class ControlCommands : public testing::Test {
  protected:
    ControlCommands()
        : capture_(std::move(
              net::Capture::make({.buffer = std::size_t{1} << 16U}, clock_, log::Logger(sink_, "")).value())),
          captures_(loop_, *capture_, log::Logger(sink_, "")) {
        sink_->set_level(log::Level::Info);
        captures_.connect([this](net::Observer* observer) { observer_ = observer; });
        add_control_commands(commands_, targets_);
    }

    Answer run(const std::string& name, const json& arguments = json::object(), UniqueFd fd = {}) {
        Call call{arguments, std::move(fd)};
        return commands_.run(name, call);
    }
    json result(const std::string& name, const json& arguments = json::object(), UniqueFd fd = {}) {
        const Answer answer = run(name, arguments, std::move(fd));
        if (const auto* producer = std::get_if<control::Producer>(&answer)) {
            std::string text;
            while ((*producer)(text)) {
            }
            EXPECT_EQ(text.find('\n'), std::string::npos) << "a result is one line";
            return json::parse(text);
        }
        if (const auto* error = std::get_if<Error>(&answer)) {
            ADD_FAILURE() << name << ": " << error->message;
            return {};
        }
        return std::get<json>(answer);
    }
    Error error(const std::string& name, const json& arguments = json::object(), UniqueFd fd = {}) {
        const Answer answer = run(name, arguments, std::move(fd));
        if (!std::holds_alternative<Error>(answer)) {
            ADD_FAILURE() << name << " succeeds";
            return {Errc::Io, ""};
        }
        return std::get<Error>(answer);
    }
    static UniqueFd null_device() { return UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC)); }

    std::shared_ptr<log::Sink> sink_ = log::null_sink();
    FakeClock clock_;
    EventLoop loop_{clock_};
    metrics::Registry registry_;
    net::Link link_;
    net::Segment segment_{net::PayloadMode::Preserve, &clock_};
    net::Bridge& bridge_ = segment_.bridge();
    net::FramePort guest_{bridge_, "guest"};
    net::FramePort tap_{bridge_, "tap"};
    std::unique_ptr<net::Capture> capture_;
    CaptureControl captures_;
    net::Observer* observer_ = nullptr;
    net::Faults faults_{segment_, link_, loop_, log::Logger(sink_, "")};
    ControlTargets targets_{.registry = registry_,
                            .clock = clock_,
                            .link = link_,
                            .cable = "tap",
                            .bridge = bridge_,
                            .capture = captures_,
                            .faults = faults_,
                            .sink = sink_,
                            .log = log::Logger(sink_, ""),
                            .identity = {{"version", "1"}, {"pid", 5}},
                            .driver_attached = [] { return true; },
                            .started = clock_.now()};
    control::Commands commands_;
};

TEST_F(ControlCommands, VersionTellsTheProtocolAndTheCommands) {
    const json version = result("version");
    EXPECT_EQ(version["protocol"], 1);
    EXPECT_THAT(version["commands"].get<std::vector<std::string>>(), testing::Contains("pcap-start"));
}

TEST_F(ControlCommands, StatusHasEverythingAtAGlance) {
    registry_.add({"vfio_user.connected", "", ""}, [] { return std::uint64_t{1}; });
    registry_.add({"rdma.queue_pairs", "", ""}, [] { return std::uint64_t{7}; });
    clock_.advance(1'500'000'000);
    const json status = result("status");
    EXPECT_EQ(status["pid"], 5);
    EXPECT_EQ(status["uptime_seconds"], 1.5);
    EXPECT_EQ(status["connected"], true);
    EXPECT_EQ(status["driver"], true);
    EXPECT_EQ(status["queue_pairs"], 7);
    EXPECT_EQ(status["link"], (json{{"up", true}, {"down_by", json::array()}}));
    EXPECT_EQ(status["capture"], nullptr);
    EXPECT_EQ(status["log_level"], "info");
}

TEST_F(ControlCommands, StatisticsMayBeAPart) {
    registry_.add({"rdma.a", "", ""}, [] { return std::uint64_t{1}; });
    registry_.add({"tap.b", "", ""}, [] { return std::uint64_t{2}; });
    registry_.add_section("process", [] { return json{{"pid", 3}}; });
    registry_.add_list("rows", [] {
        return [i = std::uint64_t{0}](metrics::Row& row) mutable {
            row.add("i", i);
            row.add("word", "x");
            return ++i < 2;
        };
    });
    const json rows = {{{"i", 0}, {"word", "x"}}, {{"i", 1}, {"word", "x"}}};
    EXPECT_EQ(result("stats"),
              (json{{"rdma", {{"a", 1}}}, {"tap", {{"b", 2}}}, {"process", {{"pid", 3}}}, {"rows", rows}}));
    EXPECT_EQ(result("stats", {{"match", "rdma."}}), (json{{"rdma", {{"a", 1}}}}));
    EXPECT_EQ(result("stats", {{"match", "rows"}}), (json{{"rows", rows}}));
    EXPECT_EQ(result("stats", {{"match", "nothing"}}), json::object());
    EXPECT_EQ(error("stats", {{"match", 5}}).code, Errc::InvalidArgument);
}

TEST_F(ControlCommands, TheOperatorIsOneOfThoseWhoTakeTheLinkDown) {
    EXPECT_EQ(result("link", {{"state", "down"}}), (json{{"up", false}, {"down_by", {"operator"}}}));
    EXPECT_FALSE(link_.up());
    link_.set(net::Link::Source::Cable, false);
    EXPECT_EQ(result("link", {{"state", "up"}}), (json{{"up", false}, {"down_by", {"tap"}}}));
    EXPECT_FALSE(link_.up());
    link_.set(net::Link::Source::Cable, true);
    EXPECT_TRUE(link_.up());
    EXPECT_EQ(result("link")["up"], true);
    EXPECT_THAT(error("link", {{"state", "dwon"}}).message, HasSubstr("did you mean 'down'?"));
}

TEST_F(ControlCommands, PortsAreListedWithTheirLinkAndNumbers) {
    SilentSink device;
    guest_.connect(&device);
    const json ports = result("ports")["ports"];
    ASSERT_EQ(ports.size(), 2U);
    EXPECT_EQ(ports[0]["name"], "guest");
    EXPECT_EQ(ports[0]["link"], true);
    EXPECT_EQ(ports[1]["name"], "tap");
    EXPECT_EQ(ports[1]["connected"], false);
    EXPECT_EQ(ports[1]["link"], false);
    link_.set(net::Link::Source::Operator, false);
    EXPECT_EQ(result("ports")["ports"][0]["link"], false);
}

TEST_F(ControlCommands, TheMacTableIsReadToItsEnd) {
    EXPECT_EQ(result("mac-table")["entries"], json::array());
    std::array<std::byte, 60> bytes{};
    for (std::uint8_t i = 1; i <= 200; ++i) {
        bytes[6] = std::byte{2};
        bytes[11] = std::byte{i};
        mem::SpanList spans;
        spans.add(bytes.data(), bytes.size());
        guest_.transmit(
            {.data = spans, .insert_vlan = {}, .checksum = {}, .checksum_valid = false, .segmentation = {}});
    }
    clock_.advance(1'250'000'000);
    const json table = result("mac-table");
    EXPECT_EQ(table["capacity"], 4096);
    EXPECT_EQ(table["ageing_seconds"], 300);
    ASSERT_EQ(table["entries"].size(), 200U);
    EXPECT_EQ(table["entries"][0]["port"], "guest");
    EXPECT_EQ(table["entries"][0]["age_seconds"], 1.25);
    EXPECT_THAT(table["entries"][0]["mac"].get<std::string>(), HasSubstr("02:00:00:00:00:"));
}

TEST_F(ControlCommands, ACaptureBeginsOnADescriptorAndItsEndIsToldWhenAllIsWritten) {
    EXPECT_EQ(error("pcap-stop").message, "no capture is running");
    EXPECT_THAT(error("pcap-start").message, HasSubstr("file descriptor"));
    EXPECT_EQ(result("pcap-start", {{"name", "x"}, {"snaplen", 100}}, null_device()),
              (json{{"name", "x"}, {"snaplen", 100}}));
    EXPECT_EQ(observer_, capture_.get());
    EXPECT_EQ(result("status")["capture"]["name"], "x");
    EXPECT_EQ(error("pcap-start", {}, null_device()).code, Errc::Busy);
    const Answer stopping = run("pcap-stop");
    EXPECT_EQ(observer_, nullptr);
    ASSERT_TRUE(std::holds_alternative<std::shared_ptr<control::Later>>(stopping));
    while (capture_->state() != net::Capture::State::Idle) {
        loop_.run_once(true);
    }
    EXPECT_EQ(result("status")["capture"], nullptr);
    EXPECT_TRUE(captures_.finish());
}

TEST_F(ControlCommands, ACaptureWhoseReaderLeavesEndsByItself) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    UniqueFd reader(ends[0]);
    result("pcap-start", json::object(), UniqueFd(ends[1]));
    reader.reset();
    while (capture_->state() != net::Capture::State::Idle) {
        loop_.run_once(true);
    }
    EXPECT_EQ(observer_, nullptr);
    EXPECT_TRUE(captures_.finish()) << "not the server's fault";
    result("pcap-start", json::object(), null_device());
}

TEST_F(ControlCommands, WhatACaptureCannotTakeIsRefused) {
    EXPECT_EQ(error("pcap-start", {{"snaplen", 5}}, null_device()).code, Errc::OutOfRange);
    EXPECT_EQ(error("pcap-start", {{"name", "a\nb"}}, null_device()).code, Errc::InvalidArgument);
    EXPECT_EQ(error("pcap-start", {{"name", std::string(256, 'x')}}, null_device()).code,
              Errc::InvalidArgument);
    EXPECT_EQ(error("pcap-start", {}, UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC))).code,
              Errc::InvalidArgument);
    EXPECT_EQ(observer_, nullptr);
}

TEST_F(ControlCommands, TheLogLevelIsShownAndSet) {
    EXPECT_EQ(result("log-level")["level"], "info");
    EXPECT_EQ(result("log-level", {{"level", "debug"}})["level"], "debug");
    EXPECT_EQ(sink_->level(), log::Level::Debug);
    EXPECT_THAT(error("log-level", {{"level", "dbug"}}).message, HasSubstr("debug"));
}

TEST_F(ControlCommands, FaultsAreAddedListedAndCleared) {
    EXPECT_EQ(result("fault-add", {{"spec", "drop"}})["id"], 1);
    EXPECT_EQ(result("fault-add", {{"spec", "delay=5ms"}})["id"], 2);
    EXPECT_EQ(error("fault-add", {{"spec", "dorp"}}).message, net::parse_fault("dorp").error().message);
    EXPECT_THAT(error("fault-add").message, HasSubstr("missing"));
    EXPECT_EQ(result("fault-list")["faults"].size(), 2U);
    EXPECT_EQ(result("fault-clear", {{"id", 1}})["cleared"], 1);
    EXPECT_EQ(error("fault-clear", {{"id", 1}}).message, "there is no fault 1");
    EXPECT_EQ(error("fault-clear", {{"id", 0x1'0000'0002}}).message, "there is no fault 4294967298");
    EXPECT_EQ(result("fault-clear", {{"all", true}})["cleared"], 1);
    EXPECT_FALSE(error("fault-clear").message.empty());
    EXPECT_FALSE(error("fault-clear", {{"id", 1}, {"all", true}}).message.empty());
    EXPECT_FALSE(error("fault-clear", {{"all", false}}).message.empty());
}

}  // namespace
}  // namespace ernic::app
