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

}  // namespace
}  // namespace ernic
