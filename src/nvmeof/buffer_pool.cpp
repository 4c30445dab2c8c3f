// SPDX-License-Identifier: MIT
#include "nvmeof/buffer_pool.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <new>

namespace ernic::nvmeof {
namespace {

std::size_t chunks_of(std::size_t size) {
    return whole_chunks(size) / BufferPool::kChunk;
}

}  // namespace

Buffer& Buffer::operator=(Buffer&& other) noexcept {
    if (this != &other) {
        reset();
        pool_ = std::exchange(other.pool_, nullptr);
        first_ = other.first_;
        size_ = std::exchange(other.size_, 0);
    }
    return *this;
}

void Buffer::reset() {
    if (pool_ != nullptr) {
        std::exchange(pool_, nullptr)->give_back(first_, size_);
        size_ = 0;
    }
}

MutableBytes Buffer::piece(std::size_t offset, std::size_t size) const {
    assert(offset < size_ && size <= size_ - offset);
    std::uint32_t index = first_;
    for (; offset >= BufferPool::kChunk; offset -= BufferPool::kChunk) {
        index = pool_->next_[index];
    }
    return {pool_->chunk(index) + offset, std::min(size, BufferPool::kChunk - offset)};
}

void Buffer::append(mem::SpanList& out, std::size_t offset, std::size_t size) const {
    while (size != 0) {
        const MutableBytes part = piece(offset, size);
        out.add(part.data(), part.size());
        offset += part.size();
        size -= part.size();
    }
}

void Buffer::put(std::size_t offset, Bytes data) const {
    while (!data.empty()) {
        const MutableBytes part = piece(offset, data.size());
        std::memcpy(part.data(), data.data(), part.size());
        offset += part.size();
        data = data.subspan(part.size());
    }
}

void Buffer::get(std::size_t offset, MutableBytes data) const {
    while (!data.empty()) {
        const MutableBytes part = piece(offset, data.size());
        std::memcpy(data.data(), part.data(), part.size());
        offset += part.size();
        data = data.subspan(part.size());
    }
}

void Buffer::fill_zero(std::size_t offset, std::size_t size) const {
    while (size != 0) {
        const MutableBytes part = piece(offset, size);
        std::memset(part.data(), 0, part.size());
        offset += part.size();
        size -= part.size();
    }
}

BufferPool::BufferPool(std::size_t bytes, WorkQueue& work) : work_(work), next_(chunks_of(bytes)) {
    void* memory = mmap(nullptr, next_.size() * kChunk, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        throw std::bad_alloc();
    }
    arena_ = static_cast<std::byte*>(memory);
    free_count_ = next_.size();
    for (std::uint32_t i = 0; i < next_.size(); ++i) {
        next_[i] = i + 1;
    }
}

BufferPool::~BufferPool() {
    munmap(arena_, bytes());
}

Buffer BufferPool::take(std::size_t size) {
    return waiting_.empty() ? cut(size) : Buffer();
}

Buffer BufferPool::take_again(std::size_t size, BufferWaiter& waiter) {
    Buffer buffer = cut(size);
    if (!buffer) {
        waiter.wanted_ = size;
        waiting_.add_first(waiter);
    }
    return buffer;
}

void BufferPool::wait(BufferWaiter& waiter, std::size_t size) {
    waiter.wanted_ = size;
    waiting_.add(waiter);
}

void BufferPool::wake() {
    // Only waiters are in there. What is promised to one may be more than there is when its turn comes: then
    // it waits again.
    std::size_t promised = 0;
    while (!waiting_.empty()) {
        promised += whole_chunks(static_cast<BufferWaiter&>(waiting_.front()).wanted_);
        if (promised > free_bytes()) {
            return;
        }
        work_.add(waiting_.pop());
    }
}

Buffer BufferPool::cut(std::size_t size) {
    const std::size_t count = chunks_of(std::max<std::size_t>(size, 1));
    assert(count <= next_.size());
    Buffer buffer;
    if (count > free_count_) {
        return buffer;
    }
    buffer.pool_ = this;
    buffer.first_ = free_;
    buffer.size_ = std::max<std::size_t>(size, 1);
    for (std::size_t i = 0; i < count; ++i) {
        free_ = next_[free_];
    }
    free_count_ -= count;
    return buffer;
}

void BufferPool::give_back(std::uint32_t first, std::size_t size) {
    const std::size_t count = chunks_of(size);
    std::uint32_t last = first;
    for (std::size_t i = 1; i < count; ++i) {
        last = next_[last];
    }
    next_[last] = free_;
    free_ = first;
    free_count_ += count;
    wake();
}

}  // namespace ernic::nvmeof
