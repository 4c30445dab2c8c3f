// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "mem/guest_memory.hpp"
#include "nvmeof/work_queue.hpp"

namespace ernic::nvmeof {

class BufferPool;

/// Staging memory of one command: a chain of the pool's chunks, given back when destroyed.
class Buffer {
  public:
    Buffer() = default;
    Buffer(Buffer&& other) noexcept { *this = std::move(other); }
    Buffer& operator=(Buffer&& other) noexcept;
    ~Buffer() { reset(); }

    [[nodiscard]] explicit operator bool() const { return pool_ != nullptr; }
    /// Bytes asked for.
    [[nodiscard]] std::size_t size() const { return size_; }
    /// Appends the memory of [offset, offset + size). Precondition: inside size(), and `out` holds a whole
    /// buffer (kMaxTransfer) besides what it has.
    void append(mem::SpanList& out, std::size_t offset, std::size_t size) const;
    /// The memory at `offset` up to the end of its chunk, at most `size`.
    [[nodiscard]] MutableBytes piece(std::size_t offset, std::size_t size) const;
    void put(std::size_t offset, Bytes data) const;
    void get(std::size_t offset, MutableBytes data) const;
    void fill_zero(std::size_t offset, std::size_t size) const;
    void reset();

  private:
    friend class BufferPool;
    BufferPool* pool_ = nullptr;
    std::uint32_t first_ = 0;
    std::size_t size_ = 0;
};

/// Who waits for staging memory.
class BufferWaiter : public Work {
  private:
    friend class BufferPool;
    std::size_t wanted_ = 0;
};

/// A bounded arena of equal chunks, touched only as far as it is used. Thread: device.
class BufferPool {
  public:
    static constexpr std::size_t kChunk = 64U << 10U;

    /// Work that waits for memory is put into `work` when some comes back.
    BufferPool(std::size_t bytes, WorkQueue& work);
    ~BufferPool();
    BufferPool(const BufferPool&) = delete;
    BufferPool& operator=(const BufferPool&) = delete;

    /// Fails: an empty buffer when too little is free, or others wait already. Precondition: size is at most
    /// the pool's.
    [[nodiscard]] Buffer take(std::size_t size);
    /// As take(), for a waiter that has been woken; when it fails all the same, `waiter` waits again, before
    /// all others.
    [[nodiscard]] Buffer take_again(std::size_t size, BufferWaiter& waiter);
    /// `waiter` runs when there are `size` bytes and nobody came before it; it must then call take_again().
    void wait(BufferWaiter& waiter, std::size_t size);
    /// A waiter has left the pool's queue, or `work` before it could call take_again(): others may be next.
    void left() { wake(); }
    [[nodiscard]] std::size_t free_bytes() const { return free_count_ * kChunk; }
    [[nodiscard]] std::byte* arena() const { return arena_; }
    [[nodiscard]] std::size_t bytes() const { return next_.size() * kChunk; }

  private:
    friend class Buffer;
    [[nodiscard]] std::byte* chunk(std::uint32_t index) const { return arena_ + index * kChunk; }
    [[nodiscard]] Buffer cut(std::size_t size);
    void wake();
    void give_back(std::uint32_t first, std::size_t size);

    WorkQueue& work_;
    WorkQueue waiting_;
    std::byte* arena_ = nullptr;
    /// The chunk behind each, in its buffer or in the list of free ones.
    std::vector<std::uint32_t> next_;
    std::uint32_t free_ = 0;
    std::size_t free_count_ = 0;
};

/// `size` rounded up to whole chunks: what starts there in a buffer starts a chunk.
constexpr std::size_t whole_chunks(std::size_t size) {
    return (size + BufferPool::kChunk - 1) / BufferPool::kChunk * BufferPool::kChunk;
}

}  // namespace ernic::nvmeof
