// SPDX-License-Identifier: MIT
#include "rdma/psn.hpp"

#include <gtest/gtest.h>

namespace ernic::rdma {
namespace {

TEST(Psn, WrapsAfter24Bits) {
    EXPECT_EQ(Psn(0xffffff).plus(1).value(), 0U);
    EXPECT_EQ(Psn(0).plus(0xffffff).value(), 0xffffffU);
    EXPECT_EQ(Psn(0x1000005).value(), 5U);
}

TEST(Psn, OrdersByDistanceAcrossTheWrap) {
    EXPECT_TRUE(Psn(0xfffffe).before(Psn(3)));
    EXPECT_FALSE(Psn(3).before(Psn(0xfffffe)));
    EXPECT_FALSE(Psn(9).before(Psn(9)));
    EXPECT_EQ(Psn(0xffffff).distance_to(Psn(0)), 1);
    EXPECT_EQ(Psn(0).distance_to(Psn(0xffffff)), -1);
}

TEST(Psn, DistanceUndoesPlusForEveryOffset) {
    for (std::uint32_t start : {0U, 1U, 0x7fffffU, 0x800000U, 0xffffffU}) {
        for (std::uint32_t by : {0U, 1U, 2U, 1000U, 0x7fffffU}) {
            EXPECT_EQ(Psn(start).distance_to(Psn(start).plus(by)), static_cast<std::int32_t>(by));
        }
    }
}

}  // namespace
}  // namespace ernic::rdma
