// SPDX-License-Identifier: MIT
#include "nvmeof/buffer_pool.hpp"

#include <gtest/gtest.h>

namespace ernic::nvmeof {
namespace {

constexpr std::size_t kChunk = BufferPool::kChunk;

class Waiter final : public BufferWaiter {
  public:
    void run() override { ++runs; }
    int runs = 0;
};

struct BufferPoolTest : testing::Test {
    WorkQueue work;
    BufferPool pool{4 * kChunk, work};
    Waiter large;
    Waiter small;
};

TEST_F(BufferPoolTest, WaitersAreServedInTheirOrder) {
    Buffer all = pool.take(4 * kChunk);
    ASSERT_TRUE(all);
    pool.wait(large, 4 * kChunk);
    pool.wait(small, kChunk);
    all.reset();
    EXPECT_FALSE(pool.take(1)) << "others wait";
    while (work.step()) {
    }
    EXPECT_EQ(large.runs, 1);
    EXPECT_EQ(small.runs, 0) << "everything is promised to the first";
    EXPECT_TRUE(pool.take_again(4 * kChunk, large)) << "and given back at once";
    EXPECT_FALSE(work.empty());
}

TEST_F(BufferPoolTest, AWaiterThatLeavesHoldsUpNobody) {
    Buffer all = pool.take(4 * kChunk);
    pool.wait(large, 4 * kChunk);
    pool.wait(small, kChunk);
    large.leave();
    pool.left();
    EXPECT_TRUE(work.empty()) << "there is nothing to give";
    all.reset();
    EXPECT_FALSE(work.empty());
}

TEST_F(BufferPoolTest, AWaiterThatLeavesAfterItWasWokenHoldsUpNobody) {
    Buffer all = pool.take(4 * kChunk);
    pool.wait(large, 4 * kChunk);
    pool.wait(small, kChunk);
    all.reset();
    large.leave();  // cancelled before its turn
    pool.left();
    while (work.step()) {
    }
    EXPECT_EQ(large.runs, 0);
    EXPECT_EQ(small.runs, 1);
    EXPECT_TRUE(pool.take_again(kChunk, small));
    EXPECT_TRUE(pool.take(3 * kChunk));
}

}  // namespace
}  // namespace ernic::nvmeof
