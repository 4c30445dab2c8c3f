// SPDX-License-Identifier: MIT
#include "ionic/rdma_admin_queue.hpp"

#include <array>

namespace ernic::ionic {

namespace rdma_wire = wire::ionic_rdma;

void RdmaAdminQueue::doorbell(std::uint16_t producer_index) {
    producer_ = consumer_ + ((producer_index - consumer_) & ring_.mask());
}

bool RdmaAdminQueue::step() {
    const CompletionQueue* cq = objects_.completion_queue(cq_id_);
    // The completion ring is smaller than the command ring: wait for the host to read rather than overrun it.
    if (producer_ == consumer_ || cq == nullptr || cq->space() == 0) {
        return false;
    }
    std::array<std::byte, 2 * rdma_wire::kAdminSlotSize> slots{};
    const MutableBytes first = MutableBytes(slots).first(rdma_wire::kAdminSlotSize);
    const MutableBytes second = MutableBytes(slots).last(rdma_wire::kAdminSlotSize);
    if (!ring_.read(objects_.memory(), consumer_, first)) {
        consumer_ = producer_;
        return false;
    }
    const auto header = *read_value<rdma_wire::AdminHeader>(first);
    const std::size_t length = header.length.get();
    auto status = rdma_wire::AdminStatus::MessageTooBig;
    std::uint32_t used = 1;
    if (length <= rdma_wire::kMaxAdminBody) {
        used = sizeof(header) + length > rdma_wire::kAdminSlotSize ? 2 : 1;
        if (used > producer_ - consumer_) {
            // The doorbell covers only the first half: the rest will be rung for.
            return false;
        }
        if (used == 1 || ring_.read(objects_.memory(), consumer_ + 1, second)) {
            status = commands_.run(static_cast<rdma_wire::AdminOp>(header.op),
                                   Bytes(slots).subspan(sizeof(header), length));
        }
    }
    objects_.counters().admin_commands.add();
    if (status != rdma_wire::AdminStatus::Ok) {
        objects_.counters().admin_errors.add();
        log_.warn_limited(limiter_, "admin command op={} failed status={}", header.op,
                          static_cast<std::uint32_t>(status));
    }
    rdma_wire::AdminCqe cqe{};
    cqe.command_index.set(static_cast<std::uint16_t>(consumer_ & ring_.mask()));
    cqe.command_op = header.op;
    cqe.status_length.set(static_cast<std::uint32_t>(status));
    consumer_ += used;
    objects_.push(cq_id_, mutable_bytes_of(cqe),
                  rdma_wire::cqe_flags(id_, rdma_wire::CqeType::Admin, status != rdma_wire::AdminStatus::Ok),
                  true);
    return true;
}

}  // namespace ernic::ionic
