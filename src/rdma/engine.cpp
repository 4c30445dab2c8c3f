// SPDX-License-Identifier: MIT
#include "rdma/engine.hpp"

#include <algorithm>

namespace ernic::rdma {

Engine::Engine(const Limits& limits, mem::GuestMemory& memory, net::Segment& segment, EventLoop& loop)
    : memory_(memory),
      segment_(segment),
      loop_(loop),
      memory_table_(memory, limits.memory_regions, limits.page_table_entries),
      qps_(limits.queue_pairs, nullptr),
      handles_(limits.address_handles) {
    segment_.listen(*this);
}

Engine::~Engine() {
    segment_.detach(*this);
    segment_.unlisten(*this);
}

void Engine::set_macs(std::span<const wire::MacAddress> macs) {
    segment_.detach(*this);
    mac_ = macs.front();
    for (const wire::MacAddress& mac : macs) {
        segment_.attach(*this, mac);
    }
}

void Engine::deliver(const net::Message& message) {
    QueuePair* qp = find(message.destination_qpn);
    if (qp == nullptr) {
        counters_.unknown_qp.add();
        return;
    }
    const QpState state = qp->state();
    const bool hears =
        state == QpState::Rtr || state == QpState::Rts || state == QpState::Sqd || state == QpState::Sqe;
    if (message.kind == net::MessageKind::Datagram) {
        if (!hears || qp->identity().type != QpType::Ud) {
            counters_.unknown_qp.add();
        } else if (message.qkey != qp->attributes().qkey) {
            counters_.wrong_qkey.add();
        } else {
            qp->responder().on_datagram(message);
        }
        return;
    }
    const QpAttributes& attributes = qp->attributes();
    // A connected QP listens to its peer only.
    if (!hears || qp->identity().type != QpType::Rc || attributes.destination_qpn != message.source_qpn ||
        !(attributes.route.destination == message.route->source)) {
        counters_.unknown_qp.add();
        return;
    }
    switch (message.kind) {
        case net::MessageKind::Acknowledge:
        case net::MessageKind::ReadResponse:
        case net::MessageKind::AtomicResponse:
            qp->requester().on_response(message);
            break;
        default:
            qp->responder().on_request(message);
            break;
    }
}

void Engine::add(QueuePair& qp) {
    qps_[qp.qpn()] = &qp;
    ++live_qps_;
}

void Engine::remove(QueuePair& qp) {
    if (!owns(qp)) {
        return;
    }
    qps_[qp.qpn()] = nullptr;
    --live_qps_;
    memory_table_.abandon(qp.qpn());
    if (qp.turn.queue != nullptr) {
        qp.turn.queue->remove(qp);
    }
}

bool Engine::set_address_handle(std::uint32_t id, std::uint32_t pd, const net::Route& route) {
    if (AddressHandle* handle = handles_.at(id)) {
        *handle = {pd, route};
        return true;
    }
    return handles_.put(id, std::make_unique<AddressHandle>(AddressHandle{pd, route}));
}

void Engine::remove_address_handle(std::uint32_t id) {
    handles_.remove(id);
}

const Engine::AddressHandle* Engine::address_handle(std::uint32_t id) const {
    return handles_.at(id);
}

void Engine::clear() {
    std::fill(qps_.begin(), qps_.end(), nullptr);
    ready_.forget();
    waiting_.forget();
    live_qps_ = 0;
    memory_table_.clear();
    handles_.clear();
    segment_.was_reset(*this);
}

bool Engine::give_back() {
    const bool more = memory_table_.give_back();
    return handles_.sweep(kSlotsPerSweep) || more;
}

void Engine::schedule(QueuePair& qp) {
    if (qp.turn.queue == nullptr) {
        ready_.push_back(qp);
    }
}

void Engine::wait_for_room(QueuePair& qp, bool served) {
    if (qp.turn.queue != nullptr) {
        qp.turn.queue->remove(qp);
    }
    const wire::MacAddress* const mac = qp.requester().destination();
    net::Port* const port = mac != nullptr ? segment_.owner(*mac) : nullptr;
    // A port that has just gone, or that is ready again, tells nobody: the latter when an answer joins others
    // whose turn has come but is not over.
    if (port == nullptr || port->ready(qp.identity().type == QpType::Ud)) {
        ready_.push_back(qp);
    } else {
        waiting_.add(*port, qp, served);
    }
}

void Engine::on_room(Port& port) {
    waiting_.open(port);
}

void Engine::on_gone(Port& port) {
    waiting_.close(port, ready_);
}

QueuePair* Engine::next() {
    // In turns, so that those that need not wait and those that had to do not keep each other waiting.
    waiter_ran_ = !waiter_ran_;
    QueuePair* qp = waiter_ran_ ? waiting_.next() : nullptr;
    if (qp == nullptr && !ready_.empty()) {
        qp = ready_.first();
        ready_.remove(*qp);
    }
    return qp == nullptr ? waiting_.next() : qp;
}

bool Engine::step() {
    Budget budget{kBytesPerStep, kRequestsPerStep};
    while (!budget.spent()) {
        QueuePair* const qp = next();
        if (qp == nullptr) {
            break;
        }
        const std::uint32_t requests = std::min(budget.requests, kRequestsPerTurn);
        Budget turn{budget.bytes, requests};
        const bool more = qp->step(turn);
        budget.bytes = turn.bytes;
        budget.requests -= requests - turn.requests;
        if (more) {
            schedule(*qp);
        } else if (turn.requests == requests) {
            // A QP that had nothing to do must not make this loop endless for free.
            --budget.requests;
        }
    }
    return !ready_.empty() || waiting_.may_have_one();
}

void Engine::register_metrics(metrics::Registry& registry) {
    EngineCounters& c = counters_;
    const metrics::CounterGroup add(registry, "rdma.");
    add("tx_messages", "messages", "work requests sent to a peer", c.tx_messages);
    add("tx_bytes", "bytes", "payload bytes of those", c.tx_bytes);
    add("rx_messages", "messages", "message fragments with payload received", c.rx_messages);
    add("rx_bytes", "bytes", "payload bytes of those", c.rx_bytes);
    add("requests_started", "requests", "work requests taken from send queues", c.requests_started);
    add("req_sequence_errors", "events",
        "sequence NAKs and implied NAKs seen by requesters; high: messages get lost", c.req_sequence_errors);
    add("req_rnr_retry_errors", "requests", "requests failed because the peer never posted a receive",
        c.req_rnr_retry_errors);
    add("req_remote_access_errors", "requests", "requests refused by the peer for a bad key, range or right",
        c.req_remote_access_errors);
    add("req_remote_invalid_requests", "requests", "requests the peer called invalid",
        c.req_remote_invalid_requests);
    add("req_remote_operation_errors", "requests", "requests the peer could not carry out",
        c.req_remote_operation_errors);
    add("req_retry_exceeded", "requests", "requests that were never acknowledged; high: the peer QP is gone",
        c.req_retry_exceeded);
    add("req_local_errors", "requests", "requests failed for a local key, length or format",
        c.req_local_errors);
    add("req_memory_management_errors", "requests", "REG_MR, BIND_MW or LOCAL_INV refused",
        c.req_memory_management_errors);
    add("req_completion_errors", "completions", "send completions with an error", c.req_completion_errors);
    add("req_flushes", "events", "send queues flushed", c.req_flushes);
    add("req_duplicate_responses", "messages", "responses nobody waited for", c.req_duplicate_responses);
    add("resp_duplicate_requests", "messages", "requests seen twice; high: acknowledgements get lost",
        c.resp_duplicate_requests);
    add("resp_out_of_buffer", "events", "messages that found no receive request", c.resp_out_of_buffer);
    add("resp_out_of_sequence", "messages", "requests after a gap; high: messages get lost",
        c.resp_out_of_sequence);
    add("resp_completion_errors", "completions", "receive completions with an error",
        c.resp_completion_errors);
    add("resp_flushes", "events", "receive queues flushed", c.resp_flushes);
    add("resp_local_length_errors", "messages", "messages longer than the posted receive",
        c.resp_local_length_errors);
    add("resp_invalid_requests", "messages", "requests refused as invalid", c.resp_invalid_requests);
    add("resp_access_errors", "messages", "requests refused for a bad key, range or right",
        c.resp_access_errors);
    add("resp_operation_errors", "messages", "requests refused because of a fault on this side",
        c.resp_operation_errors);
    add("resp_rnr_naks", "messages", "receiver-not-ready answers sent", c.resp_rnr_naks);
    add("resp_answers_dropped", "messages",
        "answers lost because too many waited for room on the way to the peer; high: the peer asks for more "
        "than it takes",
        c.resp_answers_dropped);
    add("unknown_qp", "messages", "messages for a QP that does not exist or does not listen", c.unknown_qp);
    add("wrong_qkey", "messages", "datagrams with the wrong Q_Key", c.wrong_qkey);
    add("datagrams_dropped", "messages", "datagrams without a fitting receive request", c.datagrams_dropped);
    registry.add({"rdma.queue_pairs", "QPs", "queue pairs that exist now"}, [this] { return live_qps_; });
    registry.add({"rdma.memory_regions", "keys", "memory regions and windows that exist now"},
                 [this] { return memory_table_.count(); });
    registry.add(
        {"rdma.page_table_entries", "entries", "page table entries held for memory regions and rings now"},
        [this] { return memory_table_.page_entries_used(); });
}

}  // namespace ernic::rdma
