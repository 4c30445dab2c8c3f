// SPDX-License-Identifier: MIT
#include "ionic/cq_writer.hpp"

#include <cstring>

namespace ernic::ionic {

namespace rdma_wire = wire::ionic_rdma;

CompletionQueue::Outcome CompletionQueue::push(MutableBytes entry, std::uint32_t flags, bool solicited) {
    if (dead_) {
        return Outcome::Dead;
    }
    const std::uint32_t color = (producer_ / ring_.depth()) % 2 == 0 ? rdma_wire::kCqeColor : 0U;
    const be32 word(flags | color);
    std::memcpy(entry.data() + rdma_wire::kCqeSize - sizeof(word), &word, sizeof(word));
    if (space() == 0 || !ring_.publish(memory_, producer_, entry.first(rdma_wire::kCqeSize))) {
        dead_ = true;
        return Outcome::Overflow;
    }
    ++producer_;
    if (solicited || (flags & rdma_wire::kCqeError) != 0) {
        solicited_end_ = producer_;
        if (armed_solicited_) {
            armed_solicited_ = false;
            armed_any_ = false;
            return Outcome::Notify;
        }
    }
    if (armed_any_) {
        armed_any_ = false;
        return Outcome::Notify;
    }
    return Outcome::Written;
}

bool CompletionQueue::doorbell(std::uint8_t ring, std::uint16_t index) {
    switch (ring) {
        case rdma_wire::kRingConsumer: {
            const std::uint32_t read = (index - consumer_) & ring_.mask();
            // A host that claims more than was written has read everything.
            consumer_ += std::min(read, producer_ - consumer_);
            return false;
        }
        case rdma_wire::kRingArm:
            if (producer_ != consumer_) {
                return true;
            }
            armed_any_ = true;
            return false;
        case rdma_wire::kRingArmSolicited:
            if (static_cast<std::int32_t>(solicited_end_ - consumer_) > 0) {
                return true;
            }
            armed_solicited_ = true;
            return false;
        default:
            return false;
    }
}

}  // namespace ernic::ionic
