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
    for (auto& qp : queue_pairs_) {
        qp.reset();
    }
    engine_.clear();
    for (auto& cq : completion_queues_) {
        cq.reset();
    }
    for (auto& eq : event_queues_) {
        eq.reset();
    }
}

void RdmaObjects::add(std::uint32_t qpn, std::unique_ptr<RdmaQueuePair> qp) {
    put(queue_pairs_, qpn, std::move(qp));
}

void RdmaObjects::remove_completion_queue(std::uint32_t id) {
    if (const CompletionQueue* cq = completion_queue(id)) {
        engine_.memory_table().release(cq->page_entries());
        completion_queues_[id].reset();
    }
}

void RdmaObjects::remove_queue_pair(std::uint32_t qpn) {
    if (const RdmaQueuePair* qp = queue_pair(qpn)) {
        engine_.memory_table().release(qp->page_entries());
        queue_pairs_[qpn].reset();
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
            notify(*cq, rdma_wire::CqEvent::Notify);
            return Push::Written;
        case CompletionQueue::Outcome::Written:
            counters_.cqes.add();
            return Push::Written;
        case CompletionQueue::Outcome::Overflow:
            counters_.cq_overflows.add();
            notify(*cq, rdma_wire::CqEvent::Error);
            return Push::Failed;
        case CompletionQueue::Outcome::Dead:
            return Push::Failed;
    }
    return Push::Failed;
}

void RdmaObjects::notify(const CompletionQueue& cq, rdma_wire::CqEvent event) {
    if (EventQueue* eq = event_queue(cq.identity().eq_id)) {
        counters_.events.add();
        eq->post(rdma_wire::event_word(rdma_wire::EventType::Cq, static_cast<std::uint8_t>(event),
                                       cq.identity().id));
    }
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
    for (const auto& eq : event_queues_) {
        if (eq && eq->vector() == vector) {
            eq->serviced();
        }
    }
}

}  // namespace ernic::ionic
