// SPDX-License-Identifier: MIT
#include "rdma/requester.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "rdma/engine.hpp"
#include "rdma/queue_pair.hpp"

namespace ernic::rdma {
namespace {

net::MessageKind kind_of(Opcode opcode) {
    switch (opcode) {
        case Opcode::Write:
        case Opcode::WriteImmediate:
            return net::MessageKind::Write;
        case Opcode::Read:
            return net::MessageKind::ReadRequest;
        case Opcode::CompareSwap:
            return net::MessageKind::CompareSwap;
        case Opcode::FetchAdd:
            return net::MessageKind::FetchAdd;
        case Opcode::Send:
        case Opcode::SendImmediate:
        case Opcode::SendInvalidate:
        case Opcode::RegisterMr:
        case Opcode::LocalInvalidate:
        case Opcode::BindMw:
            break;
    }
    return net::MessageKind::Send;
}

}  // namespace

Requester::Requester(QueuePair& qp)
    : qp_(qp), timer_(qp.engine().loop(), [this] {
          if (qp_.engine().owns(qp_)) {
              on_timer();
          }
      }) {
}

void Requester::reset() {
    stop();
    producer_ = next_ = completed_ = sending_ = 0;
    loaded_.reset();
}

void Requester::start(Psn first) {
    next_psn_ = unacknowledged_ = first;
    if (flights_.empty() && qp_.identity().type == QpType::Rc) {
        flights_.resize(kMaxInFlight);
    }
}

void Requester::stop() {
    timer_.cancel();
    qp_.engine().memory_table().abandon(qp_.qpn());
    failure_.reset();
    rnr_waiting_ = went_back_ = false;
    retries_ = rnr_retries_ = 0;
    in_flight_ = reads_in_flight_ = 0;
    bytes_in_flight_ = 0;
    next_ = completed_ = sending_ = producer_;
}

void Requester::posted(std::uint32_t producer_index, std::uint32_t ring_mask) {
    producer_ = next_ + ((producer_index - next_) & ring_mask);
}

std::uint32_t Requester::packets(std::uint64_t length) const {
    const std::uint32_t mtu = qp_.path_mtu();
    return length == 0 ? 1 : static_cast<std::uint32_t>((length + mtu - 1) / mtu);
}

std::uint64_t Requester::bytes_before(const Flight& under_way, Psn psn) const {
    const std::int32_t ahead = under_way.first_psn.distance_to(psn);
    return ahead <= 0 ? 0
                      : std::min(under_way.length,
                                 std::uint64_t{qp_.path_mtu()} * static_cast<std::uint32_t>(ahead));
}

bool Requester::load(std::uint32_t position) {
    if (loaded_ == position) {
        return true;
    }
    loaded_.reset();
    if (!qp_.owner().fetch_send(position, current_)) {
        return false;
    }
    loaded_ = position;
    return true;
}

bool Requester::can_run() const {
    // What has been sent before a failed request may have to be repeated, but nothing behind it is sent.
    const bool before_failure = !failure_ || static_cast<std::int32_t>(sending_ - failure_->position) < 0;
    return (qp_.state() == QpState::Rts || qp_.state() == QpState::Sqd) && !rnr_waiting_ && before_failure;
}

const wire::MacAddress* Requester::destination() {
    if (qp_.identity().type == QpType::Rc) {
        return &qp_.attributes().route.destination;
    }
    if (next_ == producer_ || !load(next_)) {
        return nullptr;
    }
    const Engine::AddressHandle* const handle = qp_.engine().address_handle(current_.ah_id);
    return handle != nullptr ? &handle->route.destination : nullptr;
}

bool Requester::must_wait() {
    const wire::MacAddress* const mac = destination();
    return mac != nullptr && !qp_.engine().segment().ready(*mac, qp_.identity().type == QpType::Ud);
}

Turned Requester::step(Budget& budget) {
    Turned turned = Turned::Done;
    stepping_ = true;
    while (can_run()) {
        if (budget.spent()) {
            turned = Turned::More;
            break;
        }
        if (sending_ != next_) {
            Flight& under_way = flight(sending_);
            if (under_way.done) {
                ++sending_;
                continue;
            }
            const bool read_window_full =
                under_way.opcode == Opcode::Read && under_way.sent - under_way.arrived >= 2 * kFragment;
            if (read_window_full || bytes_in_flight_ >= kMaxBytesInFlight) {
                break;
            }
            if (must_wait()) {
                turned = Turned::Blocked;
                break;
            }
            send_fragment(under_way, budget);
            continue;
        }
        if (qp_.state() == QpState::Sqd || next_ == producer_) {
            break;
        }
        if (qp_.identity().type == QpType::Ud && must_wait()) {
            turned = Turned::Blocked;
            break;
        }
        if (!begin(budget)) {
            break;
        }
        if (qp_.identity().type == QpType::Ud) {
            send_datagram(current_, next_ - 1, budget);
        }
    }
    stepping_ = false;
    qp_.owner().send_batch_done();
    if (turned != Turned::More) {
        // Nobody may have to wait for the rest of a page table that nobody is copying.
        qp_.engine().memory_table().abandon(qp_.qpn());
    }
    if (turned != Turned::Done) {
        // Nobody is late while we are not done with asking: the time until our next turn is not the peer's.
        // While it waits for a receiver to become ready the timer is all that sets the requester going again.
        if (!rnr_waiting_) {
            timer_.cancel();
        }
    } else if (in_flight_ != 0) {
        arm_timer();
    }
    if (qp_.state() == QpState::Sqd && in_flight_ == 0 && !failure_) {
        qp_.drained();
    }
    return turned;
}

CompletionStatus Requester::check_request(const WorkRequest& request) const {
    if (request.length > kMaxMessage) {
        return CompletionStatus::LocalLength;
    }
    if (is_read_like(request.opcode) && (qp_.attributes().max_rd_atomic == 0 || request.is_inline)) {
        return CompletionStatus::LocalQpOperation;
    }
    // A message of one fragment is checked completely when its bytes are gathered. Longer ones, and the
    // target of a read, are checked before anything is sent.
    if (request.is_inline || (request.length <= kFragment && !is_read_like(request.opcode))) {
        return CompletionStatus::Success;
    }
    const Use use = is_read_like(request.opcode) ? Use::LocalWrite : Use::LocalRead;
    std::uint64_t rest = request.length;
    for (std::uint8_t i = 0; i < request.sge_count && rest != 0; ++i) {
        const Sge& sge = request.sges[i];
        const std::uint64_t size = std::min<std::uint64_t>(sge.length, rest);
        if (qp_.engine().memory_table().check(qp_.local_user(), sge.lkey, sge.va, size, use) !=
            KeyVerdict::Ok) {
            return CompletionStatus::LocalProtection;
        }
        rest -= size;
    }
    return rest == 0 ? CompletionStatus::Success : CompletionStatus::LocalQpOperation;
}

bool Requester::begin(Budget& budget) {
    const std::uint32_t position = next_;
    const bool connected = qp_.identity().type == QpType::Rc;
    if (connected && in_flight_ >= kMaxInFlight) {
        return false;
    }
    if (!load(position)) {
        fail_request(current_.id, position, current_.opcode, CompletionStatus::LocalQpOperation);
        return false;
    }
    const WorkRequest& request = current_;
    if (!connected) {
        ++next_;
        return true;
    }
    if (request.fence && reads_in_flight_ != 0) {
        return false;
    }
    if (is_local(request.opcode)) {
        run_local(request, position, budget);
        return !failure_;
    }
    if (const CompletionStatus status = check_request(request); status != CompletionStatus::Success) {
        fail_request(request.id, position, request.opcode, status);
        return false;
    }
    if (is_read_like(request.opcode)) {
        if (reads_in_flight_ >= qp_.attributes().max_rd_atomic) {
            return false;
        }
        ++reads_in_flight_;
    }
    count(request);
    const std::uint32_t psn_count = is_atomic(request.opcode) ? 1 : packets(request.length);
    flight(position) = Flight{.id = request.id,
                              .length = request.length,
                              .sent = 0,
                              .arrived = 0,
                              .position = position,
                              .first_psn = next_psn_,
                              .psn_count = psn_count,
                              .opcode = request.opcode,
                              .signalled = request.signalled,
                              .all_sent = false,
                              .done = false};
    next_psn_ = next_psn_.plus(psn_count);
    ++in_flight_;
    ++next_;
    return true;
}

void Requester::count(const WorkRequest& request) {
    const auto opcode = static_cast<std::size_t>(request.opcode);
    ++qp_.counters().requests[opcode];
    qp_.counters().bytes[opcode] += request.length;
    EngineCounters& counters = qp_.engine().counters();
    counters.requests_started.add();
    counters.tx_messages.add();
    counters.tx_bytes.add(request.length);
}

void Requester::run_local(const WorkRequest& request, std::uint32_t position, Budget& budget) {
    --budget.requests;
    MemoryTable& table = qp_.engine().memory_table();
    CompletionStatus status = CompletionStatus::LocalQpOperation;
    switch (request.opcode) {
        case Opcode::RegisterMr:
            // Fast registration is a kernel privilege: a process could map any bus address with it.
            if (qp_.identity().privileged) {
                std::uint32_t copied = 0;
                const auto registered = table.register_pages(qp_.local_user(), request, copied);
                budget.take(std::uint64_t{copied} * sizeof(le64));
                if (!registered) {
                    return;
                }
                status = *registered;
            }
            break;
        case Opcode::LocalInvalidate:
            status = table.invalidate(qp_.local_user(), request.immediate_or_key);
            break;
        case Opcode::BindMw:
            status = table.bind_window(qp_.local_user(), request);
            break;
        default:
            break;
    }
    if (status != CompletionStatus::Success) {
        qp_.engine().counters().req_memory_management_errors.add();
        fail_request(request.id, position, request.opcode, status);
        return;
    }
    ++qp_.counters().requests[static_cast<std::size_t>(request.opcode)];
    qp_.engine().counters().requests_started.add();
    flight(position) = Flight{.id = request.id,
                              .length = 0,
                              .sent = 0,
                              .arrived = 0,
                              .position = position,
                              .first_psn = next_psn_,
                              .psn_count = 0,
                              .opcode = request.opcode,
                              .signalled = request.signalled,
                              .all_sent = true,
                              .done = true};
    ++in_flight_;
    ++next_;
    if (sending_ == position) {
        ++sending_;
    }
    ++qp_.counters().completed;
    qp_.owner().send_completed(
        {request.id, position, request.opcode, request.signalled, CompletionStatus::Success});
    complete_front();
}

CompletionStatus Requester::gather(const WorkRequest& request, std::uint64_t offset, std::uint64_t length,
                                   bool to_local, mem::SpanList& out) {
    out.clear();
    if (request.is_inline) {
        if (offset > kMaxInline || length > kMaxInline - offset) {
            return CompletionStatus::LocalQpOperation;
        }
        out.add(current_.inline_data.data() + offset, length);
        return CompletionStatus::Success;
    }
    const MemoryTable& table = qp_.engine().memory_table();
    const Use use = to_local ? Use::LocalWrite : Use::LocalRead;
    for (std::uint8_t i = 0; i < request.sge_count && length != 0; ++i) {
        const Sge& sge = request.sges[i];
        if (offset >= sge.length) {
            offset -= sge.length;
            continue;
        }
        const std::uint64_t size = std::min(sge.length - offset, length);
        if (offset > UINT64_MAX - sge.va ||
            table.append(qp_.local_user(), sge.lkey, sge.va + offset, size, use, out) != KeyVerdict::Ok) {
            return CompletionStatus::LocalProtection;
        }
        length -= size;
        offset = 0;
    }
    return length == 0 ? CompletionStatus::Success : CompletionStatus::LocalQpOperation;
}

void Requester::send_fragment(Flight& under_way, Budget& budget) {
    if (!load(under_way.position) || current_.opcode != under_way.opcode ||
        current_.length != under_way.length) {
        // The guest changed a request that is under way.
        fail_at(under_way, CompletionStatus::LocalQpOperation);
        return;
    }
    const WorkRequest& request = current_;
    const QpAttributes& attributes = qp_.attributes();
    const std::uint64_t offset = under_way.sent;
    const std::uint64_t length = std::min(under_way.length - offset, kFragment);
    const bool last = is_atomic(request.opcode) || offset + length == under_way.length;

    net::Message message;
    mem::SpanList payload;
    message.kind = kind_of(request.opcode);
    if (!is_read_like(request.opcode)) {
        if (const CompletionStatus status = gather(request, offset, length, false, payload);
            status != CompletionStatus::Success) {
            fail_at(under_way, status);
            return;
        }
        message.payload = &payload;
    }
    message.route = &attributes.route;
    // Each piece of a read is a request of its own on the wire; only its answers make up one message here.
    const bool piece_of_read = request.opcode == Opcode::Read;
    message.first = offset == 0 || piece_of_read;
    message.last = last || piece_of_read;
    message.solicited = last && request.solicited;
    message.has_immediate =
        last && (request.opcode == Opcode::SendImmediate || request.opcode == Opcode::WriteImmediate);
    message.has_invalidate = last && request.opcode == Opcode::SendInvalidate;
    // Twice per window: a longer message must hear of its first half before it may go on.
    message.acknowledge_request = last || (offset + length) % (kMaxBytesInFlight / 2) == 0;
    message.destination_qpn = attributes.destination_qpn;
    message.source_qpn = qp_.qpn();
    message.psn = under_way.first_psn.plus(static_cast<std::uint32_t>(offset / qp_.path_mtu())).value();
    message.immediate = request.immediate_or_key;
    message.invalidate_key = request.immediate_or_key;
    message.path_mtu = static_cast<std::uint16_t>(qp_.path_mtu());
    message.rkey = request.rkey;
    message.remote_va = request.remote_va + offset;
    message.length = length;
    message.message_length = under_way.length;
    message.compare = request.compare;
    message.swap_add = request.swap_add;

    // All state is brought up to date before the message leaves: on a loopback the answer arrives inside
    // send().
    set_progress(under_way, offset + length, under_way.arrived);
    under_way.all_sent = last;
    if (last) {
        sending_ = under_way.position + 1;
        --budget.requests;
    }
    budget.take(length + 1);
    qp_.engine().segment().send(message);
}

void Requester::send_datagram(const WorkRequest& request, std::uint32_t position, Budget& budget) {
    Engine& engine = qp_.engine();
    const Engine::AddressHandle* handle = engine.address_handle(request.ah_id);
    CompletionStatus status = CompletionStatus::Success;
    mem::SpanList payload;
    if ((request.opcode != Opcode::Send && request.opcode != Opcode::SendImmediate) || handle == nullptr ||
        handle->pd != qp_.identity().pd) {
        status = CompletionStatus::LocalQpOperation;
    } else if (request.length > engine.port_mtu()) {
        status = CompletionStatus::LocalLength;
    } else {
        status = gather(request, 0, request.length, false, payload);
    }
    --budget.requests;
    sending_ = next_;
    if (status != CompletionStatus::Success) {
        --next_;
        sending_ = next_;
        fail_request(request.id, position, request.opcode, status);
        return;
    }
    budget.take(request.length + 1);
    count(request);
    net::Message message;
    message.route = &handle->route;
    message.kind = net::MessageKind::Datagram;
    message.solicited = request.solicited;
    message.has_immediate = request.opcode == Opcode::SendImmediate;
    message.destination_qpn = request.destination_qpn;
    message.source_qpn = qp_.qpn();
    message.psn = next_psn_.value();
    message.immediate = request.immediate_or_key;
    // InfiniBand 10.2.5: a Q_Key with the high bit set in the request stands for the QP's own.
    message.qkey =
        (request.destination_qkey & 0x80000000U) != 0 ? qp_.attributes().qkey : request.destination_qkey;
    message.length = request.length;
    message.payload = &payload;
    const SendCompletion completion{request.id, position, request.opcode, request.signalled,
                                    CompletionStatus::Success};
    next_psn_ = next_psn_.plus(1);
    completed_ = next_;
    engine.segment().send(message);
    if (qp_.state() == QpState::Error) {
        return;  // it was sent to this very QP, which failed to receive it, and has been flushed
    }
    ++qp_.counters().completed;
    qp_.owner().send_completed(completion);
}

}  // namespace ernic::rdma
