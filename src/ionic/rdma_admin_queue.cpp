// SPDX-License-Identifier: MIT
#include "ionic/rdma_admin_queue.hpp"

namespace ernic::ionic {

namespace rdma_wire = wire::ionic_rdma;

void RdmaAdminQueue::doorbell(std::uint16_t producer_index) {
    producer_ = consumer_ + ((producer_index - consumer_) & ring_.mask());
}

bool RdmaAdminQueue::fetch() {
    const MutableBytes first = MutableBytes(slots_).first(rdma_wire::kAdminSlotSize);
    const MutableBytes second = MutableBytes(slots_).last(rdma_wire::kAdminSlotSize);
    if (!ring_.read(objects_.memory(), consumer_, first)) {
        consumer_ = producer_;
        return false;
    }
    header_ = *read_value<rdma_wire::AdminHeader>(first);
    const std::size_t length = header_.length.get();
    used_ = 1;
    body_size_.reset();
    if (length <= rdma_wire::kMaxAdminBody) {
        used_ = sizeof(header_) + length > rdma_wire::kAdminSlotSize ? 2 : 1;
        if (used_ > producer_ - consumer_) {
            // The doorbell covers only the first half: the rest will be rung for.
            return false;
        }
        if (used_ == 1 || ring_.read(objects_.memory(), consumer_ + 1, second)) {
            body_size_ = length;
        }
    }
    return true;
}

RdmaAdminQueue::Progress RdmaAdminQueue::step() {
    const CompletionQueue* cq = objects_.completion_queue(cq_id_);
    // The completion ring is smaller than the command ring: wait for the host to read rather than overrun it.
    if (producer_ == consumer_ || cq == nullptr || cq->space() == 0) {
        return Progress::Idle;
    }
    if (!running_ && !fetch()) {
        return Progress::Idle;
    }
    auto status = rdma_wire::AdminStatus::MessageTooBig;
    if (body_size_) {
        const auto outcome = commands_.run(static_cast<rdma_wire::AdminOp>(header_.op),
                                           Bytes(slots_).subspan(sizeof(header_), *body_size_), tables_);
        running_ = !outcome;
        if (running_) {
            return Progress::Partial;
        }
        status = *outcome;
        tables_ = {};
    }
    objects_.counters().admin_commands.add();
    if (status != rdma_wire::AdminStatus::Ok) {
        objects_.counters().admin_errors.add();
        log_.warn_limited(limiter_, "admin command op={} failed status={}", header_.op,
                          static_cast<std::uint32_t>(status));
    }
    rdma_wire::AdminCqe cqe{};
    cqe.command_index.set(static_cast<std::uint16_t>(consumer_ & ring_.mask()));
    cqe.command_op = header_.op;
    cqe.status_length.set(static_cast<std::uint32_t>(status));
    consumer_ += used_;
    objects_.push(cq_id_, mutable_bytes_of(cqe),
                  rdma_wire::cqe_flags(id_, rdma_wire::CqeType::Admin, status != rdma_wire::AdminStatus::Ok),
                  true);
    return Progress::Done;
}

}  // namespace ernic::ionic
