// SPDX-License-Identifier: MIT
#include "mem/table_pool.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

namespace ernic::mem {
namespace {

constexpr std::size_t kBlockBytes = TablePool::kBlockEntries * sizeof(le64);

}  // namespace

TablePool::~TablePool() {
    for (le64* block : idle_) {
        munmap(block, kBlockBytes);
    }
}

le64* TablePool::take() {
    if (!idle_.empty()) {
        le64* const block = idle_.back();
        idle_.pop_back();
        return block;
    }
    // Not from the heap, which would give back many freed blocks in one long system call.
    void* const block =
        mmap(nullptr, kBlockBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return block == MAP_FAILED ? nullptr : static_cast<le64*>(block);
}

void TablePool::give(std::vector<le64*>& blocks) {
    idle_.insert(idle_.end(), blocks.begin(), blocks.end());
    blocks.clear();
}

bool TablePool::trim(std::size_t blocks) {
    for (; blocks != 0 && idle_.size() > kKeep; --blocks) {
        munmap(idle_.back(), kBlockBytes);
        idle_.pop_back();
    }
    return idle_.size() > kKeep;
}

TableEntries::TableEntries(TablePool& pool, std::size_t size) : pool_(&pool), size_(size) {
    if (size <= TablePool::kShortTable) {
        short_.resize(size);
    } else {
        blocks_.reserve((size + TablePool::kBlockEntries - 1) / TablePool::kBlockEntries);
    }
}

TableEntries::~TableEntries() {
    if (!blocks_.empty()) {
        pool_->give(blocks_);
    }
}

TableEntries::TableEntries(TableEntries&& other) noexcept {
    swap(other);
}

TableEntries& TableEntries::operator=(TableEntries&& other) noexcept {
    TableEntries(std::move(other)).swap(*this);
    return *this;
}

void TableEntries::swap(TableEntries& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(size_, other.size_);
    short_.swap(other.short_);
    blocks_.swap(other.blocks_);
}

le64* TableEntries::room(std::size_t index, std::size_t& count) {
    count = std::min(count, size_ - index);
    if (!short_.empty()) {
        return short_.data() + index;
    }
    const std::size_t within = index % TablePool::kBlockEntries;
    if (index / TablePool::kBlockEntries == blocks_.size()) {
        le64* const block = pool_->take();
        if (block == nullptr) {
            return nullptr;
        }
        blocks_.push_back(block);
    }
    count = std::min(count, TablePool::kBlockEntries - within);
    return blocks_.back() + within;
}

}  // namespace ernic::mem
