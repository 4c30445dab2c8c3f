// SPDX-License-Identifier: MIT
#include "vfio_user/file_cache.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "vfio_user/limits.hpp"

namespace ernic::vfio_user {
namespace {

constexpr std::uint64_t kPage = 4096;

/// Huge page files can only be mapped in their own page size, which they report as block size.
std::uint64_t granule(const struct stat& status) {
    const auto block = static_cast<std::uint64_t>(status.st_blksize);
    return block > kPage && (block & (block - 1)) == 0 ? block : kPage;
}

/// `range` made larger to whole granules. Fails: nullopt when that passes 2^63, the largest file.
std::optional<Range> rounded(std::uint64_t offset, std::uint64_t size, std::uint64_t granule) {
    constexpr std::uint64_t kLargest = 1ULL << 63U;
    if (offset > kLargest || size > kLargest - offset || granule > kLargest) {
        return std::nullopt;
    }
    const std::uint64_t start = offset / granule * granule;
    const std::uint64_t end = (offset + size + granule - 1) / granule * granule;
    return Range::make(start, end - start);
}

std::byte* map_range(int fd, const Range& range, bool writable) {
    const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    void* data =
        ::mmap(nullptr, range.length(), protection, MAP_SHARED, fd, static_cast<off_t>(range.start()));
    if (data == MAP_FAILED) {
        return nullptr;
    }
    // Guest RAM belongs neither into our core dumps nor into children.
    ::madvise(data, range.length(), MADV_DONTDUMP);
    ::madvise(data, range.length(), MADV_DONTFORK);
    return static_cast<std::byte*>(data);
}

}  // namespace

MappedFile::~MappedFile() {
    ::munmap(data_, range_.length());
}

Result<std::shared_ptr<MappedFile>> FileCache::map(int fd, std::uint64_t offset, std::uint64_t size,
                                                   bool writable) {
    struct stat status {};
    if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        return Error{Errc::Unsupported, "not a regular file"};
    }
    const auto file_size = static_cast<std::uint64_t>(status.st_size);
    if (!Range::make(0, file_size)->contains(offset, size)) {
        return Error{Errc::OutOfRange,
                     fmt::format("file of {:#x} bytes is too short for {:#x} bytes at {:#x}", file_size, size,
                                 offset)};
    }
    for (const auto& file : files_) {
        if (file->is(status.st_dev, status.st_ino, writable) && file->range().contains(offset, size)) {
            return file;
        }
    }
    const int mode = ::fcntl(fd, F_GETFL) & O_ACCMODE;
    if (mode == O_WRONLY || (writable && mode != O_RDWR)) {
        return Error{Errc::PermissionDenied, "the file descriptor does not allow the access asked for"};
    }
    release_unused(0);
    if (files_.size() >= kMaxFiles) {
        return Error{Errc::NoSpace, fmt::format("more than {} files", kMaxFiles)};
    }
    // A file that shrinks under a mapping turns accesses into SIGBUS. QEMU seals its memfds against that; for
    // other clients we try. For files that cannot be sealed see BusErrors.
    ::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK);
    const std::uint64_t block = granule(status);
    std::optional<Range> range = rounded(0, file_size, block);
    std::byte* data = range ? map_range(fd, *range, writable) : nullptr;
    if (data == nullptr) {
        // A sparse giant may not fit the address space: the part asked for is enough.
        range = rounded(offset, size, block);
        data = range ? map_range(fd, *range, writable) : nullptr;
    }
    if (data == nullptr) {
        return Error{Errc::Io, fmt::format("mmap: {}", std::strerror(errno))};
    }
    files_.push_back(std::make_shared<MappedFile>(status.st_dev, status.st_ino, writable, *range, data));
    return files_.back();
}

void FileCache::release_unused(std::size_t keep) {
    std::size_t excess = unused();
    excess -= std::min(excess, keep);
    std::erase_if(files_, [&excess](const auto& file) {
        if (excess == 0 || file.use_count() > 1) {
            return false;
        }
        --excess;
        return true;
    });
}

std::size_t FileCache::unused() const {
    return static_cast<std::size_t>(
        std::count_if(files_.begin(), files_.end(), [](const auto& file) { return file.use_count() == 1; }));
}

}  // namespace ernic::vfio_user
