// SPDX-License-Identifier: MIT
#include "mem/guest_memory.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace ernic::mem {
namespace {

// Process-wide, so that two devices on one thread can never confuse their caches.
std::atomic<std::uint64_t> next_generation{1};

}  // namespace

std::size_t copy(const SpanList& to, const SpanList& from) {
    std::size_t copied = 0;
    const SpanList::Piece* target = to.begin();
    const SpanList::Piece* source = from.begin();
    std::size_t target_used = 0;
    std::size_t source_used = 0;
    while (target != to.end() && source != from.end()) {
        const std::size_t size = std::min(target->size - target_used, source->size - source_used);
        std::memmove(target->data + target_used, source->data + source_used, size);
        copied += size;
        target_used += size;
        source_used += size;
        if (target_used == target->size) {
            ++target;
            target_used = 0;
        }
        if (source_used == source->size) {
            ++source;
            source_used = 0;
        }
    }
    return copied;
}

std::size_t copy(MutableBytes to, const SpanList& from, std::size_t offset) {
    const std::size_t wanted = to.size();
    for (const SpanList::Piece& piece : from) {
        if (to.empty()) {
            break;
        }
        const std::size_t skipped = std::min(offset, piece.size);
        offset -= skipped;
        const std::size_t size = std::min(piece.size - skipped, to.size());
        std::memcpy(to.data(), piece.data + skipped, size);
        to = to.subspan(size);
    }
    return wanted - to.size();
}

void GuestMemory::publish(std::vector<Region> regions) {
    std::sort(regions.begin(), regions.end(),
              [](const Region& a, const Region& b) { return a.range.start() < b.range.start(); });
    regions_ = std::move(regions);
    changed();
}

void GuestMemory::insert(const Region& region) {
    const auto place =
        std::lower_bound(regions_.begin(), regions_.end(), region.range.start(),
                         [](const Region& r, std::uint64_t start) { return r.range.start() < start; });
    regions_.insert(place, region);
    changed();
}

void GuestMemory::erase(std::uint64_t start) {
    const auto found = std::lower_bound(regions_.begin(), regions_.end(), start,
                                        [](const Region& r, std::uint64_t s) { return r.range.start() < s; });
    if (found != regions_.end() && found->range.start() == start) {
        regions_.erase(found);
        changed();
    }
}

void GuestMemory::changed() {
    last_ = 0;
    generation_ = next_generation.fetch_add(1, std::memory_order_relaxed);
}

const Region* GuestMemory::region_of(std::uint64_t address) const {
    auto after = std::upper_bound(regions_.begin(), regions_.end(), address,
                                  [](std::uint64_t a, const Region& r) { return a < r.range.start(); });
    if (after == regions_.begin()) {
        return nullptr;
    }
    const Region& region = *std::prev(after);
    return region.range.contains(address, 1) ? &region : nullptr;
}

std::byte* GuestMemory::find(Iova iova, std::size_t size, Access access) const {
    if (!enabled_) {
        return nullptr;
    }
    const Region* region = region_of(iova.value);
    if (region == nullptr || !region->range.contains(iova.value, size) || !usable(*region, access)) {
        return nullptr;
    }
    last_ = static_cast<std::size_t>(region - regions_.data());
    return region->host + (iova.value - region->range.start());
}

bool GuestMemory::append(Iova iova, std::size_t size, Access access, SpanList& out) const {
    if (std::byte* whole = at(iova, size, access)) {
        return out.add(whole, size);
    }
    if (!enabled_ || !Range::make(iova.value, size)) {
        return false;
    }
    std::uint64_t address = iova.value;
    while (size != 0) {
        const Region* region = region_of(address);
        if (region == nullptr || !usable(*region, access)) {
            return false;
        }
        const std::uint64_t offset = address - region->range.start();
        const std::size_t piece = std::min<std::uint64_t>(size, region->range.length() - offset);
        if (!out.add(region->host + offset, piece)) {
            return false;
        }
        address += piece;
        size -= piece;
    }
    return true;
}

bool GuestMemory::read(Iova iova, MutableBytes into) const {
    if (const std::byte* whole = at(iova, into.size(), Access::Read)) {
        std::memcpy(into.data(), whole, into.size());
        return true;
    }
    SpanList source;
    if (!append(iova, into.size(), Access::Read, source)) {
        return false;
    }
    copy(into, source);
    return true;
}

bool GuestMemory::write(Iova iova, Bytes from) const {
    if (std::byte* whole = at(iova, from.size(), Access::Write)) {
        std::memcpy(whole, from.data(), from.size());
        return true;
    }
    SpanList target;
    if (!append(iova, from.size(), Access::Write, target)) {
        return false;
    }
    std::size_t done = 0;
    for (const SpanList::Piece& piece : target) {
        std::memcpy(piece.data, from.data() + done, piece.size);
        done += piece.size;
    }
    return true;
}

}  // namespace ernic::mem
