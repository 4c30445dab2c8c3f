// SPDX-License-Identifier: MIT
#include "vfio_user/file_cache.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "vfio_user/test_support.hpp"

namespace ernic::vfio_user {
namespace {

using test::memory_file;

std::string proc_path(const UniqueFd& fd) {
    return "/proc/self/fd/" + std::to_string(fd.get());
}

TEST(FileCache, OneFileIsMappedOnceWhateverDescriptorNamesIt) {
    const UniqueFd file = memory_file(0x10000);
    const UniqueFd again(::dup(file.get()));
    FileCache cache;

    const auto low = cache.map(file.get(), 0, 0x1000, true);
    const auto high = cache.map(again.get(), 0x8000, 0x8000, true);

    ASSERT_TRUE(low.ok() && high.ok());
    EXPECT_EQ(low.value(), high.value());
    EXPECT_EQ(cache.files(), 1U);
}

TEST(FileCache, MappingReachesTheFile) {
    const UniqueFd file = memory_file(0x2000);
    const char letter = 'x';
    ASSERT_EQ(::pwrite(file.get(), &letter, 1, 0x1800), 1);
    FileCache cache;

    const auto mapped = cache.map(file.get(), 0x1000, 0x1000, false);

    ASSERT_TRUE(mapped.ok());
    EXPECT_EQ(*mapped.value()->at(0x1800), static_cast<std::byte>('x'));
}

TEST(FileCache, ReadOnlyAndWritableViewsAreSeparate) {
    const UniqueFd file = memory_file(0x1000);
    FileCache cache;

    const auto writable = cache.map(file.get(), 0, 0x1000, true);
    const auto readable = cache.map(file.get(), 0, 0x1000, false);

    ASSERT_TRUE(writable.ok() && readable.ok());
    EXPECT_NE(writable.value(), readable.value());
}

TEST(FileCache, ShortFileIsRefusedInsteadOfFaultingLater) {
    const UniqueFd file = memory_file(0x1800);
    FileCache cache;

    EXPECT_EQ(cache.map(file.get(), 0, 0x2000, true).error().code, Errc::OutOfRange);
    EXPECT_EQ(cache.map(file.get(), 0x2000, 0x1000, true).error().code, Errc::OutOfRange);
    EXPECT_EQ(cache.map(file.get(), ~0ULL - 0xfff, 0x2000, true).error().code, Errc::OutOfRange);
    EXPECT_EQ(cache.files(), 0U);
}

TEST(FileCache, GrownFileGetsASecondMappingThatCoversIt) {
    const UniqueFd file = memory_file(0x1000);
    FileCache cache;
    const auto before = cache.map(file.get(), 0, 0x1000, true);
    ASSERT_EQ(::ftruncate(file.get(), 0x4000), 0);

    const auto after = cache.map(file.get(), 0x3000, 0x1000, true);

    ASSERT_TRUE(after.ok());
    EXPECT_NE(before.value(), after.value());
}

TEST(FileCache, ReadOnlyDescriptorCannotBeMappedForWriting) {
    const UniqueFd file = memory_file(0x1000);
    const UniqueFd reader(::open(proc_path(file).c_str(), O_RDONLY | O_CLOEXEC));
    FileCache cache;

    EXPECT_EQ(cache.map(reader.get(), 0, 0x1000, true).error().code, Errc::PermissionDenied);
    EXPECT_TRUE(cache.map(reader.get(), 0, 0x1000, false).ok());
}

TEST(FileCache, WriteOnlyDescriptorCannotBeMapped) {
    const UniqueFd file = memory_file(0x1000);
    const UniqueFd writer(::open(proc_path(file).c_str(), O_WRONLY | O_CLOEXEC));
    FileCache cache;

    EXPECT_EQ(cache.map(writer.get(), 0, 0x1000, true).error().code, Errc::PermissionDenied);
}

TEST(FileCache, ThingsThatAreNotFilesAreNotMapped) {
    const UniqueFd zero(::open("/dev/zero", O_RDWR | O_CLOEXEC));
    FileCache cache;

    EXPECT_EQ(cache.map(zero.get(), 0, 0x1000, true).error().code, Errc::Unsupported);
}

TEST(FileCache, MappedMemfdCanNoLongerShrink) {
    const UniqueFd file = memory_file(0x2000);
    FileCache cache;
    const auto mapped = cache.map(file.get(), 0, 0x2000, true);

    EXPECT_EQ(::ftruncate(file.get(), 0x1000), -1);
}

TEST(FileCache, UnusedFilesStayUntilReleased) {
    const UniqueFd first = memory_file(0x1000);
    const UniqueFd second = memory_file(0x1000);
    FileCache cache;
    {
        const auto a = cache.map(first.get(), 0, 0x1000, true);
        const auto b = cache.map(second.get(), 0, 0x1000, true);
    }
    EXPECT_EQ(cache.unused(), 2U);

    cache.release_unused(1);
    EXPECT_EQ(cache.files(), 1U);
    const auto kept = cache.map(second.get(), 0, 0x1000, true);
    cache.release_unused(0);

    EXPECT_EQ(cache.files(), 1U);
    EXPECT_EQ(cache.unused(), 0U);
}

TEST(FileCache, MappingANewFileReleasesUnusedOnes) {
    const UniqueFd first = memory_file(0x1000);
    const UniqueFd second = memory_file(0x1000);
    FileCache cache;
    { const auto a = cache.map(first.get(), 0, 0x1000, true); }

    const auto b = cache.map(second.get(), 0, 0x1000, true);

    EXPECT_EQ(cache.files(), 1U);
}

TEST(FileCache, GiantSparseFileIsMappedOnlyWhereAsked) {
    const UniqueFd file = memory_file(0x1000);
    if (::ftruncate(file.get(), 1LL << 50) != 0) {
        GTEST_SKIP() << "this kernel has no files of 1 PiB";
    }
    FileCache cache;

    const auto mapped = cache.map(file.get(), 1ULL << 40, 0x10000, true);

    ASSERT_TRUE(mapped.ok());
    EXPECT_EQ(mapped.value()->range().length(), 0x10000U);
    *mapped.value()->at((1ULL << 40) + 5) = std::byte{1};
}

}  // namespace
}  // namespace ernic::vfio_user
