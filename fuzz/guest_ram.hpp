// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.hpp"
#include "fuzz/input.hpp"
#include "mem/guest_memory.hpp"

namespace ernic::fuzz {

/// Memory as the guest's CPU sees it, which needs no DMA map.
class CpuMemory {
  public:
    virtual ~CpuMemory() = default;
    /// Addresses outside of memory are ignored (store) or read zero (load).
    virtual void store(std::uint64_t address, Bytes data) = 0;
    virtual void load(std::uint64_t address, MutableBytes out) const = 0;

    template <WireValue T>
    void put(std::uint64_t address, const T& value) {
        store(address, bytes_of(value));
    }
    template <WireValue T>
    [[nodiscard]] T get(std::uint64_t address) const {
        T value{};
        load(address, mutable_bytes_of(value));
        return value;
    }
};

/// The guest's memory: a handful of regions of every kind, at the addresses where arithmetic goes wrong.
///
///   low         0 .. 16 KiB                  a null pointer is a legal bus address
///   main        4 GiB .. + 512 KiB           rings, tables, buffers
///   tail        directly behind main         other host memory: ranges may cross the border
///   read_only   directly behind tail         must never change
///   write_only  8 GiB .. + 16 KiB            must never be read
///   no_host     12 GiB .. + 64 KiB           exists, but was mapped without a descriptor
///   top         the last 16 KiB below 2^64   sums overflow here
///
/// The host bytes of a region that is not mapped, and the gaps between regions, are poisoned for
/// AddressSanitizer: a touch of stale or foreign memory ends the run.
class GuestRam final : public CpuMemory {
  public:
    enum Id : std::uint8_t { kLow, kMain, kTail, kReadOnly, kWriteOnly, kNoHost, kTop, kRegions };

    static constexpr std::uint64_t kPage = 4096;
    static constexpr std::uint64_t kMainBase = std::uint64_t{4} << 30U;
    static constexpr std::uint64_t kMainSize = 512 * 1024;
    static constexpr std::uint64_t kTailSize = 64 * 1024;
    static constexpr std::uint64_t kReadOnlyBase = kMainBase + kMainSize + kTailSize;
    static constexpr std::uint64_t kReadOnlySize = 32 * 1024;
    static constexpr std::uint64_t kSmallSize = 16 * 1024;

    /// Zeroed memory, everything mapped. One exists at a time: the host bytes are reused from input to input.
    GuestRam();
    ~GuestRam() override;
    GuestRam(const GuestRam&) = delete;
    GuestRam& operator=(const GuestRam&) = delete;

    [[nodiscard]] mem::GuestMemory& memory() { return memory_; }

    void map(Id id);
    void unmap(Id id);
    [[nodiscard]] bool mapped(Id id) const { return mapped_[id]; }

    void store(std::uint64_t address, Bytes data) override;
    void load(std::uint64_t address, MutableBytes out) const override;

    /// An address a driver might use, or one that nobody should.
    static std::uint64_t address(Input& input);

    /// While bus mastering is off, nothing at all may be touched. Call after everything that can switch it.
    void follow_bus_master();
    /// Before a store to configuration space, which may switch it on and deliver what waited for that.
    void expect_access() { poison(false); }

    /// Fails the run when a byte of read-only memory has changed.
    void check_read_only() const;
    /// Whether `needle` lies anywhere in main memory. Not visible to the fuzzer, which would learn to write
    /// it.
    [[nodiscard]] bool contains(Bytes needle);

  private:
    void poison(bool dma_off);
    [[nodiscard]] std::byte* host(std::uint64_t address) const;

    std::array<bool, kRegions> mapped_{};
    mem::GuestMemory memory_;
};

}  // namespace ernic::fuzz
