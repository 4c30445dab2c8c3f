// SPDX-License-Identifier: MIT
#include "app/options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "app/option_values.hpp"

namespace ernic::app {
namespace {

using testing::HasSubstr;
using testing::Not;

std::variant<Options, Farewell> parse(const std::vector<const char*>& arguments,
                                      const Environment& environment = {}) {
    return parse_options(arguments, environment);
}

Options accepted(const std::vector<const char*>& arguments, const Environment& environment = {}) {
    auto parsed = parse(arguments, environment);
    if (const auto* farewell = std::get_if<Farewell>(&parsed)) {
        ADD_FAILURE() << farewell->text;
        return {};
    }
    return std::get<Options>(std::move(parsed));
}

/// The one sentence of a refusal.
std::string refused(const std::vector<const char*>& arguments, const Environment& environment = {}) {
    auto parsed = parse(arguments, environment);
    const auto* farewell = std::get_if<Farewell>(&parsed);
    if (farewell == nullptr) {
        ADD_FAILURE() << "accepted";
        return {};
    }
    EXPECT_EQ(farewell->exit_code, 2);
    EXPECT_EQ(std::count(farewell->text.begin(), farewell->text.end(), '\n'), 1) << farewell->text;
    EXPECT_THAT(farewell->text, testing::StartsWith("rocm-ernic: "));
    return farewell->text;
}

TEST(ParseOptions, WithoutArgumentsGivesTheDocumentedDefaults) {
    const Options options = accepted({});
    EXPECT_EQ(options.socket_path, "/tmp/vfio-user-rocm-ernic.sock");
    EXPECT_FALSE(options.socket_group.has_value());
    EXPECT_EQ(options.backend, BackendSpec{});
    EXPECT_EQ(options.mac, mac_of_path("/tmp/vfio-user-rocm-ernic.sock"));
    EXPECT_EQ(options.tap, "");
    EXPECT_EQ(options.stats_file, "");
    EXPECT_EQ(options.stats_interval, 5'000'000'000U);
    EXPECT_EQ(options.capture, CaptureSpec{});
    EXPECT_EQ(options.log_file, "");
    EXPECT_EQ(options.log_level, log::Level::Info);
    EXPECT_TRUE(options.sandbox);
    EXPECT_EQ(options.busy_poll, 20'000U);
}

TEST(ParseOptions, ATapHasALongAndAShortName) {
    EXPECT_EQ(accepted({"--tap", "tap0"}).tap, "tap0");
    EXPECT_EQ(accepted({"-T", "tap1"}).tap, "tap1");
    EXPECT_THAT(refused({"--tap"}), testing::HasSubstr("'--tap' needs a value"));
}

TEST(ParseOptions, AControlSocketIsAPathOfItsOwn) {
    EXPECT_EQ(accepted({}).control_path, "");
    EXPECT_EQ(accepted({"--control", "/run/c"}).control_path, "/run/c");
    EXPECT_THAT(refused({"--socket", "/run/a", "--control", "/run/a"}), HasSubstr("choose another path"));
    EXPECT_THAT(refused({"--control", std::string(108, 'a').c_str()}), HasSubstr("at most 107"));
    EXPECT_THAT(refused({"--contrl", "/run/c"}), HasSubstr("did you mean '--control'?"));
}

TEST(ParseOptions, TheQuickStartLineIsAccepted) {
    const Options options =
        accepted({"--socket", "/tmp/vfio-user-rocm-ernic.sock", "--backend", "loopback", "--verbose"});
    EXPECT_EQ(options.log_level, log::Level::Debug);
    EXPECT_EQ(options.backend.kind, BackendSpec::Kind::Loopback);
}

TEST(ParseOptions, ReadsEveryLongOption) {
    const Options options =
        accepted({"--socket=/run/a.sock", "--socket-group=0", "--backend=loopback:mode=ones,md5",
                  "--mac=02:00:00:00:00:01", "--stats-file=/run/s", "--stats-interval=1", "--log-file=/run/l",
                  "--pcap=/run/p,snaplen=99", "--log-level=error", "--sandbox=off", "--busy-poll=0"});
    EXPECT_EQ(options.socket_path, "/run/a.sock");
    EXPECT_EQ(options.socket_group, 0U);
    EXPECT_TRUE(options.backend.md5);
    EXPECT_EQ(options.mac, (wire::MacAddress{{2, 0, 0, 0, 0, 1}}));
    EXPECT_EQ(options.stats_file, "/run/s");
    EXPECT_EQ(options.stats_interval, 1'000'000'000U);
    EXPECT_EQ(options.log_file, "/run/l");
    EXPECT_EQ(options.capture, (CaptureSpec{.path = "/run/p", .snaplen = 99}));
    EXPECT_EQ(options.log_level, log::Level::Error);
    EXPECT_FALSE(options.sandbox);
    EXPECT_EQ(options.busy_poll, 0U);
}

TEST(ParseOptions, ReadsEveryShortOption) {
    const Options options = accepted(
        {"-s", "/run/a.sock", "-bnone", "-m", "02:00:00:00:00:01", "-S", "/run/s", "-l", "/run/l", "-Lwarn"});
    EXPECT_EQ(options.socket_path, "/run/a.sock");
    EXPECT_EQ(options.backend.kind, BackendSpec::Kind::None);
    EXPECT_EQ(options.stats_file, "/run/s");
    EXPECT_EQ(options.log_file, "/run/l");
    EXPECT_EQ(options.log_level, log::Level::Warn);
}

TEST(ParseOptions, TheSocketLivesInTheTemporaryDirectory) {
    EXPECT_EQ(accepted({}, {"/var/tmp/me", {}}).socket_path, "/var/tmp/me/vfio-user-rocm-ernic.sock");
}

TEST(ParseOptions, TheLevelComesFromTheFlagThenVerboseThenTheEnvironment) {
    const Environment error{"/tmp", "error"};
    EXPECT_EQ(accepted({}, error).log_level, log::Level::Error);
    EXPECT_EQ(accepted({"-v"}, error).log_level, log::Level::Debug);
    EXPECT_EQ(accepted({"-v", "-L", "warn"}, error).log_level, log::Level::Warn);
    EXPECT_EQ(accepted({"-L", "warn"}, {"/tmp", "nonsense"}).log_level, log::Level::Warn);
    EXPECT_EQ(accepted({}, {"/tmp", ""}).log_level, log::Level::Info);
    EXPECT_THAT(refused({}, {"/tmp", "eror"}),
                HasSubstr("unknown log level in ERNIC_LOG_LEVEL 'eror': did you mean 'error'?"));
}

TEST(ParseOptions, TheSameRelativePathGivesTheSameMac) {
    EXPECT_EQ(accepted({"-s", "x.sock"}).mac, accepted({"-s", "./x.sock"}).mac);
    EXPECT_NE(accepted({"-s", "x.sock"}).mac, accepted({"-s", "y.sock"}).mac);
}

TEST(ParseOptions, NamesTheNearestOption) {
    EXPECT_THAT(refused({"--sokcet", "/tmp/x"}),
                HasSubstr("unknown option '--sokcet': did you mean '--socket'?"));
    EXPECT_THAT(refused({"--backend=none", "--log-leve=info"}), HasSubstr("did you mean '--log-level'?"));
    EXPECT_THAT(refused({"--stats"}), HasSubstr("did you mean '--stats-file'?"));
    EXPECT_THAT(refused({"-V"}), HasSubstr("did you mean '-v'?"));
    EXPECT_THAT(refused({"-socket", "/tmp/x"}),
                HasSubstr("unknown option '-socket': did you mean '--socket'?"));
}

TEST(ParseOptions, RefusesAWordThatBelongsToNoOption) {
    EXPECT_THAT(refused({"loopback"}), HasSubstr("unexpected argument 'loopback'"));
    EXPECT_THAT(refused({"--", "--socket"}), HasSubstr("unexpected argument"));
    EXPECT_THAT(refused({"-v=3"}), HasSubstr("takes no value"));
    EXPECT_THAT(refused({"--verbose=x"}), HasSubstr("option '--verbose' takes no value"));
}

TEST(ParseOptions, AFlagMayBeGivenTwice) {
    EXPECT_EQ(accepted({"-vv"}).log_level, log::Level::Debug);
    EXPECT_EQ(accepted({"-v", "--verbose"}).log_level, log::Level::Debug);
}

TEST(ParseOptions, RefusesMissingAndRepeatedValues) {
    EXPECT_THAT(refused({"--socket"}), HasSubstr("option '--socket' needs a value"));
    EXPECT_THAT(refused({"-s"}), HasSubstr("option '-s' needs a value"));
    EXPECT_THAT(refused({"--socket", "--backend", "none"}), HasSubstr("option '--socket' needs a value"));
    EXPECT_THAT(refused({"--socket", ""}), HasSubstr("needs a value"));
    EXPECT_THAT(refused({"--socket", "/a", "-s", "/b"}), HasSubstr("option '--socket' is given 2 times"));
}

TEST(ParseOptions, RefusesBadValuesWithTheSentenceOfTheValue) {
    EXPECT_THAT(refused({"-b", "loopbak"}), HasSubstr("did you mean 'loopback'?"));
    EXPECT_THAT(refused({"-m", "1:2"}), HasSubstr("malformed"));
    EXPECT_THAT(refused({"-L", "verbose"}), HasSubstr("unknown log level 'verbose'"));
    EXPECT_THAT(refused({"--sandbox", "no"}), HasSubstr("(valid: on, off)"));
    EXPECT_THAT(refused({"--busy-poll", "x"}), HasSubstr("--busy-poll"));
    EXPECT_THAT(refused({"--stats-interval", "5"}), HasSubstr("--stats-file"));
}

TEST(ParseOptions, RefusesAnNvmeTargetThatNoCommandCouldReachWhole) {
    EXPECT_THAT(refused({"-b", "none", "--target", "nvmeof:size=1M"}),
                HasSubstr("choose backend 'loopback'"));
    EXPECT_THAT(refused({"-b", "loopback:mode=zeros", "--target", "nvmeof:size=1M"}), HasSubstr("mode=.."));
    EXPECT_TRUE(accepted({"--target", "nvmeof:size=1M"}).services.has(TargetSpec::Kind::Nvmeof));
}

TEST(ParseOptions, RefusesASocketPathThatFitsNoAddress) {
    EXPECT_THAT(refused({"-s", std::string(108, 'a').c_str()}), HasSubstr("at most 107"));
    EXPECT_EQ(accepted({"-s", std::string(107, 'a').c_str()}).socket_path.size(), 107U);
}

TEST(ParseOptions, FaultsMayBeGivenManyTimes) {
    const auto faults = accepted({"--fault", "drop,opcode=write,every=100", "--fault=link-down=2s"}).faults;
    ASSERT_EQ(faults.size(), 2U);
    EXPECT_EQ(faults[0].every, 100U);
    EXPECT_EQ(faults[1].kind, net::FaultKind::LinkDown);
    EXPECT_THAT(refused({"--fault", "drop", "--fault", "dorp"}), HasSubstr("did you mean 'drop'?"));
    EXPECT_THAT(refused({"--fault"}), HasSubstr("'--fault' needs a value"));
    EXPECT_THAT(refused(std::vector<const char*>(65, "--fault=drop")), HasSubstr("at most 64"));
}

TEST(ParseOptions, HelpAndVersionEndWithSuccess) {
    for (const char* const flag : {"-h", "--help"}) {
        const auto parsed = parse({flag});
        const auto* farewell = std::get_if<Farewell>(&parsed);
        ASSERT_NE(farewell, nullptr);
        EXPECT_EQ(farewell->exit_code, 0);
        EXPECT_THAT(farewell->text, HasSubstr("--socket-group"));
    }
    const auto parsed = parse({"--version"});
    ASSERT_TRUE(std::holds_alternative<Farewell>(parsed));
    EXPECT_EQ(std::get<Farewell>(parsed).text, "rocm-ernic " ERNIC_VERSION "\n");
}

}  // namespace
}  // namespace ernic::app
