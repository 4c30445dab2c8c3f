// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.hpp"
#include "ionic/lif.hpp"
#include "ionic/profile.hpp"
#include "ionic/rdma_device.hpp"
#include "metrics/registry.hpp"

namespace ernic::ionic {

/// BAR 2: one page per doorbell id, in it one 8-byte slot per queue type. Decodes a store and hands it to the
/// queue's family. Every guest notification passes here: no allocation, no log line, no lookup beyond an
/// array index. Thread: device. Fails: never; nonsense is counted and ignored, since user processes keep
/// ringing for queues that are gone.
class Doorbells {
  public:
    Doorbells(Lif& lif, std::uint32_t pages) : lif_(lif), pages_(pages) {}

    void attach_rdma(RdmaDevice* rdma) { rdma_ = rdma; }

    [[nodiscard]] std::uint64_t bar_size() const {
        return std::uint64_t{pages_} * wire::ionic::kDoorbellPageSize;
    }

    /// A guest store. Only aligned 8-byte stores ring.
    void store(std::uint64_t offset, Bytes data);

    /// The doorbell in `slot` of page `page`, from whatever source.
    void ring(std::uint32_t page, std::uint32_t slot, std::uint64_t value);

    void register_in(metrics::Registry& registry) const;

  private:
    Lif& lif_;
    RdmaDevice* rdma_ = nullptr;
    std::uint32_t pages_;
    std::array<metrics::Counter, kQueueTypes> rung_;
    metrics::Counter malformed_;
    metrics::Counter unknown_;
};

}  // namespace ernic::ionic
