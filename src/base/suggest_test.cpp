// SPDX-License-Identifier: MIT
#include "base/suggest.hpp"

#include <gtest/gtest.h>

#include <array>

namespace ernic {
namespace {

TEST(EditDistance, CountsEachKindOfTypingErrorOnce) {
    EXPECT_EQ(edit_distance("socket", "socket"), 0U);
    EXPECT_EQ(edit_distance("socket", "socke"), 1U);    // missing
    EXPECT_EQ(edit_distance("socket", "sockett"), 1U);  // too many
    EXPECT_EQ(edit_distance("socket", "sucket"), 1U);   // wrong
    EXPECT_EQ(edit_distance("socket", "sokcet"), 1U);   // swapped
    EXPECT_EQ(edit_distance("socket", "SOCKET"), 0U);
}

TEST(EditDistance, OfAnEmptyWordIsTheLengthOfTheOther) {
    EXPECT_EQ(edit_distance("", ""), 0U);
    EXPECT_EQ(edit_distance("", "abc"), 3U);
    EXPECT_EQ(edit_distance("abc", ""), 3U);
}

TEST(EditDistance, IsSymmetric) {
    constexpr std::array<std::string_view, 6> kWords = {"", "a", "loopback", "lopbakc", "none", "zeros"};
    for (const auto a : kWords) {
        for (const auto b : kWords) {
            EXPECT_EQ(edit_distance(a, b), edit_distance(b, a)) << a << " " << b;
        }
    }
}

TEST(Nearest, PrefersFewestErrorsThenTheFirst) {
    constexpr std::array<std::string_view, 3> kWords = {"zeros", "ones", "none"};
    EXPECT_EQ(nearest("zeroes", kWords), "zeros");
    EXPECT_EQ(nearest("one", kWords), "ones");
    EXPECT_EQ(nearest("", kWords), "ones");  // four letters to type, as for "none", and it comes first
}

TEST(Nearest, TakesAShortenedOrLengthenedWordForTheWord) {
    constexpr std::array<std::string_view, 2> kBackends = {"none", "loopback"};
    EXPECT_EQ(nearest("loop", kBackends), "loopback");
    constexpr std::array<std::string_view, 3> kLevels = {"none", "error", "warn"};
    EXPECT_EQ(nearest("WARNING", kLevels), "warn");
    constexpr std::array<std::string_view, 2> kOptions = {"--socket", "--socket-group"};
    EXPECT_EQ(nearest("--socket-grup", kOptions), "--socket-group");
    EXPECT_EQ(nearest("--socket-path", kOptions), "--socket");
}

TEST(UnknownWord, NamesTheNearestAndAllValidWords) {
    constexpr std::array<std::string_view, 2> kWords = {"on", "off"};
    EXPECT_EQ(unknown_word("setting", "of", kWords),
              "unknown setting 'of': did you mean 'off'? (valid: on, off)");
}

}  // namespace
}  // namespace ernic
