// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/range.hpp"

namespace ernic::mem {

/// A guest bus address (IO virtual address: what the guest's driver hands to a device). Never a host address.
struct Iova {
    std::uint64_t value = 0;

    /// Fails: nullopt when the sum passes 2^64.
    [[nodiscard]] constexpr std::optional<Iova> plus(std::uint64_t offset) const {
        if (offset > UINT64_MAX - value) {
            return std::nullopt;
        }
        return Iova{value + offset};
    }
    friend constexpr auto operator<=>(const Iova&, const Iova&) = default;
};

enum class Access : std::uint8_t { Read, Write };

/// One mapped piece of guest memory. `host` is null for memory that exists but cannot be reached (mapped
/// without fd).
struct Region {
    Range range;
    std::byte* host = nullptr;
    bool readable = false;
    bool writable = false;
};

/// Host bytes of a guest range, in order; at most kCapacity pieces.
class SpanList {
  public:
    /// A 256 KiB fragment of 4 KiB pages touches at most 65 pages; the rest leaves room for SGE and region
    /// splits.
    static constexpr std::size_t kCapacity = 128;

    void clear() {
        count_ = 0;
        bytes_ = 0;
    }
    /// Adds a piece, merging it with the previous one when they touch. Fails: false when full.
    bool add(std::byte* data, std::size_t size) {
        if (size == 0) {
            return true;
        }
        if (count_ != 0 && spans_[count_ - 1].data + spans_[count_ - 1].size == data) {
            spans_[count_ - 1].size += size;
        } else if (count_ == kCapacity) {
            return false;
        } else {
            spans_[count_++] = {data, size};
        }
        bytes_ += size;
        return true;
    }

    struct Piece {
        std::byte* data;
        std::size_t size;
    };
    [[nodiscard]] const Piece* begin() const { return spans_; }
    [[nodiscard]] const Piece* end() const { return spans_ + count_; }
    [[nodiscard]] std::size_t count() const { return count_; }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }

  private:
    std::size_t count_ = 0;
    std::size_t bytes_ = 0;
    // Left uninitialised on purpose: lists live on the stack of the data path.
    Piece spans_[kCapacity];  // NOLINT(modernize-avoid-c-arrays)
};

/// Copies min(to.bytes(), from.bytes()) bytes piece by piece; returns how many. The two may overlap
/// (memmove).
std::size_t copy(const SpanList& to, const SpanList& from);
/// Copies the bytes of `from` that start at `offset`, as many as there are and fit; returns how many.
std::size_t copy(MutableBytes to, const SpanList& from, std::size_t offset = 0);

/// The only place where a guest address becomes host bytes. Holds the DMA map as published by its owner
/// (vfio_user::DmaMap); every lookup is checked with overflow-safe arithmetic against the current map, and
/// fails while DMA is disabled (bus mastering off). Thread: the device thread.
class GuestMemory {
  public:
    /// Replaces the whole map. `regions` must not overlap. The owner keeps the host memory mapped until the
    /// next publish() that no longer names it has returned.
    void publish(std::vector<Region> regions);

    /// The same for one region, without rebuilding a map of tens of thousands of entries. `region` must not
    /// overlap others.
    void insert(const Region& region);
    /// Takes out the region that starts at `start`; nothing happens when there is none.
    void erase(std::uint64_t start);

    /// Follows PCI COMMAND.BME: while false every lookup fails.
    void set_enabled(bool enabled) { enabled_ = enabled; }
    [[nodiscard]] bool enabled() const { return enabled_; }

    /// Changes whenever a cached host address may have become invalid; never repeats in a process.
    [[nodiscard]] std::uint64_t generation() const { return generation_; }

    /// Host address of [iova, iova + size) when it lies inside one region with the right access.
    /// Fails: nullptr (not mapped, no host memory, wrong access, crosses a region border, DMA disabled).
    [[nodiscard]] std::byte* at(Iova iova, std::size_t size, Access access) const {
        if (last_ < regions_.size() && enabled_) {
            const Region& region = regions_[last_];
            if (region.range.contains(iova.value, size) && usable(region, access)) {
                return region.host + (iova.value - region.range.start());
            }
        }
        return find(iova, size, access);
    }

    /// Appends the host bytes of [iova, iova + size), which may span adjacent regions. Fails: false, `out` is
    /// then unspecified.
    bool append(Iova iova, std::size_t size, Access access, SpanList& out) const;

    /// Copies out of / into guest memory, across region borders. Fails: false (a part may have been copied).
    bool read(Iova iova, MutableBytes into) const;
    bool write(Iova iova, Bytes from) const;

  private:
    static bool usable(const Region& region, Access access) {
        return region.host != nullptr && (access == Access::Read ? region.readable : region.writable);
    }
    [[nodiscard]] std::byte* find(Iova iova, std::size_t size, Access access) const;
    [[nodiscard]] const Region* region_of(std::uint64_t address) const;
    void changed();

    std::vector<Region> regions_;  // sorted by start
    mutable std::size_t last_ = 0;
    std::uint64_t generation_ = 0;
    bool enabled_ = false;
};

}  // namespace ernic::mem
