// SPDX-License-Identifier: MIT
#include "ionic/doorbell.hpp"

#include <string>

#include "wire/ionic_ethernet.hpp"

namespace ernic::ionic {

void Doorbells::store(std::uint64_t offset, Bytes data) {
    if (data.size() != wire::ionic::kDoorbellSize || offset % wire::ionic::kDoorbellSize != 0 ||
        offset >= bar_size()) {
        malformed_.add();
        return;
    }
    const auto page = static_cast<std::uint32_t>(offset / wire::ionic::kDoorbellPageSize);
    const auto slot =
        static_cast<std::uint32_t>(offset % wire::ionic::kDoorbellPageSize / wire::ionic::kDoorbellSize);
    ring(page, slot, read_value<le64>(data)->get());
}

void Doorbells::ring(std::uint32_t page, std::uint32_t slot, std::uint64_t value) {
    if (slot >= kQueueTypes) {
        unknown_.add();
        return;
    }
    rung_[slot].add();
    const auto type = static_cast<QueueType>(slot);
    if (type >= QueueType::RdmaAdmin) {
        if (rdma_ != nullptr) {
            rdma_->doorbell(static_cast<std::uint8_t>(type), page, value);
        } else {
            unknown_.add();
        }
    } else if (!lif_.doorbell(type, page, wire::ionic::Doorbell(value))) {
        unknown_.add();
    }
}

void Doorbells::register_in(metrics::Registry& registry) const {
    static constexpr std::array<const char*, kQueueTypes> kNames = {
        "admin", "rx", "tx", "rdma_admin", "rdma_send", "rdma_recv", "rdma_completion", "rdma_event"};
    for (std::size_t type = 0; type < kQueueTypes; ++type) {
        registry.add({std::string("ionic.doorbells.") + kNames[type], "doorbells",
                      "Doorbells of this queue type; far more than completions means small batches."},
                     rung_[type]);
    }
    registry.add({"ionic.doorbells.malformed", "doorbells", "Stores that were not 8 bytes wide and aligned."},
                 malformed_);
    registry.add(
        {"ionic.doorbells.unknown", "doorbells",
         "Doorbells for a queue that is not there, for example of a process that outlived its queues."},
        unknown_);
}

}  // namespace ernic::ionic
