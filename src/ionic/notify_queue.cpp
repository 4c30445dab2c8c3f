// SPDX-License-Identifier: MIT
#include "ionic/notify_queue.hpp"

#include <atomic>
#include <cstring>

namespace ernic::ionic {

using wire::ionic::NotifyEvent;

bool NotifyQueue::post(NotifyEvent event) {
    const std::uint64_t slot = (next_id_ - 1) % wire::ionic::kNotifyEventCount;
    const auto address = config_.ring.plus(wire::ionic::kNotifyEventRingOffset + slot * sizeof(NotifyEvent));
    std::byte* target = address ? memory_.at(*address, sizeof(NotifyEvent), mem::Access::Write) : nullptr;
    // parse_queue_init() has seen to the alignment of the bus address; the host mapping is aligned to pages
    // as well unless a client maps memory at odd offsets, which no VMM does.
    if (target == nullptr || reinterpret_cast<std::uintptr_t>(target) % alignof(std::uint64_t) != 0) {
        return false;
    }
    event.event_id = le64(next_id_);
    const Bytes bytes = bytes_of(event);
    constexpr std::size_t kIdSize = sizeof event.event_id;
    std::uint64_t id = 0;
    std::memcpy(&id, bytes.data(), kIdSize);
    std::memcpy(target + kIdSize, bytes.data() + kIdSize, bytes.size() - kIdSize);
    // Paired with the driver's dma_rmb() between the id and the body (ionic 7.2, ionic_notifyq_service).
    std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(target))
        .store(id, std::memory_order_release);
    ++next_id_;
    if (config_.raises_interrupts) {
        interrupts_.post_completion(config_.interrupt);
    }
    return true;
}

}  // namespace ernic::ionic
