// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "nvmeof/buffer_pool.hpp"

namespace ernic::nvmeof {

/// The part of a log page that a host has asked for: the page is written from its start, and what lies in
/// [offset, offset + size) of it lands in the buffer. Thread: device.
class LogWindow {
  public:
    /// `buffer` holds at least `size` bytes.
    LogWindow(const Buffer& buffer, std::uint64_t offset, std::size_t size)
        : buffer_(buffer), offset_(offset), size_(size) {}

    /// The next bytes of the page.
    void add(Bytes data) {
        const std::uint64_t start = size_so_far_;
        size_so_far_ += data.size();
        const std::uint64_t from = std::max(start, offset_);
        const std::uint64_t end = size_ > UINT64_MAX - offset_ ? UINT64_MAX : offset_ + size_;
        const std::uint64_t to = std::min(size_so_far_, end);
        if (from < to) {
            buffer_.put(from - offset_, data.subspan(from - start, to - from));
            filled_ = to - offset_;
        }
    }
    /// Zeroes behind the end of the page.
    void pad() const {
        if (filled_ < size_) {
            buffer_.fill_zero(filled_, size_ - filled_);
        }
    }
    /// Bytes of the page so far.
    [[nodiscard]] std::uint64_t size() const { return size_so_far_; }

  private:
    const Buffer& buffer_;
    std::uint64_t offset_;
    std::size_t size_;
    std::uint64_t size_so_far_ = 0;
    std::size_t filled_ = 0;
};

}  // namespace ernic::nvmeof
