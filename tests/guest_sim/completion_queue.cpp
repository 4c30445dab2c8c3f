// SPDX-License-Identifier: MIT
#include "guest_sim/completion_queue.hpp"

#include <algorithm>
#include <atomic>
#include <bit>

#include "guest_sim/error.hpp"
#include "guest_sim/queue_pair.hpp"

namespace ernic::guest_sim {
namespace {

namespace w = wire::ionic_rdma;

/// Slots beyond what the application asked for (`ionic_rdma` 7.2 and rdma-core 65, IONIC_CQ_GRACE).
constexpr std::uint32_t kGrace = 100;
constexpr std::uint8_t kStrideLog2 = 5;
constexpr std::uint32_t kNobody = 0xffffff;
constexpr std::uint8_t kPageLog2 = 12;

}  // namespace

CompletionQueue::CompletionQueue(RdmaDriver& driver, const Options& options)
    : driver_(driver), dbid_(options.dbid), depth_(std::bit_ceil(options.entries + kGrace + 1)) {
    // A ring fills at least one page.
    depth_ = std::max<std::uint32_t>(depth_, kPage / w::kCqeSize);
    create(0, options.vector);
    create(1, options.vector);
}

void CompletionQueue::create(std::uint32_t udma, std::uint32_t vector) {
    HardwareQueue& queue = rings_[udma];
    queue.id = driver_.completion_queue_ids().take(udma);
    queue.events = &driver_.completion_events(vector, udma);
    queue.ring = driver_.card().ram().allocate(depth_ * w::kCqeSize);
    w::CreateCq command{};
    command.eq_id.set(queue.events->id());
    command.ring.depth_log2 = static_cast<std::uint8_t>(std::countr_zero(depth_));
    command.ring.stride_log2 = kStrideLog2;
    command.id_ver.set(queue.id);
    command.tbl_index.set(0xffffffff);
    command.dbid.set(dbid_);
    const std::size_t pages = queue.ring.size / kPage;
    if (dbid_ == 0 || pages == 1) {
        command.map_count.set(1);
        command.dma_addr.set(queue.ring.iova);
    } else {
        // A process's ring is described page by page, in a table that is gone after the command.
        const Buffer table = driver_.card().ram().allocate(pages * sizeof(le64));
        for (std::size_t i = 0; i < pages; ++i) {
            table.set(le64(queue.ring.iova + i * kPage), i * sizeof(le64));
        }
        command.ring.page_size_log2 = kPageLog2;
        command.map_count.set(static_cast<std::uint32_t>(pages));
        command.dma_addr.set(table.iova);
        driver_.command(w::AdminOp::CreateCq, command);
        table.fill(0xff);
        return;
    }
    driver_.command(w::AdminOp::CreateCq, command);
}

void CompletionQueue::destroy() {
    // The driver destroys the queue of udma 1 first.
    for (const std::uint32_t udma : {1U, 0U}) {
        driver_.command(w::AdminOp::DestroyCq, w::Destroy{le32(rings_[udma].id)});
        driver_.completion_queue_ids().release(rings_[udma].id);
    }
}

void CompletionQueue::ring(const HardwareQueue& queue, std::uint8_t ring, std::uint32_t index) {
    driver_.card().ring(
        dbid_, driver_.identity().completion_queues.type,
        w::Doorbell::make(queue.id, ring, static_cast<std::uint16_t>(index & (depth_ - 1))).value());
}

void CompletionQueue::acknowledge(HardwareQueue& queue) {
    if (acknowledging_ && queue.acknowledged != queue.consumer) {
        queue.acknowledged = queue.consumer;
        ring(queue, w::kRingConsumer, queue.consumer);
    }
}

void CompletionQueue::acknowledge() {
    for (HardwareQueue& queue : rings_) {
        acknowledge(queue);
    }
}

void CompletionQueue::reserve(std::uint32_t udma, std::uint32_t count) {
    HardwareQueue& queue = rings_[udma];
    queue.under_way += count;
    if (queue.under_way + (queue.consumer - queue.acknowledged) > capacity() - kGrace) {
        acknowledge(queue);
    }
}

void CompletionQueue::arm(bool solicited_only) {
    for (HardwareQueue& queue : rings_) {
        // The consumer index first: the device compares it to decide whether to fire at once.
        queue.acknowledged = queue.consumer;
        ring(queue, w::kRingConsumer, queue.consumer);
        if (solicited_only) {
            ring(queue, w::kRingArmSolicited, ++queue.solicited_arms);
        } else {
            ring(queue, w::kRingArm, ++queue.arms);
        }
    }
}

Event CompletionQueue::notification(std::uint32_t udma) const {
    return {w::EventType::Cq, static_cast<std::uint8_t>(w::CqEvent::Notify), rings_[udma].id};
}

Event CompletionQueue::error_event(std::uint32_t udma) const {
    return {w::EventType::Cq, static_cast<std::uint8_t>(w::CqEvent::Error), rings_[udma].id};
}

void CompletionQueue::queue_for_retirement(QueuePair& qp) {
    if (std::find(retiring_.begin(), retiring_.end(), qp.qpn()) == retiring_.end()) {
        retiring_.push_back(qp.qpn());
    }
}

std::uint32_t* CompletionQueue::readable(const HardwareQueue& queue, std::uint32_t position,
                                         std::uint32_t& word) const {
    std::byte* const slot = queue.ring.host + std::size_t{position & (depth_ - 1)} * w::kCqeSize;
    auto* const last = reinterpret_cast<std::uint32_t*>(slot + w::kCqeSize - sizeof(be32));
    word = byte_swap(std::atomic_ref<std::uint32_t>(*last).load(std::memory_order_acquire));
    const std::uint32_t color = (position & depth_) == 0 ? w::kCqeColor : 0;
    return (word & w::kCqeColor) == color ? last : nullptr;
}

void CompletionQueue::forget(std::uint32_t qpn) {
    std::erase(retiring_, qpn);
    for (const HardwareQueue& queue : rings_) {
        std::uint32_t word = 0;
        for (std::uint32_t at = queue.consumer; at != queue.consumer + depth_; ++at) {
            std::uint32_t* const last = readable(queue, at, word);
            if (last == nullptr) {
                break;
            }
            if (word >> 8U == qpn) {
                *last = byte_swap(word | kNobody << 8U);
            }
        }
    }
}

bool CompletionQueue::read_entry(HardwareQueue& queue, WorkCompletion& out, bool& produced) {
    produced = false;
    std::uint32_t word = 0;
    if (readable(queue, queue.consumer, word) == nullptr) {
        return false;
    }
    const Bytes entry(queue.ring.host + std::size_t{queue.consumer & (depth_ - 1)} * w::kCqeSize,
                      w::kCqeSize);
    ++queue.consumer;
    QueuePair* qp = driver_.queue_pair(word >> 8U);
    if (qp == nullptr) {
        return true;  // of a QP destroyed meanwhile
    }
    const bool error = (word & w::kCqeError) != 0;
    switch (static_cast<w::CqeType>(word >> 5U & 7U)) {
        case w::CqeType::Receive: {
            require(&qp->receive_cq() == this, "receive completion on a foreign CQ");
            const auto cqe = *read_value<w::ReceiveCqe>(entry);
            produced = qp->on_receive(cqe, error, out);
            if (!produced) {
                queue_for_retirement(*qp);
            }
            return true;
        }
        case w::CqeType::SendMsn:
        case w::CqeType::SendNpg: {
            require(&qp->send_cq() == this, "send completion on a foreign CQ");
            const auto cqe = *read_value<w::SendCqe>(entry);
            const Status status = error ? static_cast<Status>(cqe.status_length.get()) : Status::Ok;
            if (static_cast<w::CqeType>(word >> 5U & 7U) == w::CqeType::SendMsn) {
                qp->on_msn(cqe.msn.get(), status);
            } else {
                qp->on_npg(cqe.wqe_id, status);
            }
            queue_for_retirement(*qp);
            return true;
        }
        default:
            throw GuestError("completion of an unknown type: a real CQ would be stuck now");
    }
}

bool CompletionQueue::poll_one(WorkCompletion& out) {
    for (;;) {
        while (!retiring_.empty()) {
            QueuePair* qp = driver_.queue_pair(retiring_.back());
            if (qp != nullptr && ((&qp->send_cq() == this && qp->next_send(out)) ||
                                  (&qp->receive_cq() == this && qp->next_flushed_receive(out)))) {
                return true;
            }
            retiring_.pop_back();
        }
        bool produced = false;
        if (!read_entry(rings_[0], out, produced) && !read_entry(rings_[1], out, produced)) {
            return false;
        }
        if (produced) {
            return true;
        }
    }
}

std::size_t CompletionQueue::poll(std::span<WorkCompletion> out) {
    std::size_t count = 0;
    while (count < out.size() && poll_one(out[count])) {
        ++count;
    }
    return count;
}

WorkCompletion CompletionQueue::wait(std::chrono::nanoseconds patience) {
    WorkCompletion completion;
    const bool came = wait_until([&] { return poll(std::span(&completion, 1)) == 1; }, patience);
    require(came, "no completion came");
    return completion;
}

std::vector<WorkCompletion> CompletionQueue::wait_for(std::size_t count, std::chrono::nanoseconds patience) {
    std::vector<WorkCompletion> completions(count);
    std::size_t got = 0;
    wait_until(
        [&] {
            got += poll(std::span(completions).subspan(got));
            return got == count;
        },
        patience);
    if (got != count) {
        throw GuestError("only " + std::to_string(got) + " of " + std::to_string(count) +
                         " completions came");
    }
    return completions;
}

bool CompletionQueue::silent(std::chrono::milliseconds quiet) {
    WorkCompletion completion;
    return !wait_until([&] { return poll(std::span(&completion, 1)) == 1; }, quiet);
}

}  // namespace ernic::guest_sim
