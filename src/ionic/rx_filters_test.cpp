// SPDX-License-Identifier: MIT
#include "ionic/rx_filters.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "base/bytes.hpp"

namespace ernic::ionic {
namespace {

namespace w = wire::ionic;
using w::RxFilterMatch;
using w::Status;

wire::MacAddress mac(std::uint8_t last) {
    return {{0x02, 0, 0, 0, 0, last}};
}

template <WireValue T>
w::RxFilterAddCommand filter(RxFilterMatch match, const T& body) {
    w::RxFilterAddCommand raw{};
    raw.match.set(static_cast<std::uint16_t>(match));
    std::memcpy(raw.body.data(), &body, sizeof body);
    return raw;
}

class RxFiltersTest : public ::testing::Test {
  protected:
    RxFilters filters{3, 2};
    std::uint32_t id = 0;
};

TEST_F(RxFiltersTest, SameFilterTwiceReturnsItsId) {
    EXPECT_EQ(filters.add(filter(RxFilterMatch::Mac, mac(1)), id), Status::Success);
    const std::uint32_t first = id;
    EXPECT_EQ(filters.add(filter(RxFilterMatch::Mac, mac(2)), id), Status::Success);
    EXPECT_NE(id, first);
    EXPECT_EQ(filters.add(filter(RxFilterMatch::Mac, mac(1)), id), Status::Exists);
    EXPECT_EQ(id, first);
    EXPECT_EQ(filters.remove(first), Status::Success);
    EXPECT_EQ(filters.remove(first), Status::NotFound);
    EXPECT_EQ(filters.add(filter(RxFilterMatch::Mac, mac(1)), id), Status::Success);
}

TEST_F(RxFiltersTest, LimitsAreSeparateAndReturnNoSpace) {
    for (std::uint8_t i = 0; i < 3; ++i) {
        EXPECT_EQ(filters.add(filter(RxFilterMatch::Mac, mac(i)), id), Status::Success);
    }
    EXPECT_EQ(filters.add(filter(RxFilterMatch::Mac, mac(9)), id), Status::NoSpace);
    EXPECT_EQ(filters.add(filter(RxFilterMatch::Vlan, le16(1)), id), Status::Success);
    EXPECT_EQ(filters.add(filter(RxFilterMatch::Vlan, le16(2)), id), Status::Success);
    EXPECT_EQ(filters.add(filter(RxFilterMatch::Vlan, le16(3)), id), Status::NoSpace);
    EXPECT_EQ(filters.remove(id), Status::Success);
    EXPECT_EQ(filters.add(filter(RxFilterMatch::Vlan, le16(3)), id), Status::Success);
}

TEST_F(RxFiltersTest, NonsenseIsRefused) {
    EXPECT_EQ(filters.add(filter(RxFilterMatch::Vlan, le16(4096)), id), Status::Invalid);
    EXPECT_EQ(filters.add(filter(static_cast<RxFilterMatch>(7), le16(1)), id), Status::Invalid);
    EXPECT_EQ(filters.add(filter(RxFilterMatch::PacketClass, le64(1)), id), Status::NotSupported);
    EXPECT_EQ(filters.count(), 0U);
}

TEST_F(RxFiltersTest, MacVlanFilterMatchesOnlyThePair) {
    const w::MacVlanMatch pair{le16(7), mac(1)};
    filters.set_mode(w::rx_mode::kUnicast);
    EXPECT_EQ(filters.add(filter(RxFilterMatch::MacVlan, pair), id), Status::Success);
    EXPECT_TRUE(filters.accepts(mac(1), 7, true));
    EXPECT_FALSE(filters.accepts(mac(1), 8, true));
    EXPECT_FALSE(filters.accepts(mac(1), std::nullopt, true));
    EXPECT_FALSE(filters.accepts(mac(2), 7, true));
}

TEST_F(RxFiltersTest, ResetForgetsEverything) {
    filters.set_mode(w::rx_mode::kPromiscuous);
    EXPECT_EQ(filters.add(filter(RxFilterMatch::Mac, mac(1)), id), Status::Success);
    filters.reset();
    EXPECT_EQ(filters.count(), 0U);
    EXPECT_FALSE(filters.accepts(mac(1), std::nullopt, false));
}

}  // namespace
}  // namespace ernic::ionic
