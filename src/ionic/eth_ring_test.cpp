// SPDX-License-Identifier: MIT
#include "ionic/eth_ring.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "base/byte_order.hpp"

namespace ernic::ionic {
namespace {

/// A ring of eight slots; the fifth begins another region of guest memory.
class DescriptorRingTest : public testing::Test {
  protected:
    DescriptorRingTest() {
        memory_.publish({mem::Region{*Range::make(kBase, 4 * kSlot), host_.data(), true, true},
                         mem::Region{*Range::make(kBase + 4 * kSlot, 4 * kSlot), other_.data(), true, true}});
        memory_.set_enabled(true);
        for (std::uint32_t i = 0; i < 8; ++i) {
            const le32 value(i);
            std::memcpy((i < 4 ? host_ : other_).data() + i % 4 * kSlot, &value, sizeof value);
        }
    }
    /// Takes what one fetch_run() gives.
    std::size_t take() {
        const std::size_t count = ring_.fetch_run<le32>(memory_, into_);
        for (std::size_t i = 0; i < count; ++i) {
            ring_.consume();
        }
        return count;
    }

    static constexpr std::uint64_t kBase = 0x10000;
    static constexpr std::size_t kSlot = sizeof(le32);
    std::array<std::byte, 4 * kSlot> host_{};
    std::array<std::byte, 4 * kSlot> other_{};
    std::array<le32, 3> into_{};
    mem::GuestMemory memory_;
    DescriptorRing ring_{mem::Iova{kBase}, 3, 2};
};

TEST_F(DescriptorRingTest, ARunEndsWithWhatIsPendingAndWithTheRoom) {
    ring_.produced(4);
    EXPECT_EQ(take(), 3U);
    EXPECT_EQ(into_[0].get(), 0U);
    EXPECT_EQ(into_[2].get(), 2U);
    EXPECT_EQ(take(), 1U);
    EXPECT_EQ(into_[0].get(), 3U);
    EXPECT_TRUE(ring_.empty());
}

TEST_F(DescriptorRingTest, ARunAcrossRegionsIsFetchedOneByOne) {
    ring_.produced(3);
    EXPECT_EQ(take(), 3U);
    ring_.produced(6);
    EXPECT_EQ(take(), 1U) << "three would cross";
    EXPECT_EQ(into_[0].get(), 3U);
    EXPECT_EQ(take(), 2U);
    EXPECT_EQ(into_[1].get(), 5U);
}

TEST_F(DescriptorRingTest, ARunEndsAtTheEndOfTheRing) {
    ring_.produced(7);
    while (!ring_.empty()) {
        take();
    }
    ring_.produced(2);
    EXPECT_EQ(take(), 1U);
    EXPECT_EQ(into_[0].get(), 7U);
    EXPECT_EQ(take(), 2U);
    EXPECT_EQ(into_[0].get(), 0U);
}

TEST_F(DescriptorRingTest, NothingIsFetchedFromMemoryThatIsGone) {
    ring_.produced(2);
    memory_.set_enabled(false);
    EXPECT_EQ(ring_.fetch_run<le32>(memory_, into_), 0U);
}

}  // namespace
}  // namespace ernic::ionic
