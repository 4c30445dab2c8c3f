// SPDX-License-Identifier: MIT
#include "vfio_user/dma_map.hpp"

#include <gtest/gtest.h>

#include "vfio_user/limits.hpp"
#include "vfio_user/test_support.hpp"

namespace ernic::vfio_user {
namespace {

using namespace test;
using mem::Access;
using mem::Iova;

class DmaMapTest : public testing::Test {
  protected:
    DmaMapTest() { map_.memory().set_enabled(true); }

    int map(std::uint64_t iova, std::uint64_t size, const UniqueFd* file, std::uint64_t offset = 0,
            std::uint32_t flags = 3) {
        const auto request = *read_value<w::DmaMap>(map_payload(iova, size, offset, flags));
        const auto bad = map_.map(request, file != nullptr ? UniqueFd(::dup(file->get())) : UniqueFd());
        return bad ? bad->error : 0;
    }
    int unmap(std::uint64_t iova, std::uint64_t size, std::uint32_t flags = 0) {
        const auto bad = map_.unmap(*read_value<w::DmaUnmap>(unmap_payload(iova, size, flags)));
        return bad ? bad->error : 0;
    }
    std::byte* at(std::uint64_t iova, std::size_t size = 1, Access access = Access::Read) {
        return map_.memory().at(Iova{iova}, size, access);
    }

    FakeClock clock_;
    EventLoop loop_{clock_};
    Counters counters_;
    DmaMap map_{loop_, counters_, log::Logger(log::null_sink(), "test")};
    UniqueFd file_ = memory_file(0x100000);
};

TEST_F(DmaMapTest, MappedMemoryIsTheFile) {
    ASSERT_EQ(map(0x40000000, 0x10000, &file_, 0x2000), 0);

    const le64 value(0x1122334455667788);
    EXPECT_TRUE(map_.memory().write(Iova{0x40000ff8}, bytes_of(value)));

    le64 seen;
    ASSERT_EQ(::pread(file_.get(), &seen, 8, 0x2ff8), 8);
    EXPECT_EQ(seen, value);
}

TEST_F(DmaMapTest, MemoryWithoutFileExistsButCannotBeReached) {
    ASSERT_EQ(map(0xfffc0000, 0x40000, nullptr, 0, 1), 0);

    EXPECT_EQ(at(0xfffc0000), nullptr);
    EXPECT_EQ(map(0xfffd0000, 0x1000, &file_), EEXIST);
    EXPECT_EQ(counters_.dma_unreachable.value(), 1U);
}

TEST_F(DmaMapTest, ReadOnlyMapRefusesWrites) {
    ASSERT_EQ(map(0, 0x1000, &file_, 0, 1), 0);

    EXPECT_NE(at(0, 1, Access::Read), nullptr);
    EXPECT_EQ(at(0, 1, Access::Write), nullptr);
}

TEST_F(DmaMapTest, AccessMaySpanAdjacentMaps) {
    ASSERT_EQ(map(0x1000, 0x1000, &file_, 0x5000), 0);
    ASSERT_EQ(map(0x2000, 0x1000, &file_, 0x9000), 0);
    std::array<std::byte, 0x2000> bytes{};

    EXPECT_TRUE(map_.memory().read(Iova{0x1000}, bytes));
    EXPECT_FALSE(map_.memory().read(Iova{0x1001}, bytes));
}

struct BadMap {
    const char* what;
    std::uint64_t iova;
    std::uint64_t size;
    std::uint64_t offset;
    std::uint32_t flags;
    bool with_file;
    int error;
};

class DmaMapRejects : public DmaMapTest, public testing::WithParamInterface<BadMap> {};

TEST_P(DmaMapRejects, BadRequestChangesNothing) {
    ASSERT_EQ(map(0x10000, 0x10000, &file_), 0);
    const auto generation = map_.memory().generation();
    const BadMap& bad = GetParam();

    EXPECT_EQ(map(bad.iova, bad.size, bad.with_file ? &file_ : nullptr, bad.offset, bad.flags), bad.error)
        << bad.what;

    EXPECT_EQ(map_.size(), 1U);
    EXPECT_EQ(map_.memory().generation(), generation);
    EXPECT_NE(at(0x10000, 0x10000, Access::Write), nullptr);
}

INSTANTIATE_TEST_SUITE_P(
    Requests, DmaMapRejects,
    testing::Values(BadMap{"size 0", 0, 0, 0, 3, true, EINVAL},
                    BadMap{"wraps", ~0ULL - 0xfff, 0x2000, 0, 3, true, EINVAL},
                    BadMap{"unknown flag", 0, 0x1000, 0, 0x13, true, EINVAL},
                    BadMap{"must mmap without file", 0, 0x1000, 0, 7, false, EINVAL},
                    BadMap{"must use file I/O without file", 0, 0x1000, 0, 11, false, EINVAL},
                    BadMap{"must use file I/O", 0, 0x1000, 0, 11, true, EINVAL},
                    BadMap{"unaligned offset", 0, 0x1000, 0x800, 3, true, EINVAL},
                    BadMap{"offset wraps", 0, 0x2000, ~0ULL - 0xfff, 3, true, EINVAL},
                    BadMap{"file too short", 0, 0x1000, 0x100000, 3, true, EINVAL},
                    BadMap{"overlaps the start", 0x8000, 0x10000, 0, 3, true, EEXIST},
                    BadMap{"overlaps the end", 0x18000, 0x10000, 0, 3, true, EEXIST},
                    BadMap{"inside", 0x14000, 0x1000, 0, 3, true, EEXIST},
                    BadMap{"around", 0x8000, 0x20000, 0, 3, true, EEXIST},
                    BadMap{"same place, other offset", 0x10000, 0x10000, 0x1000, 3, true, EEXIST},
                    BadMap{"same place, other rights", 0x10000, 0x10000, 0, 1, true, EEXIST},
                    BadMap{"same place, no file", 0x10000, 0x10000, 0, 3, false, EEXIST}));

TEST_F(DmaMapTest, IdenticalMapIsAccepted) {
    ASSERT_EQ(map(0x1000, 0x1000, &file_), 0);

    EXPECT_EQ(map(0x1000, 0x1000, &file_), 0);

    EXPECT_EQ(map_.size(), 1U);
    EXPECT_EQ(unmap(0x1000, 0x1000), 0);
}

TEST_F(DmaMapTest, LastPageOfTheAddressSpaceCanBeMapped) {
    EXPECT_EQ(map(~0ULL - 0xfff, 0x1000, &file_), 0);
    EXPECT_NE(at(~0ULL, 1), nullptr);
}

TEST_F(DmaMapTest, ReadOnlyFileForWritableMapIsRefused) {
    const UniqueFd reader(
        ::open(("/proc/self/fd/" + std::to_string(file_.get())).c_str(), O_RDONLY | O_CLOEXEC));

    EXPECT_EQ(map(0, 0x1000, &reader), EACCES);
    EXPECT_EQ(map(0, 0x1000, &reader, 0, 1), 0);
}

TEST_F(DmaMapTest, DeviceFileBecomesUnreachableMemory) {
    const UniqueFd device(::open("/dev/zero", O_RDWR | O_CLOEXEC));

    EXPECT_EQ(map(0, 0x1000, &device), 0);
    EXPECT_EQ(at(0), nullptr);
    EXPECT_EQ(map(0x1000, 0x1000, &device, 0, 7), EINVAL) << "unless mapping it is a must";
}

TEST_F(DmaMapTest, UnmapMustMatchExactly) {
    ASSERT_EQ(map(0x1000, 0x2000, &file_), 0);

    EXPECT_EQ(unmap(0x1000, 0x1000), ENOENT);
    EXPECT_EQ(unmap(0x2000, 0x1000), ENOENT);
    EXPECT_EQ(unmap(0, 0x4000), ENOENT);
    EXPECT_EQ(unmap(0x1000, 0x2000, 1), EINVAL);
    EXPECT_EQ(unmap(0x1000, 0x2000, 4), EINVAL);
    EXPECT_EQ(unmap(0x1000, 0x2000, w::DmaUnmap::kAll), EINVAL);
    EXPECT_EQ(unmap(0x1000, 0x2000), 0);
    EXPECT_EQ(unmap(0x1000, 0x2000), ENOENT);
    EXPECT_EQ(at(0x1000), nullptr);
}

TEST_F(DmaMapTest, UnmapAllEmptiesTheMap) {
    for (std::uint64_t i = 0; i < 64; ++i) {
        ASSERT_EQ(map(i * 0x2000, 0x1000, &file_, i * 0x1000), 0);
    }

    EXPECT_EQ(unmap(0, 0, w::DmaUnmap::kAll), 0);

    EXPECT_EQ(map_.size(), 0U);
    EXPECT_EQ(at(0x2000), nullptr);
    EXPECT_EQ(counters_.dma_unmaps.value(), 64U);
}

TEST_F(DmaMapTest, BadArgszIsRefused) {
    auto map_request = *read_value<w::DmaMap>(map_payload(0, 0x1000));
    map_request.argsz.set(31);
    auto unmap_request = *read_value<w::DmaUnmap>(unmap_payload(0, 0x1000));
    unmap_request.argsz.set(23);

    EXPECT_EQ(map_.map(map_request, UniqueFd())->reason, Reject::Argsz);
    EXPECT_EQ(map_.unmap(unmap_request)->reason, Reject::Argsz);
    unmap_request.argsz.set(kMaxDataTransfer + 1);
    EXPECT_EQ(map_.unmap(unmap_request)->reason, Reject::Argsz);
}

TEST_F(DmaMapTest, AllAdvertisedMapsFitAndOneMoreDoesNot) {
    for (std::uint64_t i = 0; i < kMaxDmaMaps; ++i) {
        ASSERT_EQ(map(i * 0x2000, 0x1000, nullptr), 0);
    }

    EXPECT_EQ(map(kMaxDmaMaps * 0x2000, 0x1000, nullptr), ENOSPC);
    EXPECT_EQ(unmap(0x2000, 0x1000), 0);
    EXPECT_EQ(map(kMaxDmaMaps * 0x2000, 0x1000, nullptr), 0);
}

TEST_F(DmaMapTest, FirmwareStormCostsOneMappingPerProtection) {
    // The PAM dance of SeaBIOS on q35: all RAM goes and comes back cut in pieces, several times.
    ASSERT_EQ(map(0, 0x100000, &file_), 0);
    std::byte* const first = at(0x50000);
    for (int i = 0; i < 5; ++i) {
        ASSERT_EQ(unmap(0, 0x100000), 0);
        ASSERT_EQ(map(0, 0xc0000, &file_), 0);
        ASSERT_EQ(map(0xc0000, 0x20000, &file_, 0xc0000, 1), 0);
        ASSERT_EQ(map(0xe0000, 0x20000, &file_, 0xe0000), 0);
        EXPECT_EQ(at(0x50000), first) << "the same mapping";
        ASSERT_EQ(unmap(0, 0xc0000), 0);
        ASSERT_EQ(unmap(0xc0000, 0x20000), 0);
        ASSERT_EQ(unmap(0xe0000, 0x20000), 0);
        ASSERT_EQ(map(0, 0x100000, &file_), 0);
    }

    EXPECT_LE(map_.files().files(), 2U);
}

TEST_F(DmaMapTest, UnusedFileGoesAfterAGracePeriod) {
    ASSERT_EQ(map(0, 0x1000, &file_), 0);
    ASSERT_EQ(unmap(0, 0x1000), 0);
    loop_.run_once(false);
    EXPECT_EQ(map_.files().files(), 1U);

    clock_.advance(kUnusedFileGrace);
    loop_.run_once(false);

    EXPECT_EQ(map_.files().files(), 0U);
}

TEST_F(DmaMapTest, ClearUnmapsAtOnce) {
    ASSERT_EQ(map(0, 0x1000, &file_), 0);

    map_.clear();

    EXPECT_EQ(map_.files().files(), 0U);
    EXPECT_EQ(map_.size(), 0U);
    EXPECT_EQ(at(0), nullptr);
}

TEST_F(DmaMapTest, NothingIsReachableWhileDmaIsOff) {
    ASSERT_EQ(map(0, 0x1000, &file_), 0);

    map_.memory().set_enabled(false);

    EXPECT_EQ(at(0), nullptr);
}

TEST_F(DmaMapTest, TooManyFilesAreRefused) {
    for (std::uint64_t i = 0; i < kMaxFiles; ++i) {
        const UniqueFd file = memory_file(0x1000);
        ASSERT_EQ(map(i * 0x1000, 0x1000, &file), 0);
    }
    const UniqueFd file = memory_file(0x1000);

    EXPECT_EQ(map(kMaxFiles * 0x1000, 0x1000, &file), ENOSPC);
}

}  // namespace
}  // namespace ernic::vfio_user
