// SPDX-License-Identifier: MIT
#include "rdma/memory_region.hpp"

#include <utility>

#include "base/range.hpp"

namespace ernic::rdma {
namespace {

constexpr std::uint32_t index_of(std::uint32_t key) {
    return key >> 8U;
}

bool allows(const AccessRights& rights, Use use) {
    switch (use) {
        case Use::LocalRead:
            return true;
        case Use::LocalWrite:
            return rights.local_write;
        case Use::RemoteRead:
            return rights.remote_read;
        case Use::RemoteWrite:
            return rights.remote_write;
        case Use::RemoteAtomic:
            return rights.remote_atomic;
    }
    return false;
}

constexpr bool is_remote(Use use) {
    return use != Use::LocalRead && use != Use::LocalWrite;
}

constexpr mem::Access access_of(Use use) {
    return use == Use::LocalRead || use == Use::RemoteRead ? mem::Access::Read : mem::Access::Write;
}

}  // namespace

MemoryTable::MemoryTable(mem::GuestMemory& memory, std::uint32_t count, std::uint64_t page_entries)
    : memory_(memory), regions_(count), page_entries_limit_(page_entries) {
}

MemoryRegion* MemoryTable::at(std::uint32_t key) const {
    return regions_.at(index_of(key));
}

bool MemoryTable::reserve(std::size_t entries) {
    if (entries > page_entries_limit_ - page_entries_used_) {
        return false;
    }
    page_entries_used_ += entries;
    return true;
}

bool MemoryTable::can_create(std::uint32_t key, std::size_t entries) const {
    const std::uint32_t index = index_of(key);
    return index != 0 && regions_.free(index) && entries <= page_entries_limit_ - page_entries_used_;
}

bool MemoryTable::create(std::uint32_t key, MemoryRegion region) {
    if (!can_create(key, region.pages.entries())) {
        return false;
    }
    page_entries_used_ += region.pages.entries();
    region.tag = static_cast<std::uint8_t>(key);
    region.serial = next_serial_++;
    return regions_.put(index_of(key), std::make_unique<MemoryRegion>(std::move(region)));
}

void MemoryTable::destroy(std::uint32_t key) {
    if (const MemoryRegion* region = at(key)) {
        page_entries_used_ -= region->pages.entries();
        regions_.remove(index_of(key));
    }
}

void MemoryTable::clear() {
    incoming_.reset();
    regions_.clear();
    page_entries_used_ = 0;
}

bool MemoryTable::give_back() {
    const bool more = regions_.sweep(kSlotsPerSweep);
    return tables_.trim(1) || more;
}

KeyVerdict MemoryTable::find(const User& user, std::uint32_t key, std::uint64_t va, std::uint64_t length,
                             Use use, const MemoryRegion*& region) const {
    const MemoryRegion* found = at(key);
    if (found == nullptr || !found->valid || found->tag != static_cast<std::uint8_t>(key)) {
        return KeyVerdict::BadKey;
    }
    if (found->is_window() && !is_remote(use)) {
        return KeyVerdict::BadKey;
    }
    // The QP number of a type 2 window may have been given to a QP of somebody else by now.
    if (found->pd != user.pd || (found->kind == MemoryRegion::Kind::WindowType2 && found->qpn != user.qpn)) {
        return KeyVerdict::WrongPd;
    }
    const auto range = Range::make(found->rights.zero_based ? 0 : found->va, found->length);
    if (!range || !range->contains(va, length)) {
        return KeyVerdict::OutOfRange;
    }
    if (!allows(found->rights, use)) {
        return KeyVerdict::NoRight;
    }
    region = found;
    return KeyVerdict::Ok;
}

KeyVerdict MemoryTable::check(const User& user, std::uint32_t key, std::uint64_t va, std::uint64_t length,
                              Use use) const {
    if (key == 0 && user.privileged) {
        return Range::make(va, length) ? KeyVerdict::Ok : KeyVerdict::OutOfRange;
    }
    const MemoryRegion* region = nullptr;
    return find(user, key, va, length, use, region);
}

KeyVerdict MemoryTable::append(const User& user, std::uint32_t key, std::uint64_t va, std::uint64_t length,
                               Use use, mem::SpanList& out) const {
    if (key == 0 && user.privileged) {
        return memory_.append(mem::Iova{va}, length, access_of(use), out) ? KeyVerdict::Ok
                                                                          : KeyVerdict::NotMapped;
    }
    const MemoryRegion* region = nullptr;
    if (const KeyVerdict verdict = find(user, key, va, length, use, region); verdict != KeyVerdict::Ok) {
        return verdict;
    }
    std::uint64_t offset = region->rights.zero_based ? va : va - region->va;
    if (region->is_window()) {
        const MemoryRegion* parent = at(region->parent << 8U);
        if (parent == nullptr || !parent->valid || parent->serial != region->parent_serial) {
            return KeyVerdict::BadKey;
        }
        // A window's addresses are those of its region; a zero-based one counts from its own start.
        const std::uint64_t address = region->rights.zero_based ? region->va + va : va;
        offset = parent->rights.zero_based ? address : address - parent->va;
        region = parent;
    }
    return region->pages.append(memory_, region->page_offset + offset, length, access_of(use), out)
               ? KeyVerdict::Ok
               : KeyVerdict::NotMapped;
}

std::optional<CompletionStatus> MemoryTable::register_pages(const User& user, const WorkRequest& request,
                                                            std::uint32_t& copied) {
    copied = 0;
    MemoryRegion* region = at(request.immediate_or_key);
    if (region == nullptr || region->kind != MemoryRegion::Kind::FastRegister || region->pd != user.pd ||
        !Range::make(request.remote_va, request.length)) {
        return CompletionStatus::MemoryManagement;
    }
    mem::PageList pages = mem::PageList::contiguous(request.table);
    if (request.map_count > kMaxTableEntries) {
        return CompletionStatus::MemoryManagement;
    }
    if (request.map_count > 1) {
        // A repeated registration gives the old pages back first, so that it cannot fail for its own sake.
        const std::uint64_t others = page_entries_used_ - region->pages.entries();
        if (request.map_count > page_entries_limit_ - others) {
            return CompletionStatus::MemoryManagement;
        }
        if (incoming_ && incoming_->qpn != user.qpn) {
            return std::nullopt;
        }
        if (!incoming_) {
            auto table = mem::TableCopy::begin(memory_, request.table, request.map_count,
                                               request.page_size_log2, tables_);
            if (!table) {
                return CompletionStatus::MemoryManagement;
            }
            incoming_.emplace(Incoming{user.qpn, std::move(*table)});
        }
        const std::size_t before = incoming_->table.copied();
        // The guest can change a posted request while it is being executed.
        if (incoming_->table.size() != request.map_count ||
            !incoming_->table.advance(memory_, kTableEntriesAtOnce)) {
            return CompletionStatus::MemoryManagement;
        }
        copied = static_cast<std::uint32_t>(incoming_->table.copied() - before);
        if (!incoming_->table.complete()) {
            return std::nullopt;
        }
        pages = std::move(incoming_->table).take();
        incoming_.reset();
        if (request.page_offset >= pages.page_size()) {
            return CompletionStatus::MemoryManagement;
        }
    }
    page_entries_used_ = page_entries_used_ - region->pages.entries() + pages.entries();
    region->pages = std::move(pages);
    region->page_offset = request.map_count > 1 ? request.page_offset : 0;
    region->va = request.remote_va;
    region->length = request.length;
    region->rights = request.rights;
    region->tag = request.new_tag;
    region->serial = next_serial_++;
    region->valid = true;
    return CompletionStatus::Success;
}

void MemoryTable::abandon(std::uint32_t qpn) {
    if (incoming_ && incoming_->qpn == qpn) {
        incoming_.reset();
    }
}

CompletionStatus MemoryTable::invalidate(const User& user, std::uint32_t key) {
    MemoryRegion* region = at(key);
    if (region == nullptr || region->tag != static_cast<std::uint8_t>(key)) {
        return CompletionStatus::MemoryManagement;
    }
    if (region->pd != user.pd) {
        return CompletionStatus::MemoryManagement;
    }
    switch (region->kind) {
        case MemoryRegion::Kind::FastRegister:
            break;
        case MemoryRegion::Kind::WindowType2:
            if (region->valid && region->qpn != user.qpn) {
                return CompletionStatus::MemoryManagement;
            }
            break;
        case MemoryRegion::Kind::User:
        case MemoryRegion::Kind::WindowType1:
            return CompletionStatus::MemoryManagement;
    }
    region->valid = false;
    return CompletionStatus::Success;
}

CompletionStatus MemoryTable::bind_window(const User& user, const WorkRequest& request) {
    MemoryRegion* window = at(request.immediate_or_key);
    if (window == nullptr || !window->is_window() || window->pd != user.pd) {
        return CompletionStatus::MemoryManagement;
    }
    const bool type2 = window->kind == MemoryRegion::Kind::WindowType2;
    // InfiniBand 10.6.7.2.4: a type 2 window must be invalid when it is bound.
    if (type2 != request.window_type2 || (type2 && window->valid)) {
        return CompletionStatus::MemoryManagement;
    }
    if (request.length == 0) {
        if (type2) {
            return CompletionStatus::MemoryManagement;
        }
        window->valid = false;
        window->tag = request.new_tag;
        return CompletionStatus::Success;
    }
    const MemoryRegion* parent = at(request.lkey);
    if (parent == nullptr || parent->is_window() || !parent->valid ||
        parent->tag != static_cast<std::uint8_t>(request.lkey) || parent->pd != user.pd ||
        !parent->rights.window_bind) {
        return CompletionStatus::MemoryManagement;
    }
    const auto range = Range::make(parent->rights.zero_based ? 0 : parent->va, parent->length);
    if (!range || !range->contains(request.remote_va, request.length)) {
        return CompletionStatus::MemoryManagement;
    }
    if ((request.rights.remote_write || request.rights.remote_atomic) && !parent->rights.local_write) {
        return CompletionStatus::MemoryManagement;
    }
    window->parent = index_of(request.lkey);
    window->parent_serial = parent->serial;
    window->qpn = type2 ? user.qpn : 0;
    window->va = request.remote_va;
    window->length = request.length;
    window->rights = request.rights;
    window->tag = request.new_tag;
    window->valid = true;
    return CompletionStatus::Success;
}

}  // namespace ernic::rdma
