// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "guest_sim/guest_ram.hpp"
#include "guest_sim/requests.hpp"
#include "wire/ionic_rdma.hpp"

namespace ernic::guest_sim {

inline constexpr std::uint16_t kLocalWrite = wire::ionic_rdma::kMrLocalWrite;
inline constexpr std::uint16_t kRemoteWrite = wire::ionic_rdma::kMrRemoteWrite;
inline constexpr std::uint16_t kRemoteRead = wire::ionic_rdma::kMrRemoteRead;
inline constexpr std::uint16_t kRemoteAtomic = wire::ionic_rdma::kMrRemoteAtomic;
inline constexpr std::uint16_t kWindowBind = wire::ionic_rdma::kMrWindowBind;
inline constexpr std::uint16_t kZeroBased = wire::ionic_rdma::kMrZeroBased;
inline constexpr std::uint16_t kAllAccess = kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic;

/// A registered memory region, a fast-register region or a memory window: a key and the addresses it is good
/// for.
struct Region {
    std::uint32_t key = 0;
    /// First address as the application sees it; differs from the bus address, as in any process.
    std::uint64_t va = 0;
    std::uint64_t length = 0;
    Buffer memory;

    [[nodiscard]] Sge sge(std::uint64_t offset, std::uint64_t size) const {
        return {va + offset, static_cast<std::uint32_t>(size), key};
    }
    [[nodiscard]] Sge sge() const { return sge(0, length); }
    /// The whole region as a list of one SGE.
    [[nodiscard]] SgeList list() const { return {sge()}; }
};

/// A page table of a region, for tests that want one of their own.
struct PageTable {
    Buffer memory;
    std::uint32_t pages = 0;
    std::uint8_t page_size_log2 = 12;
};

}  // namespace ernic::guest_sim
