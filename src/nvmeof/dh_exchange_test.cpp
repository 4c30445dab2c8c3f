// SPDX-License-Identifier: MIT
#include "nvmeof/dh_exchange.hpp"

#include <gtest/gtest.h>

#include <string>

namespace ernic::nvmeof {
namespace {

class EveryGroup : public testing::TestWithParam<std::uint8_t> {};
INSTANTIATE_TEST_SUITE_P(NvmeofDhExchange, EveryGroup, testing::Values(1, 2, 3, 4, 5),
                         [](const auto& info) { return std::string(group_name(info.param)); });

TEST_P(EveryGroup, BothSidesShareOneSecretThatAThirdHasNot) {
    const auto one = DhExchange::make(GetParam());
    const auto two = DhExchange::make(GetParam());
    const auto third = DhExchange::make(GetParam());
    ASSERT_TRUE(one && two && third);
    EXPECT_EQ(one->public_value().size(), group_bytes(GetParam()));
    EXPECT_NE(one->public_value(), two->public_value());
    const Digest secret = one->secret(two->public_value());
    EXPECT_EQ(secret.size(), group_bytes(GetParam()));
    EXPECT_EQ(two->secret(one->public_value()), secret);
    EXPECT_NE(third->secret(one->public_value()), secret);
}

TEST_P(EveryGroup, ValuesThatGiveTheSecretAwayAreRefused) {
    const auto one = DhExchange::make(GetParam());
    ASSERT_TRUE(one);
    Digest value(group_bytes(GetParam()));
    EXPECT_TRUE(one->secret(value).empty()) << "0";
    value.back() = std::byte{1};
    EXPECT_TRUE(one->secret(value).empty()) << "1";
    // No prime of these groups is larger.
    value.assign(value.size(), std::byte{0xff});
    EXPECT_TRUE(one->secret(value).empty()) << "all ones";
    value.pop_back();
    EXPECT_TRUE(one->secret(value).empty()) << "too short";
    EXPECT_TRUE(one->secret({}).empty());
}

TEST(NvmeofDhExchange, GroupsHaveNames) {
    for (std::uint8_t group = 0; group < 6; ++group) {
        EXPECT_TRUE(known_group(group));
        EXPECT_EQ(group_of(group_name(group)), group);
    }
    EXPECT_FALSE(known_group(6));
    EXPECT_FALSE(group_of("ffdhe1024").has_value());
    EXPECT_FALSE(group_of("").has_value());
}

}  // namespace
}  // namespace ernic::nvmeof
