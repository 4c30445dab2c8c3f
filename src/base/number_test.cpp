// SPDX-License-Identifier: MIT
#include "base/number.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace ernic {
namespace {

TEST(Number, TheWholeTextMustBeANumberThatFits) {
    EXPECT_EQ(parse_integer<std::uint8_t>("255"), 255);
    EXPECT_EQ(parse_integer<std::uint16_t>("88cc", 16), 0x88cc);
    for (const char* const text : {"", "256", "-1", "1 ", " 1", "1x", "0x1"}) {
        EXPECT_FALSE(parse_integer<std::uint8_t>(text)) << text;
    }
}

TEST(Number, FractionsToo) {
    EXPECT_EQ(parse_fraction("0.25"), 0.25);
    EXPECT_FALSE(parse_fraction("0,25"));
    EXPECT_FALSE(parse_fraction(""));
}

TEST(ParseSaturating, TooLargeIsTheLargest) {
    EXPECT_EQ(parse_saturating<std::uint32_t>("17"), 17U);
    EXPECT_EQ(parse_saturating<std::uint32_t>("4294967295"), 4294967295U);
    EXPECT_EQ(parse_saturating<std::uint32_t>("4294967296"), 4294967295U);
    for (const char* const text : {"", "-1", "1x", "4294967296x", " 1", "x"}) {
        EXPECT_FALSE(parse_saturating<std::uint32_t>(text)) << text;
    }
}

}  // namespace
}  // namespace ernic
