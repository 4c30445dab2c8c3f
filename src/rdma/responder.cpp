// SPDX-License-Identifier: MIT
#include "rdma/responder.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "rdma/engine.hpp"
#include "rdma/queue_pair.hpp"

namespace ernic::rdma {
namespace {

ReceiveKind kind_of(const net::Message& message) {
    if (message.has_immediate) {
        return ReceiveKind::SendImmediate;
    }
    return message.has_invalidate ? ReceiveKind::SendInvalidate : ReceiveKind::Send;
}

}  // namespace

void Responder::reset() {
    producer_ = next_ = 0;
    msn_ = 0;
    peer_heard_ = false;
    stop();
}

void Responder::start(Psn expected) {
    expected_ = expected;
    msn_ = 0;
    peer_heard_ = false;
    nak_sent_ = false;
    for (AtomicResult& result : atomics_) {
        result.valid = false;
    }
}

void Responder::stop() {
    receive_in_hand_ = false;
    message_open_ = false;
    received_ = 0;
    nak_sent_ = false;
    answers_.clear();
    answered_ = 0;
}

void Responder::posted(std::uint32_t producer_index, std::uint32_t ring_mask) {
    producer_ = next_ + ((producer_index - next_) & ring_mask);
}

std::uint32_t Responder::packets(std::uint64_t length) const {
    const std::uint32_t mtu = qp_.path_mtu();
    return length == 0 ? 1 : static_cast<std::uint32_t>((length + mtu - 1) / mtu);
}

void Responder::on_request(const net::Message& message) {
    if (!peer_heard_) {
        peer_heard_ = true;
        if (qp_.state() == QpState::Rtr) {
            qp_.owner().raise(QpEvent::CommunicationEstablished);
        }
    }
    const std::int32_t ahead = expected_.distance_to(Psn(message.psn));
    if (ahead < 0) {
        qp_.engine().counters().resp_duplicate_requests.add();
        on_duplicate(message);
        return;
    }
    if (ahead > 0) {
        qp_.engine().counters().resp_out_of_sequence.add();
        if (!nak_sent_) {
            nak_sent_ = true;
            acknowledge(net::Syndrome::NakSequence, expected_);
        }
        return;
    }
    nak_sent_ = false;
    const bool continues = message.kind == net::MessageKind::Send || message.kind == net::MessageKind::Write;
    if (message.first == message_open_ || (message_open_ && (!continues || message.kind != open_kind_))) {
        refuse(message, net::Syndrome::NakInvalidRequest, QpEvent::RequestError,
               CompletionStatus::LocalQpOperation);
        return;
    }
    switch (message.kind) {
        case net::MessageKind::Send:
            on_send(message);
            break;
        case net::MessageKind::Write:
            on_write(message);
            break;
        case net::MessageKind::ReadRequest:
            on_read(message);
            break;
        case net::MessageKind::CompareSwap:
        case net::MessageKind::FetchAdd:
            on_atomic(message);
            break;
        default:
            break;
    }
}

bool Responder::take_receive(const net::Message& message) {
    if (next_ == producer_) {
        ++qp_.counters().rnr_naks_sent;
        qp_.engine().counters().resp_out_of_buffer.add();
        qp_.engine().counters().resp_rnr_naks.add();
        // What is under way behind it is dropped without a word until it comes again (InfiniBand 9.7.5.2.8).
        nak_sent_ = true;
        acknowledge(net::Syndrome::RnrNak, Psn(message.psn));
        return false;
    }
    if (!qp_.owner().fetch_receive(next_, receive_)) {
        refuse(message, net::Syndrome::NakRemoteOperation, QpEvent::Fatal,
               CompletionStatus::LocalQpOperation);
        return false;
    }
    ++next_;
    receive_in_hand_ = true;
    return true;
}

CompletionStatus Responder::scatter(std::uint64_t offset, std::uint64_t length, mem::SpanList& out) {
    const MemoryTable& table = qp_.engine().memory_table();
    const MemoryTable::User user = qp_.local_user();
    for (std::uint8_t i = 0; i < receive_.sge_count && length != 0; ++i) {
        const Sge& sge = receive_.sges[i];
        if (offset >= sge.length) {
            offset -= sge.length;
            continue;
        }
        const std::uint64_t size = std::min(sge.length - offset, length);
        if (offset > UINT64_MAX - sge.va ||
            table.append(user, sge.lkey, sge.va + offset, size, Use::LocalWrite, out) != KeyVerdict::Ok) {
            return CompletionStatus::LocalProtection;
        }
        length -= size;
        offset = 0;
    }
    return length == 0 ? CompletionStatus::Success : CompletionStatus::LocalLength;
}

void Responder::on_send(const net::Message& message) {
    if (message.first) {
        if (!take_receive(message)) {
            return;
        }
        received_ = 0;
        message_open_ = true;
        open_kind_ = message.kind;
    }
    mem::SpanList target;
    const CompletionStatus status = scatter(received_, message.length, target);
    if (status == CompletionStatus::LocalLength) {
        qp_.engine().counters().resp_local_length_errors.add();
        refuse(message, net::Syndrome::NakInvalidRequest, QpEvent::RequestError, status);
        return;
    }
    if (status != CompletionStatus::Success) {
        refuse(message, net::Syndrome::NakRemoteOperation, QpEvent::Fatal, status);
        return;
    }
    if (!qp_.engine().segment().mover().move(target, message)) {
        forget(message);
        return;
    }
    received_ += message.length;
    if (message.last && message.has_invalidate &&
        qp_.engine().memory_table().invalidate(qp_.remote_user(), message.invalidate_key) !=
            CompletionStatus::Success) {
        qp_.engine().counters().resp_access_errors.add();
        refuse(message, net::Syndrome::NakRemoteAccess, QpEvent::AccessError, CompletionStatus::LocalAccess);
        return;
    }
    advance(message);
    if (message.last) {
        complete_receive(message, kind_of(message), received_);
    }
    if (message.acknowledge_request) {
        acknowledge(net::Syndrome::Ack, expected_.plus(0xffffff));
    }
}

void Responder::forget(const net::Message& message) {
    if (receive_in_hand_ && (message.kind == net::MessageKind::Write || message.first)) {
        receive_in_hand_ = false;
        --next_;
    }
    if (message.first) {
        message_open_ = false;
    }
}

void Responder::on_write(const net::Message& message) {
    if (!allowed(message, qp_.attributes().remote_write)) {
        return;
    }
    const MemoryTable& table = qp_.engine().memory_table();
    mem::SpanList target;
    // All of a longer message is checked before its first byte is placed; later fragments are checked again,
    // because the region may go away. InfiniBand 9.7.4.1.5: a zero-length write does not look at its key.
    const bool refused =
        message.length != 0 && ((message.first && !message.last &&
                                 table.check(qp_.remote_user(), message.rkey, message.remote_va,
                                             message.message_length, Use::RemoteWrite) != KeyVerdict::Ok) ||
                                table.append(qp_.remote_user(), message.rkey, message.remote_va,
                                             message.length, Use::RemoteWrite, target) != KeyVerdict::Ok);
    if (refused) {
        qp_.engine().counters().resp_access_errors.add();
        refuse(message, net::Syndrome::NakRemoteAccess, QpEvent::AccessError, CompletionStatus::LocalAccess);
        return;
    }
    // Only the last packet of a write with immediate needs a receive request, so only that one can be
    // RNR-NAKed.
    if (message.last && message.has_immediate && !take_receive(message)) {
        return;
    }
    if (message.first) {
        received_ = 0;
        message_open_ = true;
        open_kind_ = message.kind;
    }
    if (!qp_.engine().segment().mover().move(target, message)) {
        forget(message);
        return;
    }
    received_ += message.length;
    advance(message);
    if (message.last && message.has_immediate) {
        complete_receive(message, ReceiveKind::WriteImmediate, received_);
    }
    if (message.acknowledge_request) {
        acknowledge(net::Syndrome::Ack, expected_.plus(0xffffff));
    }
}

void Responder::send_read_response(const net::Message& request) {
    give({.kind = net::MessageKind::ReadResponse,
          .psn = Psn(request.psn),
          .msn = msn_,
          .rkey = request.rkey,
          .va = request.remote_va,
          .length = request.length});
}

bool Responder::allowed(const net::Message& message, bool right) {
    if (!right) {
        // InfiniBand 9.7.5.2.6: an operation the QP does not support is an invalid request, not an access
        // error.
        refuse(message, net::Syndrome::NakInvalidRequest, QpEvent::RequestError,
               CompletionStatus::LocalQpOperation);
    }
    return right;
}

bool Responder::may_read(const net::Message& message) const {
    return message.length == 0 ||
           qp_.engine().memory_table().check(qp_.remote_user(), message.rkey, message.remote_va,
                                             message.length, Use::RemoteRead) == KeyVerdict::Ok;
}

void Responder::on_read(const net::Message& message) {
    if (!allowed(message, qp_.attributes().remote_read)) {
        return;
    }
    if (!may_read(message)) {
        qp_.engine().counters().resp_access_errors.add();
        refuse(message, net::Syndrome::NakRemoteAccess, QpEvent::AccessError, CompletionStatus::LocalAccess);
        return;
    }
    expected_ = expected_.plus(packets(message.length));
    msn_ = (msn_ + 1) & 0xffffffU;
    send_read_response(message);
}

void Responder::on_atomic(const net::Message& message) {
    if (!allowed(message, qp_.attributes().remote_atomic)) {
        return;
    }
    mem::SpanList target;
    if (message.remote_va % sizeof(std::uint64_t) != 0) {
        refuse(message, net::Syndrome::NakInvalidRequest, QpEvent::RequestError,
               CompletionStatus::LocalQpOperation);
        return;
    }
    if (qp_.engine().memory_table().append(qp_.remote_user(), message.rkey, message.remote_va,
                                           sizeof(std::uint64_t), Use::RemoteAtomic,
                                           target) != KeyVerdict::Ok ||
        target.count() != 1 ||
        reinterpret_cast<std::uintptr_t>(target.begin()->data) % alignof(std::uint64_t) != 0) {
        qp_.engine().counters().resp_access_errors.add();
        refuse(message, net::Syndrome::NakRemoteAccess, QpEvent::AccessError, CompletionStatus::LocalAccess);
        return;
    }
    // ATOMIC_GLOB is advertised: the operation must be atomic towards the guest's CPUs too.
    std::atomic_ref<std::uint64_t> value(*reinterpret_cast<std::uint64_t*>(target.begin()->data));
    std::uint64_t original = message.compare;
    if (message.kind == net::MessageKind::FetchAdd) {
        original = value.fetch_add(message.swap_add);
    } else {
        value.compare_exchange_strong(original, message.swap_add);
    }
    atomics_[next_atomic_] = {original, Psn(message.psn), true};
    next_atomic_ = (next_atomic_ + 1) % atomics_.size();
    expected_ = expected_.plus(1);
    msn_ = (msn_ + 1) & 0xffffffU;
    send_atomic_response(Psn(message.psn), original);
}

void Responder::send_atomic_response(Psn psn, std::uint64_t original) {
    give({.kind = net::MessageKind::AtomicResponse, .psn = psn, .msn = msn_, .original = original});
}

void Responder::on_duplicate(const net::Message& message) {
    switch (message.kind) {
        case net::MessageKind::Send:
        case net::MessageKind::Write:
            acknowledge(net::Syndrome::Ack, expected_.plus(0xffffff));
            break;
        case net::MessageKind::ReadRequest:
            // Executed anew, so with the rights of now. A copy may come long after the answer, when the
            // region is rightly gone: that is not the peer's fault, and nobody waits for this answer.
            if (qp_.attributes().remote_read && may_read(message)) {
                send_read_response(message);
            }
            break;
        case net::MessageKind::CompareSwap:
        case net::MessageKind::FetchAdd:
            replay_atomic(Psn(message.psn));
            break;
        default:
            break;
    }
}

void Responder::replay_atomic(Psn psn) {
    // The latest first: numbers come again after 2^24 packets, and the history may be older than that.
    for (std::size_t age = 1; age <= atomics_.size(); ++age) {
        const AtomicResult& result = atomics_[(next_atomic_ + atomics_.size() - age) % atomics_.size()];
        if (result.valid && result.psn == psn) {
            send_atomic_response(psn, result.original);
            return;
        }
    }
}

void Responder::advance(const net::Message& message) {
    expected_ = expected_.plus(packets(message.length));
    if (message.last) {
        msn_ = (msn_ + 1) & 0xffffffU;
        message_open_ = false;
    }
    ++qp_.counters().received;
    qp_.counters().received_bytes += message.length;
    qp_.engine().counters().rx_messages.add();
    qp_.engine().counters().rx_bytes.add(message.length);
}

void Responder::complete_receive(const net::Message& message, ReceiveKind kind, std::uint64_t length) {
    receive_in_hand_ = false;
    ReceiveCompletion completion;
    completion.id = receive_.id;
    completion.kind = kind;
    completion.solicited = message.solicited;
    completion.length = static_cast<std::uint32_t>(length);
    completion.source_qpn = message.source_qpn;
    completion.immediate_or_key = message.has_invalidate ? message.invalidate_key : message.immediate;
    qp_.owner().receive_completed(completion);
}

void Responder::acknowledge(net::Syndrome syndrome, Psn psn) {
    give({.kind = net::MessageKind::Acknowledge, .syndrome = syndrome, .psn = psn, .msn = msn_});
}

void Responder::refuse(const net::Message& message, net::Syndrome syndrome, QpEvent event,
                       CompletionStatus local) {
    EngineCounters& counters = qp_.engine().counters();
    if (syndrome == net::Syndrome::NakInvalidRequest) {
        counters.resp_invalid_requests.add();
    } else if (syndrome == net::Syndrome::NakRemoteOperation) {
        counters.resp_operation_errors.add();
    }
    acknowledge(syndrome, Psn(message.psn));
    give_up(message, event, local);
}

void Responder::give_up(const net::Message& message, QpEvent event, CompletionStatus local) {
    if (receive_in_hand_) {
        receive_in_hand_ = false;
        qp_.engine().counters().resp_completion_errors.add();
        ReceiveCompletion completion;
        completion.id = receive_.id;
        completion.status = local;
        completion.solicited = true;
        completion.source_qpn = message.source_qpn;
        qp_.owner().receive_completed(completion);
    }
    qp_.owner().raise(event);
    qp_.fail();
}

}  // namespace ernic::rdma
