// SPDX-License-Identifier: MIT
#include "fuzz/guest_ram.hpp"

#include <sanitizer/asan_interface.h>

#include <optional>

namespace ernic::fuzz {
namespace {

struct Spec {
    std::uint64_t base;
    std::uint64_t size;
    bool readable;
    bool writable;
    bool has_host;
};

constexpr std::array<Spec, GuestRam::kRegions> kSpecs = {{
    {0, GuestRam::kSmallSize, true, true, true},
    {GuestRam::kMainBase, GuestRam::kMainSize, true, true, true},
    {GuestRam::kMainBase + GuestRam::kMainSize, GuestRam::kTailSize, true, true, true},
    {GuestRam::kReadOnlyBase, GuestRam::kReadOnlySize, true, false, true},
    {std::uint64_t{8} << 30U, GuestRam::kSmallSize, false, true, true},
    {std::uint64_t{12} << 30U, 64 * 1024, true, true, false},
    {UINT64_MAX - GuestRam::kSmallSize + 1, GuestRam::kSmallSize, true, true, true},
}};

constexpr std::byte kReadOnlyFill{0xa5};

/// Host bytes of all regions, with a poisoned page around each.
constexpr std::uint64_t arena_size() {
    std::uint64_t size = GuestRam::kPage;
    for (const Spec& spec : kSpecs) {
        size += spec.has_host ? spec.size + GuestRam::kPage : 0;
    }
    return size;
}

alignas(4096) std::array<std::byte, arena_size()> arena;

std::byte* host_of(std::size_t id) {
    std::uint64_t at = GuestRam::kPage;
    for (std::size_t i = 0; i < id; ++i) {
        at += kSpecs[i].has_host ? kSpecs[i].size + GuestRam::kPage : 0;
    }
    return arena.data() + at;
}

/// Compares without telling the fuzzer what it would take to be equal.
__attribute__((no_sanitize("coverage"))) bool secretly_equal(const std::byte* data, Bytes wanted) {
    std::byte different{0};
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        different |= data[i] ^ wanted[i];
    }
    return different == std::byte{0};
}

/// The CPU does not care what is poisoned. Volatile, so that no checked memcpy is made of it.
__attribute__((no_sanitize("address", "coverage"))) void raw_copy(std::byte* to, const std::byte* from,
                                                                  std::size_t size) {
    volatile std::byte* target = to;
    const volatile std::byte* source = from;
    for (std::size_t i = 0; i < size; ++i) {
        target[i] = source[i];
    }
}

}  // namespace

GuestRam::GuestRam() {
    __asan_unpoison_memory_region(arena.data(), arena.size());
    for (std::size_t id = 0; id < kRegions; ++id) {
        if (kSpecs[id].has_host) {
            std::memset(host_of(id), id == kReadOnly ? static_cast<int>(kReadOnlyFill) : 0, kSpecs[id].size);
        }
    }
    for (std::uint8_t id = 0; id < kRegions; ++id) {
        map(static_cast<Id>(id));
    }
    poison(true);
}

GuestRam::~GuestRam() {
    __asan_unpoison_memory_region(arena.data(), arena.size());
}

void GuestRam::map(Id id) {
    if (mapped_[id]) {
        return;
    }
    const Spec& spec = kSpecs[id];
    mapped_[id] = true;
    memory_.insert({*Range::make(spec.base, spec.size), spec.has_host ? host_of(id) : nullptr, spec.readable,
                    spec.writable});
    follow_bus_master();
}

void GuestRam::unmap(Id id) {
    if (mapped_[id]) {
        mapped_[id] = false;
        memory_.erase(kSpecs[id].base);
        follow_bus_master();
    }
}

void GuestRam::follow_bus_master() {
    poison(!memory_.enabled());
}

void GuestRam::poison(bool dma_off) {
    __asan_poison_memory_region(arena.data(), arena.size());
    for (std::size_t id = 0; id < kRegions && !dma_off; ++id) {
        if (mapped_[id] && kSpecs[id].has_host) {
            __asan_unpoison_memory_region(host_of(id), kSpecs[id].size);
        }
    }
}

std::byte* GuestRam::host(std::uint64_t address) const {
    for (std::size_t id = 0; id < kRegions; ++id) {
        const Spec& spec = kSpecs[id];
        if (spec.has_host && Range::make(spec.base, spec.size)->contains(address, 1)) {
            return host_of(id) + (address - spec.base);
        }
    }
    return nullptr;
}

void GuestRam::store(std::uint64_t address, Bytes data) {
    std::byte* target = host(address);
    const bool read_only = address >= kReadOnlyBase && address - kReadOnlyBase < kReadOnlySize;
    // All of it in one region, or the page behind it would be hit.
    if (target != nullptr && !read_only && !data.empty() &&
        host(address + data.size() - 1) == target + data.size() - 1) {
        raw_copy(target, data.data(), data.size());
    }
}

void GuestRam::load(std::uint64_t address, MutableBytes out) const {
    const std::byte* source = host(address);
    if (source != nullptr && !out.empty() && host(address + out.size() - 1) == source + out.size() - 1) {
        raw_copy(out.data(), source, out.size());
    } else {
        std::fill(out.begin(), out.end(), std::byte{0});
    }
}

std::uint64_t GuestRam::address(Input& input) {
    const std::uint8_t kind = input.u8();
    switch (kind % 12U) {
        case 0:
        case 1:
        case 2:
        case 3:
            return kMainBase + kPage * input.below(kMainSize / kPage);
        case 4:
            return kMainBase + kPage * input.below(kMainSize / kPage) + input.u8();
        case 5:
            return kMainBase + input.below(kMainSize);
        case 6:  // across two host mappings
            return kMainBase + kMainSize - input.u8();
        case 7:  // from writable to read-only memory
            return kReadOnlyBase - input.u8();
        case 8:
            return kReadOnlyBase + input.below(kReadOnlySize);
        case 9: {  // somewhere else
            const Spec& spec = input.pick(kSpecs);
            return spec.base + input.u16() % spec.size;
        }
        case 10: {
            constexpr std::array<std::uint64_t, 8> kEdges = {UINT64_MAX,
                                                             0,
                                                             UINT64_MAX - 7,
                                                             std::uint64_t{1} << 63U,
                                                             UINT64_MAX - kPage + 1,
                                                             kSmallSize - 4,
                                                             kMainBase - 1,
                                                             kReadOnlyBase + kReadOnlySize};
            return input.pick(kEdges);
        }
        default:
            return input.u64();
    }
}

void GuestRam::check_read_only() const {
    std::array<std::byte, kReadOnlySize> now;
    load(kReadOnlyBase, now);
    require(std::all_of(now.begin(), now.end(), [](std::byte b) { return b == kReadOnlyFill; }),
            "read-only memory stays as it is");
}

bool GuestRam::contains(Bytes needle) {
    __asan_unpoison_memory_region(arena.data(), arena.size());
    const std::byte* at = host_of(kMain);
    const std::byte* const end = at + kMainSize - needle.size();
    bool found = false;
    while (at < end && !found) {
        const auto* next = static_cast<const std::byte*>(
            std::memchr(at, static_cast<int>(needle[0]), static_cast<std::size_t>(end - at)));
        if (next == nullptr) {
            break;
        }
        found = secretly_equal(next, needle);
        at = next + 1;
    }
    follow_bus_master();
    return found;
}

}  // namespace ernic::fuzz
