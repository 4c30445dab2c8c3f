// SPDX-License-Identifier: MIT
#include "ionic/rdma_objects.hpp"

#include "ionic/rdma_queue_pair.hpp"

namespace ernic::ionic {

namespace rdma_wire = wire::ionic_rdma;

RdmaObjects::RdmaObjects(const RdmaProfile& profile, mem::GuestMemory& memory, Interrupts& interrupts,
                         rdma::Engine& engine)
    : profile_(profile),
      memory_(memory),
      interrupts_(interrupts),
      engine_(engine),
      event_queues_(profile.event_queues),
      completion_queues_(profile.completion_queues),
      queue_pairs_(profile.queue_pairs) {
}

RdmaObjects::~RdmaObjects() = default;

void RdmaObjects::clear() {
    engine_.clear();
    queue_pairs_.clear();
    completion_queues_.clear();
    event_queues_.clear();
}

bool RdmaObjects::give_back() {
    bool more = engine_.give_back();
    more = event_queues_.sweep(rdma::kSlotsPerSweep) || more;
    more = completion_queues_.sweep(rdma::kSlotsPerSweep) || more;
    // A queue pair is some twenty kilobytes in several pieces.
    return queue_pairs_.sweep(rdma::kSlotsPerSweep / 8) || more;
}

void RdmaObjects::add(std::uint32_t qpn, std::unique_ptr<RdmaQueuePair> qp) {
    queue_pairs_.put(qpn, std::move(qp));
}

void RdmaObjects::remove_completion_queue(std::uint32_t id) {
    if (const CompletionQueue* cq = completion_queue(id)) {
        if (EventQueue* eq = event_queue(cq->identity().eq_id); eq != nullptr && cq->notice.owed) {
            eq->forget(id);
        }
        engine_.memory_table().release(cq->page_entries());
        completion_queues_.remove(id);
    }
}

void RdmaObjects::remove_queue_pair(std::uint32_t qpn) {
    if (const RdmaQueuePair* qp = queue_pair(qpn)) {
        engine_.memory_table().release(qp->page_entries());
        queue_pairs_.remove(qpn);
    }
}

RdmaObjects::Push RdmaObjects::push(std::uint32_t cq_id, MutableBytes entry, std::uint32_t flags,
                                    bool solicited) {
    CompletionQueue* cq = completion_queue(cq_id);
    if (cq == nullptr) {
        return Push::Failed;
    }
    switch (cq->push(entry, flags, solicited)) {
        case CompletionQueue::Outcome::Notify:
            counters_.cqes.add();
            notify(*cq);
            return Push::Written;
        case CompletionQueue::Outcome::Written:
            counters_.cqes.add();
            return Push::Written;
        case CompletionQueue::Outcome::Overflow:
            counters_.cq_overflows.add();
            if (EventQueue* eq = event_queue(cq->identity().eq_id)) {
                post(*eq, *cq, rdma_wire::CqEvent::Error);
            }
            return Push::Failed;
        case CompletionQueue::Outcome::Dead:
            return Push::Failed;
    }
    return Push::Failed;
}

void RdmaObjects::notify(CompletionQueue& cq) {
    EventQueue* eq = event_queue(cq.identity().eq_id);
    if (eq == nullptr) {
        return;
    }
    if (!eq->unread(cq.notice.number)) {
        cq.notice = {post(*eq, cq, rdma_wire::CqEvent::Notify).value_or(0), false};
    } else if (!cq.notice.owed) {
        cq.notice.owed = true;
        eq->defer(cq.identity().id);
    }
}

std::optional<std::uint64_t> RdmaObjects::post(EventQueue& eq, const CompletionQueue& cq,
                                               rdma_wire::CqEvent event) {
    counters_.events.add();
    return eq.post(
        rdma_wire::event_word(rdma_wire::EventType::Cq, static_cast<std::uint8_t>(event), cq.identity().id));
}

void RdmaObjects::raise(std::uint32_t qpn, rdma_wire::QpEvent event) {
    // Event queues 0 and 1 carry the asynchronous events of udma 0 and 1; a bit of the QPN says which.
    const std::uint32_t udma = qpn >> profile_.udma_shift & 1U;
    if (EventQueue* eq = event_queue(udma)) {
        counters_.events.add();
        eq->post(rdma_wire::event_word(rdma_wire::EventType::Qp, static_cast<std::uint8_t>(event), qpn));
    }
}

void RdmaObjects::serviced(std::uint16_t vector) {
    for (std::uint32_t id = 0; id < event_queues_.size(); ++id) {
        EventQueue* eq = event_queues_.at(id);
        if (eq == nullptr || eq->vector() != vector) {
            continue;
        }
        eq->serviced();
        for (const std::uint32_t cq_id : eq->take_deferred()) {
            CompletionQueue& cq = *completion_queue(cq_id);
            cq.notice.owed = false;
            notify(cq);
        }
    }
}

}  // namespace ernic::ionic
