// SPDX-License-Identifier: MIT
#include "rdma/memory_region.hpp"

#include <gtest/gtest.h>

#include "mem/test_support.hpp"
#include "rdma/test_support.hpp"

namespace ernic::rdma {
namespace {

using test::World;

constexpr MemoryTable::User kUser{test::kPd, 10, false};

class Keys : public ::testing::Test {
  protected:
    KeyVerdict check(std::uint32_t key, std::uint64_t va, std::uint64_t length, Use use,
                     MemoryTable::User user = kUser) {
        mem::SpanList spans;
        return table.append(user, key, va, length, use, spans);
    }
    World world;
    MemoryTable& table = world.engine.memory_table();
};

TEST_F(Keys, EveryReasonToRefuse) {
    const std::uint32_t key = world.region(1, 4096, 8192, {.local_write = true, .remote_read = true});
    EXPECT_EQ(check(key, 4096, 8192, Use::RemoteRead), KeyVerdict::Ok);
    EXPECT_EQ(check(key, 4095, 1, Use::RemoteRead), KeyVerdict::OutOfRange);
    EXPECT_EQ(check(key, 12288, 1, Use::RemoteRead), KeyVerdict::OutOfRange);
    EXPECT_EQ(check(key, 4097, UINT64_MAX, Use::RemoteRead), KeyVerdict::OutOfRange);
    EXPECT_EQ(check(key, 4096, 8, Use::RemoteWrite), KeyVerdict::NoRight);
    EXPECT_EQ(check(key ^ 1U, 4096, 8, Use::RemoteRead), KeyVerdict::BadKey);
    EXPECT_EQ(check(0xffffff00U, 4096, 8, Use::RemoteRead), KeyVerdict::BadKey);
    EXPECT_EQ(check(key, 4096, 8, Use::RemoteRead, {test::kPd + 1, 10, false}), KeyVerdict::WrongPd);
}

TEST_F(Keys, KeyZeroIsForPrivilegedUsersOnly) {
    EXPECT_EQ(check(0, 4096, 8, Use::LocalRead), KeyVerdict::BadKey);
    EXPECT_EQ(check(0, 4096, 8, Use::LocalRead, {test::kPd, 10, true}), KeyVerdict::Ok);
    EXPECT_EQ(check(0, test::kMemorySize, 8, Use::LocalRead, {test::kPd, 10, true}), KeyVerdict::NotMapped);
}

TEST_F(Keys, PageTableWithOffsetIsFollowed) {
    // Two pages, the second one first in memory.
    const std::uint64_t pages[] = {0x9000, 0x8000};  // NOLINT(modernize-avoid-c-arrays)
    std::memcpy(&world.bytes[0x1000], pages, sizeof(pages));
    MemoryRegion region;
    region.valid = true;
    region.pd = test::kPd;
    region.rights = World::all_rights();
    region.va = 0x7f0000000123;
    region.length = 0x1800;
    region.page_offset = 0x123;
    region.pages = *mem::test::copy_table(world.memory, mem::Iova{0x1000}, 2, 12, table.tables());
    ASSERT_TRUE(table.create(2U << 8U, std::move(region)));
    mem::SpanList spans;
    ASSERT_EQ(table.append(kUser, 2U << 8U, 0x7f0000000123, 0x1800, Use::LocalWrite, spans), KeyVerdict::Ok);
    ASSERT_EQ(spans.count(), 2U);
    EXPECT_EQ(spans.begin()[0].data, &world.bytes[0x9123]);
    EXPECT_EQ(spans.begin()[0].size, 0x1000U - 0x123U);
    EXPECT_EQ(spans.begin()[1].data, &world.bytes[0x8000]);
}

TEST_F(Keys, FastRegistrationLifeCycle) {
    MemoryRegion empty;
    empty.kind = MemoryRegion::Kind::FastRegister;
    empty.pd = test::kPd;
    ASSERT_TRUE(table.create(3U << 8U | 1U, std::move(empty)));
    EXPECT_EQ(check(3U << 8U | 1U, 0, 1, Use::LocalRead), KeyVerdict::BadKey);
    WorkRequest wr{};
    wr.opcode = Opcode::RegisterMr;
    wr.immediate_or_key = 3U << 8U | 2U;
    wr.new_tag = 2;
    wr.remote_va = 0x5000;
    wr.length = 4096;
    wr.table = mem::Iova{0x5000};
    wr.map_count = 1;
    wr.rights = World::all_rights();
    std::uint32_t copied = 0;
    EXPECT_EQ(table.register_pages(kUser, wr, copied), CompletionStatus::Success);
    EXPECT_EQ(check(3U << 8U | 2U, 0x5000, 4096, Use::RemoteWrite), KeyVerdict::Ok);
    EXPECT_EQ(check(3U << 8U | 1U, 0x5000, 1, Use::RemoteWrite), KeyVerdict::BadKey) << "the old tag";
    EXPECT_EQ(table.invalidate(kUser, 3U << 8U | 2U), CompletionStatus::Success);
    EXPECT_EQ(check(3U << 8U | 2U, 0x5000, 1, Use::RemoteWrite), KeyVerdict::BadKey);
    EXPECT_EQ(table.register_pages({test::kPd + 1, 10, false}, wr, copied),
              CompletionStatus::MemoryManagement);
}

TEST_F(Keys, UserRegionsCannotBeInvalidated) {
    const std::uint32_t key = world.region(1, 0, 4096, World::all_rights());
    EXPECT_EQ(table.invalidate(kUser, key), CompletionStatus::MemoryManagement);
    EXPECT_EQ(check(key, 0, 8, Use::RemoteRead), KeyVerdict::Ok);
}

TEST_F(Keys, WindowsFollowTheirRegionAndTheirQueuePair) {
    const std::uint32_t parent = world.region(1, 0, 8192, World::all_rights());
    MemoryRegion window;
    window.kind = MemoryRegion::Kind::WindowType2;
    window.pd = test::kPd;
    ASSERT_TRUE(table.create(4U << 8U, std::move(window)));
    WorkRequest bind{};
    bind.opcode = Opcode::BindMw;
    bind.immediate_or_key = 4U << 8U;
    bind.new_tag = 9;
    bind.lkey = parent;
    bind.remote_va = 100;
    bind.length = 200;
    bind.rights = {.remote_write = true};
    bind.window_type2 = true;
    ASSERT_EQ(table.bind_window(kUser, bind), CompletionStatus::Success);
    const std::uint32_t key = 4U << 8U | 9U;
    EXPECT_EQ(check(key, 100, 200, Use::RemoteWrite), KeyVerdict::Ok);
    EXPECT_EQ(check(key, 100, 201, Use::RemoteWrite), KeyVerdict::OutOfRange);
    EXPECT_EQ(check(key, 100, 8, Use::LocalRead), KeyVerdict::BadKey) << "a window is for remote access only";
    EXPECT_EQ(check(key, 100, 8, Use::RemoteWrite, {test::kPd, 11, false}), KeyVerdict::WrongPd);
    EXPECT_EQ(check(key, 100, 8, Use::RemoteWrite, {test::kPd + 1, kUser.qpn, false}), KeyVerdict::WrongPd)
        << "another's queue pair that got the same number";
    EXPECT_EQ(table.bind_window(kUser, bind), CompletionStatus::MemoryManagement) << "bound while valid";
    table.destroy(parent);
    EXPECT_EQ(check(key, 100, 200, Use::RemoteWrite), KeyVerdict::BadKey) << "its region is gone";
}

TEST_F(Keys, PageEntriesAreBounded) {
    const std::uint64_t limit = 1U << 16U;
    MemoryRegion region;
    region.valid = true;
    region.pages = *mem::test::copy_table(world.memory, mem::Iova{0}, limit, 12, table.tables());
    ASSERT_TRUE(table.create(1U << 8U, std::move(region)));
    MemoryRegion one_more;
    one_more.pages = *mem::test::copy_table(world.memory, mem::Iova{0}, 2, 12, table.tables());
    EXPECT_FALSE(table.create(2U << 8U, std::move(one_more)));
    table.destroy(1U << 8U);
    EXPECT_EQ(table.page_entries_used(), 0U);
}

}  // namespace
}  // namespace ernic::rdma
