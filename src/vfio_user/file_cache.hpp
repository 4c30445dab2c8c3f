// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/range.hpp"
#include "base/result.hpp"
#include "vfio_user/bus_errors.hpp"

namespace ernic::vfio_user {

/// A file (guest RAM, mostly) mapped once as a whole. Owns the mapping: unmapped when destroyed.
class MappedFile {
  public:
    /// `range` is what of the file is mapped, `data` where.
    MappedFile(dev_t device, ino_t inode, bool writable, Range range, std::byte* data)
        : device_(device),
          inode_(inode),
          writable_(writable),
          range_(range),
          data_(data),
          watched_(data, range.length()) {}
    ~MappedFile();
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    /// Host address of a file offset. Precondition: range().contains(offset, ...).
    [[nodiscard]] std::byte* at(std::uint64_t offset) const { return data_ + (offset - range_.start()); }
    [[nodiscard]] const Range& range() const { return range_; }
    /// Whether this maps that file. False for ever once the file was made shorter under the mapping.
    [[nodiscard]] bool is(dev_t device, ino_t inode, bool writable) const {
        return device_ == device && inode_ == inode && writable_ == writable && !watched_.replaced();
    }

  private:
    dev_t device_;
    ino_t inode_;
    bool writable_;
    Range range_;
    std::byte* data_;
    BusErrors::Watched watched_;
};

/// Keeps one mapping per (device, inode, protection), however many DMA maps cut the file up. Firmware unmaps
/// and remaps all guest RAM several times while a VM boots, each time with a fresh descriptor of the same
/// file; thanks to the cache that costs no mmap, and pages the process has touched stay in its page table. A
/// file without users stays for a while: see release_unused(). Thread: device.
class FileCache {
  public:
    /// The mapping that covers [offset, offset + size) of `fd`, which stays with the caller and may be closed
    /// afterwards. Fails: Unsupported (not a regular file; its size cannot be checked, so touching it could
    /// end in SIGBUS), OutOfRange (the file is too short), PermissionDenied (write wanted, descriptor
    /// read-only), NoSpace (too many files), Io (mmap failed).
    Result<std::shared_ptr<MappedFile>> map(int fd, std::uint64_t offset, std::uint64_t size, bool writable);

    /// Unmaps files nobody uses, the oldest mapping first, until at most `keep` of them remain.
    void release_unused(std::size_t keep);

    /// Mapped files, and those of them that nobody uses.
    [[nodiscard]] std::size_t files() const { return files_.size(); }
    [[nodiscard]] std::size_t unused() const;

  private:
    std::vector<std::shared_ptr<MappedFile>> files_;
};

}  // namespace ernic::vfio_user
