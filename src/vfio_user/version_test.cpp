// SPDX-License-Identifier: MIT
#include "vfio_user/version.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "vfio_user/test_support.hpp"

namespace ernic::vfio_user {
namespace {

using test::Buffer;
using test::version_payload;

constexpr std::string_view kQemu =
    R"({"capabilities": {"migration": {"max_bitmap_size": 268435456, "pgsize": 4096}, "max_msg_fds": 16, )"
    R"("max_data_xfer_size": 1048576, "max_dma_maps": 65535, "pgsizes": 4096, "write_multiple": true}})";

TEST(Version, QemuIsAcceptedWithItsCapabilities) {
    const auto agreed = parse_version(version_payload(kQemu));

    ASSERT_TRUE(agreed);
    EXPECT_EQ(agreed->max_data_transfer, 1048576U);
    EXPECT_EQ(agreed->max_dma_maps, 65535U);
    EXPECT_TRUE(agreed->write_multiple);
}

TEST(Version, ReplyFitsIntoQemusLimit) {
    const std::string text = version_text(*parse_version(version_payload(kQemu)));

    EXPECT_LE(16 + 4 + text.size() + 1, 214U);
    const auto capabilities = nlohmann::json::parse(text)["capabilities"];
    EXPECT_EQ(capabilities["max_msg_fds"], 16);
    EXPECT_EQ(capabilities["max_data_xfer_size"], 1048576);
    EXPECT_EQ(capabilities["write_multiple"], true);
}

TEST(Version, WriteMultipleIsOnlyOfferedWhenProposed) {
    const auto agreed = parse_version(version_payload("{}"));

    ASSERT_TRUE(agreed);
    EXPECT_EQ(version_text(*agreed).find("write_multiple"), std::string::npos);
}

TEST(Version, SmallerLimitsOfTheClientWin) {
    const auto agreed =
        parse_version(version_payload(R"({"capabilities":{"max_data_xfer_size":8192,"max_dma_maps":3}})"));

    ASSERT_TRUE(agreed);
    EXPECT_EQ(agreed->max_data_transfer, 8192U);
    EXPECT_EQ(agreed->max_dma_maps, 3U);
}

class VersionAccepts : public testing::TestWithParam<std::string_view> {};
TEST_P(VersionAccepts, HarmlessText) {
    EXPECT_TRUE(parse_version(version_payload(GetParam())));
}
INSTANTIATE_TEST_SUITE_P(Texts, VersionAccepts,
                         testing::Values("", "{}", R"({"capabilities":{}})", R"({"other":[1,2]})",
                                         R"({"capabilities":{"twin_socket":{"supported":true},"x":null}})",
                                         R"({"capabilities":{"max_msg_fds":1024}})"));

class VersionRejects : public testing::TestWithParam<std::string_view> {};
TEST_P(VersionRejects, BrokenOrAbsurdText) {
    EXPECT_FALSE(parse_version(version_payload(GetParam())));
}
INSTANTIATE_TEST_SUITE_P(
    Texts, VersionRejects,
    testing::Values(
        "{", "\"", "23", "[]", "null", "\xff\xfe", R"({"capabilities":"23"})", R"({"capabilities":[]})",
        R"({"capabilities":{"max_msg_fds":"foo"}})", R"({"capabilities":{"max_msg_fds":-1}})",
        R"({"capabilities":{"max_msg_fds":1025}})", R"({"capabilities":{"max_msg_fds":1.5}})",
        R"({"capabilities":{"max_data_xfer_size":-1}})", R"({"capabilities":{"max_dma_maps":null}})",
        R"({"capabilities":{"pgsizes":"4096"}})", R"({"capabilities":{"pgsizes":4095}})",
        R"({"capabilities":{"migration":"23"}})", R"({"capabilities":{"migration":{"pgsize":"foo"}}})",
        R"({"capabilities":{"migration":{"pgsize":4095}}})", R"({"capabilities":{"write_multiple":1}})"));

TEST(Version, ShortPayloadIsRefused) {
    EXPECT_FALSE(parse_version({}));
    EXPECT_FALSE(parse_version(Buffer(3)));
    EXPECT_TRUE(parse_version(Buffer(4))) << "the text is optional";
}

TEST(Version, OnlyTheMajorVersionMustMatch) {
    EXPECT_FALSE(parse_version(version_payload("{}", true, 1)));
    EXPECT_FALSE(parse_version(version_payload("{}", true, 999)));
    EXPECT_TRUE(parse_version(version_payload("{}", true, 0, 5)));
}

TEST(Version, TextWithoutTerminatorIsRefused) {
    EXPECT_FALSE(parse_version(version_payload("{}", false)));
}

TEST(Version, HugeAndDeepTextsAreHarmless) {
    EXPECT_FALSE(parse_version(version_payload(std::string(1U << 20U, ' ') + "{}")));
    EXPECT_FALSE(parse_version(version_payload(std::string(60'000, '['))));
    EXPECT_TRUE(parse_version(
        version_payload(R"({"x":)" + std::string(30'000, '[') + std::string(30'000, ']') + "}")));
}

}  // namespace
}  // namespace ernic::vfio_user
