// SPDX-License-Identifier: MIT
#include "app/capture_spec.hpp"

#include <gtest/gtest.h>

namespace ernic::app {
namespace {

std::string refused(std::string_view text) {
    const auto parsed = parse_capture(text);
    EXPECT_FALSE(parsed) << text;
    return parsed ? "" : parsed.error().message;
}

TEST(ParseCapture, AFileAloneKeepsWholePackets) {
    const auto spec = parse_capture("/tmp/a=b.pcapng");
    ASSERT_TRUE(spec);
    EXPECT_EQ(spec.value(), (CaptureSpec{.path = "/tmp/a=b.pcapng", .snaplen = 262144}));
}

TEST(ParseCapture, SnaplenFollowsAComma) {
    EXPECT_EQ(parse_capture("f,snaplen=64").value(), (CaptureSpec{.path = "f", .snaplen = 64}));
    EXPECT_EQ(parse_capture("f,snaplen=262144").value(), (CaptureSpec{.path = "f", .snaplen = 262144}));
}

TEST(ParseCapture, ABadSpellingIsRefusedWithTheNearestOne) {
    EXPECT_EQ(refused(""), "capture file name is missing: write for example 'FILE' or 'FILE,snaplen=128'");
    EXPECT_EQ(refused(",snaplen=128"), refused(""));
    EXPECT_EQ(refused("f,snaplan=128"),
              "unknown capture option 'snaplan': did you mean 'snaplen'? (valid: snaplen)");
    EXPECT_EQ(refused("f,"), "unknown capture option '': did you mean 'snaplen'? (valid: snaplen)");
    EXPECT_EQ(refused("f,snaplen"),
              "capture option 'snaplen' needs a value: write for example 'snaplen=128'");
    EXPECT_EQ(refused("f,snaplen=1k"),
              "capture option snaplen '1k' is not a whole number: write bytes such as 'snaplen=128'");
    EXPECT_EQ(refused("f,snaplen="),
              "capture option snaplen '' is not a whole number: write bytes such as 'snaplen=128'");
    EXPECT_EQ(
        refused("f,snaplen=63"),
        "capture option snaplen '63' is out of range: the nearest valid value is '64' (64 to 262144 bytes)");
    EXPECT_EQ(refused("f,snaplen=99999999999999999999"),
              "capture option snaplen '99999999999999999999' is out of range: the nearest valid value is "
              "'262144' (64 to 262144 bytes)");
    EXPECT_EQ(refused("f,snaplen=64,snaplen=65"),
              "capture option 'snaplen' is given twice: write one 'snaplen=...'");
}

}  // namespace
}  // namespace ernic::app
