// SPDX-License-Identifier: MIT
#include "vfio_user/irq_table.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "vfio_user/test_support.hpp"

namespace ernic::vfio_user {
namespace {

using namespace test;

UniqueFd event_fd(unsigned initial = 0, int flags = EFD_NONBLOCK) {
    return UniqueFd(::eventfd(initial, EFD_CLOEXEC | flags));
}

/// What has been signalled since the last look.
std::uint64_t count_of(const UniqueFd& fd) {
    std::uint64_t value = 0;
    pollfd ready{fd.get(), POLLIN, 0};
    if (::poll(&ready, 1, 0) == 1) {
        EXPECT_EQ(::read(fd.get(), &value, sizeof(value)), 8);
    }
    return value;
}

class IrqTableTest : public testing::Test {
  protected:
    IrqTableTest() { table_.attach(function_); }

    int set(std::uint32_t flags, std::uint32_t index, std::uint32_t start, std::uint32_t count,
            std::vector<const UniqueFd*> sources = {}, const Buffer& data = {}) {
        std::vector<UniqueFd> fds;
        for (const UniqueFd* source : sources) {
            fds.emplace_back(::dup(source->get()));
        }
        const auto bad =
            table_.set(*read_value<w::IrqSet>(irqs_payload(flags, index, start, count)), data, fds);
        return bad ? bad->error : 0;
    }

    static constexpr std::uint32_t kInstall = 0x24;
    static constexpr std::uint32_t kFire = 0x21;
    static constexpr std::uint32_t kFireChosen = 0x22;
    static constexpr std::uint32_t kMask = 0x09;
    static constexpr std::uint32_t kUnmask = 0x11;
    static constexpr std::uint32_t kMsix = w::kIrqMsix;

    FakeFunction function_;
    Counters counters_;
    IrqTable table_{counters_, log::Logger(log::null_sink(), "test")};
};

TEST_F(IrqTableTest, InstalledVectorReachesItsEventfd) {
    const UniqueFd a = event_fd();
    const UniqueFd b = event_fd();
    ASSERT_EQ(set(kInstall, kMsix, 3, 2, {&a, &b}), 0);

    EXPECT_TRUE(table_.fire(4));

    EXPECT_EQ(count_of(a), 0U);
    EXPECT_EQ(count_of(b), 1U);
    EXPECT_EQ(function_.ready, (std::vector<std::uint16_t>{3, 4}));
}

TEST_F(IrqTableTest, VectorWithoutEventfdSaysSo) {
    EXPECT_FALSE(table_.fire(0));
    EXPECT_FALSE(table_.fire(8));
    EXPECT_FALSE(table_.fire(0xffff));
    EXPECT_EQ(counters_.interrupts_unroutable.value(), 3U);
}

TEST_F(IrqTableTest, NewEventfdReplacesAndClosesTheOldOne) {
    const UniqueFd old_one = event_fd();
    const UniqueFd new_one = event_fd();
    ASSERT_EQ(set(kInstall, kMsix, 0, 1, {&old_one}), 0);
    const std::size_t before = open_fds();

    ASSERT_EQ(set(kInstall, kMsix, 0, 1, {&new_one}), 0);
    table_.fire(0);

    EXPECT_EQ(open_fds(), before);
    EXPECT_EQ(count_of(old_one), 0U);
    EXPECT_EQ(count_of(new_one), 1U);
}

TEST_F(IrqTableTest, InstallWithoutDescriptorsRemovesARange) {
    const UniqueFd a = event_fd();
    ASSERT_EQ(set(kInstall, kMsix, 0, 3, {&a, &a, &a}), 0);

    ASSERT_EQ(set(kInstall, kMsix, 1, 2), 0);

    EXPECT_TRUE(table_.fire(0));
    EXPECT_FALSE(table_.fire(1));
    EXPECT_FALSE(table_.fire(2));
}

TEST_F(IrqTableTest, DisableClosesAllEventfdsOfMsix) {
    const UniqueFd a = event_fd();
    const std::size_t before = open_fds();
    ASSERT_EQ(set(kInstall, kMsix, 0, 2, {&a, &a}), 0);

    ASSERT_EQ(set(kFire, kMsix, 0, 0), 0);

    EXPECT_EQ(open_fds(), before);
    EXPECT_FALSE(table_.fire(0));
}

TEST_F(IrqTableTest, DisableSucceedsForEveryIndexEvenWithoutInterrupts) {
    for (std::uint32_t index = 0; index < w::kIrqCount; ++index) {
        EXPECT_EQ(set(kFire, index, 0, 0), 0) << index;
    }
}

TEST_F(IrqTableTest, ClientCanFireByRangeAndByChoice) {
    const UniqueFd a = event_fd(4);
    const UniqueFd b = event_fd(8);
    ASSERT_EQ(set(kInstall, kMsix, 0, 2, {&a, &b}), 0);

    ASSERT_EQ(set(kFireChosen, kMsix, 0, 2, {}, Buffer{std::byte{0}, std::byte{1}}), 0);
    EXPECT_EQ(count_of(a), 4U);
    EXPECT_EQ(count_of(b), 9U);
    ASSERT_EQ(set(kFire, kMsix, 0, 2), 0);

    EXPECT_EQ(count_of(a), 1U);
    EXPECT_EQ(count_of(b), 1U);
}

TEST_F(IrqTableTest, FiringVectorsWithoutEventfdIsHarmless) {
    EXPECT_EQ(set(kFire, kMsix, 0, 8), 0);
}

TEST_F(IrqTableTest, MaskedVectorIsHeldAndAnnouncedAtUnmask) {
    const UniqueFd a = event_fd();
    ASSERT_EQ(set(kInstall, kMsix, 2, 1, {&a}), 0);
    function_.ready.clear();

    ASSERT_EQ(set(kMask, kMsix, 2, 1), 0);
    EXPECT_FALSE(table_.fire(2));
    ASSERT_EQ(set(kUnmask, kMsix, 2, 1), 0);

    EXPECT_EQ(function_.ready, (std::vector<std::uint16_t>{2}));
    EXPECT_TRUE(table_.fire(2));
    EXPECT_EQ(count_of(a), 1U);
}

TEST_F(IrqTableTest, SaturatedEventfdNeverBlocks) {
    for (const int flags : {int{EFD_NONBLOCK}, 0}) {
        const UniqueFd full = event_fd(0, flags);
        const std::uint64_t most = 0xfffffffffffffffe;
        ASSERT_EQ(::write(full.get(), &most, 8), 8);
        ASSERT_EQ(set(kInstall, kMsix, 0, 1, {&full}), 0);

        EXPECT_TRUE(table_.fire(0));
    }
    EXPECT_EQ(counters_.interrupts_saturated.value(), 2U);
}

TEST_F(IrqTableTest, SaturatedEventfdMadeBlockingAfterwardsNeverBlocks) {
    const UniqueFd full = event_fd();
    ASSERT_EQ(set(kInstall, kMsix, 0, 1, {&full}), 0);
    ASSERT_EQ(::fcntl(full.get(), F_SETFL, 0), 0);
    const std::uint64_t most = 0xfffffffffffffffe;
    ASSERT_EQ(::write(full.get(), &most, 8), 8);

    EXPECT_TRUE(table_.fire(0));

    EXPECT_EQ(counters_.interrupts_saturated.value(), 1U);
}

TEST_F(IrqTableTest, BlockingEventfdIsSignalledToo) {
    const UniqueFd a = event_fd(0, 0);
    ASSERT_EQ(set(kInstall, kMsix, 0, 1, {&a}), 0);

    EXPECT_TRUE(table_.fire(0));

    EXPECT_EQ(count_of(a), 1U);
}

TEST_F(IrqTableTest, OnlyEventfdsAreTaken) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    const UniqueFd read_end(ends[0]);
    const UniqueFd write_end(ends[1]);
    const UniqueFd a = event_fd();

    EXPECT_EQ(set(kInstall, kMsix, 0, 2, {&a, &write_end}), EINVAL);

    EXPECT_FALSE(table_.fire(0)) << "nothing of the refused request is installed";
}

struct BadSet {
    const char* what;
    std::uint32_t flags;
    std::uint32_t index;
    std::uint32_t start;
    std::uint32_t count;
    std::size_t fds;
    std::size_t data;
};

class IrqTableRejects : public IrqTableTest, public testing::WithParamInterface<BadSet> {};

TEST_P(IrqTableRejects, BadRequestIsRefused) {
    const BadSet& bad = GetParam();
    const UniqueFd a = event_fd();
    const std::vector<const UniqueFd*> fds(bad.fds, &a);
    const std::size_t before = open_fds();

    EXPECT_EQ(set(bad.flags, bad.index, bad.start, bad.count, fds, Buffer(bad.data)), EINVAL) << bad.what;

    EXPECT_EQ(open_fds(), before);
}

INSTANTIATE_TEST_SUITE_P(
    Requests, IrqTableRejects,
    testing::Values(
        BadSet{"index 5", 0x24, 5, 0, 1, 1, 0}, BadSet{"no action", 0x04, 2, 0, 1, 1, 0},
        BadSet{"two actions", 0x34, 2, 0, 1, 1, 0}, BadSet{"no data type", 0x20, 2, 0, 1, 0, 0},
        BadSet{"two data types", 0x23, 2, 0, 1, 0, 1}, BadSet{"unknown flag", 0x61, 2, 0, 1, 0, 0},
        BadSet{"start at the end", 0x24, 2, 8, 1, 1, 0}, BadSet{"past the end", 0x24, 2, 7, 2, 2, 0},
        BadSet{"start + count wraps", 0x21, 2, 1, 0xffffffff, 0, 0},
        BadSet{"count 0 with start", 0x21, 2, 1, 0, 0, 0}, BadSet{"count 0 eventfd", 0x24, 2, 0, 0, 0, 0},
        BadSet{"count 0 mask", 0x09, 2, 0, 0, 0, 0}, BadSet{"fds with none", 0x21, 2, 0, 1, 1, 0},
        BadSet{"fds with bool", 0x22, 2, 0, 1, 1, 1}, BadSet{"too few fds", 0x24, 2, 0, 2, 1, 0},
        BadSet{"too many fds", 0x24, 2, 0, 1, 2, 0}, BadSet{"bool too short", 0x22, 2, 0, 2, 0, 1},
        BadSet{"bool too long", 0x22, 2, 0, 2, 0, 3}, BadSet{"eventfd mask", 0x0c, 2, 0, 1, 1, 0},
        BadSet{"ERR trigger", 0x21, 3, 0, 1, 0, 0}, BadSet{"ERR eventfd", 0x24, 3, 0, 1, 1, 0},
        BadSet{"INTX eventfd", 0x24, 0, 0, 1, 1, 0}, BadSet{"REQ mask", 0x09, 4, 0, 1, 0, 0}));

TEST_F(IrqTableTest, ShortArgszIsRefused) {
    auto request = *read_value<w::IrqSet>(irqs_payload(kFire, kMsix, 0, 0));
    request.argsz.set(19);
    std::vector<UniqueFd> none;

    EXPECT_EQ(table_.set(request, {}, none)->reason, Reject::Argsz);
}

}  // namespace
}  // namespace ernic::vfio_user
