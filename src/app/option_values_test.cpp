// SPDX-License-Identifier: MIT
#include "app/option_values.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <set>
#include <string>

namespace ernic::app {
namespace {

using testing::HasSubstr;

TEST(ParseLevel, ReadsTheFiveNamesOnly) {
    EXPECT_EQ(parse_level("log level", "none").value(), log::Level::None);
    EXPECT_EQ(parse_level("log level", "debug").value(), log::Level::Debug);
    EXPECT_THAT(parse_level("log level", "INFO").error().message, HasSubstr("did you mean 'info'?"));
    EXPECT_THAT(parse_level("log level", "warning").error().message, HasSubstr("did you mean 'warn'?"));
}

TEST(ParseOnOff, ReadsOnAndOffOnly) {
    EXPECT_TRUE(parse_on_off("--sandbox", "on").value());
    EXPECT_FALSE(parse_on_off("--sandbox", "off").value());
    EXPECT_THAT(parse_on_off("--sandbox", "onn").error().message,
                HasSubstr("unknown --sandbox setting 'onn'"));
}

TEST(ParseMac, ReadsBothSeparatorsAndBothCases) {
    const wire::MacAddress expected{{0x02, 0xab, 0xCD, 0x00, 0x0f, 0xf0}};
    EXPECT_EQ(parse_mac("02:ab:CD:00:0f:f0").value(), expected);
    EXPECT_EQ(parse_mac("02-AB-cd-00-0F-F0").value(), expected);
}

TEST(ParseMac, RefusesAnythingElse) {
    for (const char* const text :
         {"", "02:ab:cd:00:0f", "02:ab:cd:00:0f:f0:11", "02:ab:cd:00:0f:g0", "02:ab:cd-00:0f:f0",
          "02abcd000ff0", "02:ab:cd:00:0f:+1", " 2:ab:cd:00:0f:f0", "2:ab:cd:00:0f:f0:"}) {
        EXPECT_THAT(parse_mac(text).error().message, HasSubstr("malformed")) << text;
    }
    EXPECT_THAT(parse_mac("00:00:00:00:00:00").error().message, HasSubstr("not a host's address"));
}

TEST(ParseMac, NamesTheUnicastNeighbourOfAMulticastAddress) {
    EXPECT_THAT(parse_mac("01:00:5e:10:00:01").error().message, HasSubstr("'02:00:5e:10:00:01'"));
    EXPECT_THAT(parse_mac("ff:ff:ff:ff:ff:ff").error().message, HasSubstr("'fe:ff:ff:ff:ff:ff'"));
}

TEST(MacOfPath, IsStableAcrossVersions) {
    // Guests name interfaces by this address: a change of the function would rename them all.
    const wire::MacAddress expected{{0x16, 0x20, 0xe5, 0x1a, 0x84, 0xaf}};
    EXPECT_EQ(mac_of_path("/tmp/vfio-user-rocm-ernic.sock"), expected);
}

TEST(MacOfPath, GivesDifferentLocallyAdministeredUnicastAddresses) {
    std::set<wire::MacAddress> seen;
    for (int i = 0; i < 10'000; ++i) {
        const wire::MacAddress mac = mac_of_path("/run/vm" + std::to_string(i) + ".sock");
        EXPECT_FALSE(mac.multicast());
        EXPECT_TRUE((mac.bytes[0] & 0x02U) != 0);
        seen.insert(mac);
    }
    EXPECT_EQ(seen.size(), 10'000U);
}

TEST(ParseInterval, ReadsZeroAndFractions) {
    EXPECT_EQ(parse_interval("--stats-interval", "0").value(), 0U);
    EXPECT_EQ(parse_interval("--stats-interval", "0.5").value(), 500'000'000U);
    EXPECT_EQ(parse_interval("--stats-interval", "86400").value(), 86'400'000'000'000U);
}

TEST(ParseInterval, NamesTheNearestValidValue) {
    EXPECT_THAT(parse_interval("--stats-interval", "0.01").error().message,
                HasSubstr("nearest valid value is '0.1'"));
    EXPECT_THAT(parse_interval("--stats-interval", "-1").error().message,
                HasSubstr("nearest valid value is '0'"));
    EXPECT_THAT(parse_interval("--stats-interval", "1e9").error().message,
                HasSubstr("nearest valid value is '86400'"));
    for (const char* const text : {"", "5s", "five", "5 "}) {
        EXPECT_THAT(parse_interval("--stats-interval", text).error().message, HasSubstr("is not a number"))
            << text;
    }
    EXPECT_FALSE(parse_interval("--stats-interval", "nan").ok());
    EXPECT_FALSE(parse_interval("--stats-interval", "inf").ok());
}

TEST(ParseMicroseconds, ReadsWholeNumbersUpToASecond) {
    EXPECT_EQ(parse_microseconds("--busy-poll", "0").value(), 0U);
    EXPECT_EQ(parse_microseconds("--busy-poll", "1000000").value(), 1'000'000'000U);
    EXPECT_THAT(parse_microseconds("--busy-poll", "1000001").error().message, HasSubstr("'1000000'"));
    for (const char* const text : {"", "-1", "1.5", "20us", "99999999999999999999999"}) {
        EXPECT_THAT(parse_microseconds("--busy-poll", text).error().message, HasSubstr("not a whole number"))
            << text;
    }
}

TEST(ParseGroup, ReadsNumbersAndNames) {
    EXPECT_EQ(parse_group("0").value(), 0U);
    EXPECT_EQ(parse_group("root").value(), 0U);
    EXPECT_THAT(parse_group("roott").error().message, HasSubstr("did you mean 'root'?"));
    EXPECT_FALSE(parse_group("4294967295").ok());  // chown's "leave it"
}

}  // namespace
}  // namespace ernic::app
