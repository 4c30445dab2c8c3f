// SPDX-License-Identifier: MIT
#include "mem/table_pool.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "mem/table_copy.hpp"
#include "mem/test_support.hpp"

namespace ernic::mem {
namespace {

constexpr std::uint64_t kBase = 0x10000;
/// Three blocks and a bit.
constexpr std::size_t kLong = 3 * TablePool::kBlockEntries + 5;

class TablePoolTest : public testing::Test {
  protected:
    TablePoolTest() : host_(kLong * sizeof(le64)) {
        for (std::size_t i = 0; i < kLong; ++i) {
            const le64 entry(page(i));
            std::memcpy(host_.data() + i * sizeof entry, &entry, sizeof entry);
        }
        memory_.publish({Region{*Range::make(kBase, host_.size()), host_.data(), true, true}});
        memory_.set_enabled(true);
    }
    static std::uint64_t page(std::size_t number) { return (number + 7) * 4096; }
    std::optional<TableCopy> begin(std::size_t count) {
        return TableCopy::begin(memory_, {kBase}, static_cast<std::uint32_t>(count), 12, pool_);
    }
    static void expect_pages(const PageList& list, std::size_t count) {
        ASSERT_EQ(list.entries(), count);
        for (std::size_t i = 0; i < count; ++i) {
            ASSERT_EQ(list.at(i * 4096 + 1)->iova.value, page(i) + 1) << i;
        }
        EXPECT_FALSE(list.at(count * 4096));
    }

    std::vector<std::byte> host_;
    GuestMemory memory_;
    TablePool pool_;
};

TEST_F(TablePoolTest, ATableIsCopiedInPiecesOfAnySize) {
    for (const std::size_t size : {std::size_t{1}, TablePool::kShortTable, TablePool::kBlockEntries,
                                   TablePool::kBlockEntries + 1, kLong}) {
        for (const std::size_t piece : {std::size_t{1000}, std::size_t{2048}, kLong}) {
            auto copy = begin(size);
            ASSERT_TRUE(copy);
            while (!copy->complete()) {
                const std::size_t before = copy->copied();
                ASSERT_TRUE(copy->advance(memory_, piece));
                ASSERT_EQ(copy->copied(), std::min(before + piece, size));
            }
            expect_pages(std::move(*copy).take(), size);
        }
    }
}

TEST_F(TablePoolTest, ATableMovesWithoutBeingCopied) {
    auto list = test::copy_table(memory_, {kBase}, kLong, 12, pool_);
    ASSERT_TRUE(list);
    PageList other = PageList::contiguous({5});
    other = std::move(*list);
    expect_pages(other, kLong);
    EXPECT_EQ(pool_.idle(), 0U);
    other = PageList();
    EXPECT_EQ(pool_.idle(), 4U);
}

TEST_F(TablePoolTest, MemoryThatGoesAwayOnTheWayIsNoticed) {
    auto copy = begin(kLong);
    ASSERT_TRUE(copy->advance(memory_, 1000));
    memory_.publish({});
    EXPECT_FALSE(copy->advance(memory_, 1000));
    copy.reset();
    EXPECT_EQ(pool_.idle(), 1U);
}

TEST_F(TablePoolTest, DeadTablesAreGivenBackInPiecesAndSomeOfThemKept) {
    std::vector<PageList> lists;
    for (std::size_t i = 0; i < TablePool::kKeep / 4 + 2; ++i) {
        lists.push_back(std::move(*test::copy_table(memory_, {kBase}, kLong, 12, pool_)));
    }
    lists.clear();
    EXPECT_EQ(pool_.idle(), TablePool::kKeep + 8);
    EXPECT_TRUE(pool_.trim(3));
    EXPECT_EQ(pool_.idle(), TablePool::kKeep + 5);
    EXPECT_FALSE(pool_.trim(100));
    EXPECT_EQ(pool_.idle(), TablePool::kKeep);
    const auto list = test::copy_table(memory_, {kBase}, kLong, 12, pool_);
    EXPECT_EQ(pool_.idle(), TablePool::kKeep - 4) << "what is kept is used again";
    expect_pages(*list, kLong);
}

}  // namespace
}  // namespace ernic::mem
