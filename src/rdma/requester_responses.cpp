// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <bit>

#include "rdma/engine.hpp"
#include "rdma/queue_pair.hpp"
#include "rdma/requester.hpp"

/// What a requester does with answers and silence: acknowledgements, NAKs, read and atomic responses, timers.
namespace ernic::rdma {
namespace {

CompletionStatus status_of(net::Syndrome syndrome) {
    switch (syndrome) {
        case net::Syndrome::NakInvalidRequest:
            return CompletionStatus::RemoteInvalidRequest;
        case net::Syndrome::NakRemoteAccess:
            return CompletionStatus::RemoteAccess;
        case net::Syndrome::NakRemoteOperation:
            return CompletionStatus::RemoteOperation;
        case net::Syndrome::Ack:
        case net::Syndrome::RnrNak:
        case net::Syndrome::NakSequence:
            break;
    }
    return CompletionStatus::BadResponse;
}

}  // namespace

void Requester::on_response(const net::Message& message) {
    if ((qp_.state() != QpState::Rts && qp_.state() != QpState::Sqd) || in_flight_ == 0) {
        qp_.engine().counters().req_duplicate_responses.add();
        return;
    }
    switch (message.kind) {
        case net::MessageKind::Acknowledge:
            if (message.syndrome == net::Syndrome::Ack) {
                on_acknowledge(Psn(message.psn));
            } else {
                on_nak(message);
            }
            break;
        case net::MessageKind::ReadResponse:
            on_read_response(message);
            break;
        case net::MessageKind::AtomicResponse:
            on_atomic_response(message);
            break;
        default:
            return;
    }
    complete_front();
    if (!stepping_) {
        qp_.engine().schedule(qp_);
    }
}

bool Requester::outstanding(Psn psn) const {
    // In steps, because 2 GiB in packets of 256 bytes are 2^23 of them, for which "before" turns around.
    return unacknowledged_.steps_to(psn) < unacknowledged_.steps_to(next_psn_);
}

void Requester::on_acknowledge(Psn psn) {
    if (!outstanding(psn)) {
        qp_.engine().counters().req_duplicate_responses.add();
        return;
    }
    acknowledge_through(psn);
    // An acknowledgement of something behind a read or an atomic means that the answer to that was lost
    // (InfiniBand 9.7.5.1.4, implied NAK).
    if (outstanding(psn)) {
        answer_lost();
    }
}

void Requester::acknowledge_through(Psn psn) {
    const std::uint32_t count = unacknowledged_.steps_to(psn) + 1;
    for (std::uint32_t position = completed_; position != next_; ++position) {
        Flight& under_way = flight(position);
        if (under_way.done || is_read_like(under_way.opcode)) {
            continue;  // only its answer ends a read or an atomic
        }
        if (unacknowledged_.steps_to(under_way.first_psn) >= count &&
            unacknowledged_.before(under_way.first_psn)) {
            break;
        }
        // What arrives late may acknowledge more than has been sent since the last rewind.
        const std::uint64_t arrived = std::max(under_way.arrived, bytes_before(under_way, psn.plus(1)));
        set_progress(under_way, std::max(under_way.sent, arrived), arrived);
        if (psn.before(under_way.first_psn.plus(under_way.psn_count - 1))) {
            break;
        }
        under_way.done = true;
    }
    look_for_progress();
}

void Requester::set_progress(Flight& under_way, std::uint64_t sent, std::uint64_t arrived) {
    bytes_in_flight_ += (sent - arrived) - (under_way.sent - under_way.arrived);
    under_way.sent = sent;
    under_way.arrived = arrived;
}

void Requester::look_for_progress() {
    std::uint32_t position = completed_;
    while (position != next_ && flight(position).done) {
        ++position;
    }
    const Psn oldest = position == next_ ? next_psn_ : next_wanted(flight(position));
    if (oldest == unacknowledged_) {
        return;
    }
    unacknowledged_ = oldest;
    went_back_ = false;
    retries_ = rnr_retries_ = 0;
    // While it waits for a receiver to become ready the timer is all that sets the requester going again.
    if (!rnr_waiting_) {
        timer_.cancel();
    }
}

Psn Requester::next_wanted(const Flight& under_way) const {
    return under_way.first_psn.plus(static_cast<std::uint32_t>(under_way.arrived / qp_.path_mtu()));
}

Requester::Flight& Requester::oldest_unanswered() {
    std::uint32_t position = completed_;
    while (position + 1 != next_ && flight(position).done) {
        ++position;
    }
    return flight(position);
}

void Requester::answer_lost() {
    // One loss shows itself many times: by every answer behind it, and again by those that are repeated.
    // Once is enough; should the repetition be lost as well, the timer tells.
    if (went_back_ || rnr_waiting_) {
        qp_.engine().counters().req_duplicate_responses.add();
        return;
    }
    qp_.engine().counters().req_sequence_errors.add();
    went_back_ = retry();
}

bool Requester::retry() {
    if (retries_ >= qp_.attributes().retry_count) {
        qp_.engine().counters().req_retry_exceeded.add();
        fail_at(oldest_unanswered(), CompletionStatus::RetryExceeded);
        return false;
    }
    ++retries_;
    rewind();
    return true;
}

void Requester::complete_front() {
    while (in_flight_ != 0 && flight(completed_).done) {
        Flight& front = flight(completed_);
        set_progress(front, front.sent, front.sent);
        if (is_read_like(front.opcode)) {
            --reads_in_flight_;
        }
        --in_flight_;
        if (sending_ == completed_) {
            ++sending_;
        }
        ++completed_;
        if (is_local(front.opcode)) {
            continue;
        }
        ++qp_.counters().completed;
        qp_.owner().send_completed(
            {front.id, front.position, front.opcode, front.signalled, CompletionStatus::Success});
        if (qp_.state() == QpState::Error) {
            return;
        }
    }
    if (failure_ && failure_->position == completed_) {
        finish_failure();
    }
}

Requester::Flight* Requester::answered_by(const net::Message& message) {
    const Psn psn(message.psn);
    if (!outstanding(psn)) {
        qp_.engine().counters().req_duplicate_responses.add();
        return nullptr;
    }
    if (!(psn == unacknowledged_)) {
        acknowledge_through(psn.plus(0xffffff));
        if (!(psn == unacknowledged_)) {
            answer_lost();
            return nullptr;
        }
    }
    return &oldest_unanswered();
}

void Requester::on_read_response(const net::Message& message) {
    Flight* const under_way = answered_by(message);
    if (under_way == nullptr) {
        return;
    }
    if (under_way->opcode != Opcode::Read || message.length > under_way->sent - under_way->arrived ||
        (message.payload == nullptr && message.stream == nullptr)) {
        qp_.engine().counters().req_duplicate_responses.add();
        return;
    }
    mem::SpanList target;
    if (!load(under_way->position) ||
        gather(current_, under_way->arrived, message.length, true, target) != CompletionStatus::Success) {
        fail_at(*under_way, CompletionStatus::LocalProtection);
        return;
    }
    if (!qp_.engine().segment().mover().move(target, message)) {
        return;
    }
    set_progress(*under_way, under_way->sent, under_way->arrived + message.length);
    under_way->done = under_way->all_sent && under_way->arrived == under_way->length;
    look_for_progress();
}

void Requester::on_atomic_response(const net::Message& message) {
    Flight* const under_way = answered_by(message);
    if (under_way == nullptr) {
        return;
    }
    if (!is_atomic(under_way->opcode)) {
        qp_.engine().counters().req_duplicate_responses.add();
        return;
    }
    mem::SpanList target;
    if (!load(under_way->position) ||
        gather(current_, 0, sizeof(std::uint64_t), true, target) != CompletionStatus::Success) {
        fail_at(*under_way, CompletionStatus::LocalProtection);
        return;
    }
    auto original = std::bit_cast<std::array<std::byte, sizeof(std::uint64_t)>>(message.swap_add);
    mem::SpanList source;
    source.add(original.data(), original.size());
    mem::copy(target, source);
    under_way->done = true;
    look_for_progress();
}

void Requester::on_nak(const net::Message& message) {
    const Psn psn(message.psn);
    if (!outstanding(psn)) {
        qp_.engine().counters().req_duplicate_responses.add();
        return;
    }
    if (!(psn == unacknowledged_)) {
        // A NAK acknowledges everything before it.
        acknowledge_through(psn.plus(0xffffff));
        complete_front();
    }
    if (in_flight_ == 0) {
        return;
    }
    const bool asks_again =
        message.syndrome == net::Syndrome::RnrNak || message.syndrome == net::Syndrome::NakSequence;
    if (rnr_waiting_ && asks_again) {
        // Nothing has been sent since the one that is waited for: this one is a copy, or was under way.
        qp_.engine().counters().req_duplicate_responses.add();
        return;
    }
    std::uint32_t position = completed_;
    while (position + 1 != next_ && (flight(position).done || flight(position + 1).first_psn == psn ||
                                     flight(position + 1).first_psn.before(psn))) {
        ++position;
    }
    Flight& refused = flight(position);
    const QpAttributes& attributes = qp_.attributes();
    EngineCounters& counters = qp_.engine().counters();
    switch (message.syndrome) {
        case net::Syndrome::RnrNak:
            ++qp_.counters().rnr_naks_received;
            // 7 stands for "for ever" (InfiniBand 11.2.5.2).
            if (attributes.rnr_retry != 7 && rnr_retries_ >= attributes.rnr_retry) {
                counters.req_rnr_retry_errors.add();
                fail_at(refused, CompletionStatus::RnrRetryExceeded);
                return;
            }
            ++rnr_retries_;
            rewind();
            rnr_waiting_ = true;
            timer_.arm(qp_.engine().loop().clock().now() + rnr_delay(message.rnr_timer));
            return;
        case net::Syndrome::NakSequence:
            answer_lost();
            return;
        case net::Syndrome::NakInvalidRequest:
            counters.req_remote_invalid_requests.add();
            break;
        case net::Syndrome::NakRemoteAccess:
            counters.req_remote_access_errors.add();
            break;
        case net::Syndrome::NakRemoteOperation:
            counters.req_remote_operation_errors.add();
            break;
        case net::Syndrome::Ack:
            return;
    }
    fail_at(refused, status_of(message.syndrome));
}

void Requester::fail_at(const Flight& under_way, CompletionStatus status) {
    fail_request(under_way.id, under_way.position, under_way.opcode, status);
}

void Requester::fail_request(std::uint64_t id, std::uint32_t position, Opcode opcode,
                             CompletionStatus status) {
    if (failure_ && static_cast<std::int32_t>(position - failure_->position) >= 0) {
        return;
    }
    failure_ = Failure{id, position, opcode, status};
    if (position == completed_) {
        finish_failure();
    }
}

void Requester::finish_failure() {
    const Failure failure = *failure_;
    EngineCounters& counters = qp_.engine().counters();
    counters.req_completion_errors.add();
    if (failure.status == CompletionStatus::LocalProtection ||
        failure.status == CompletionStatus::LocalLength ||
        failure.status == CompletionStatus::LocalQpOperation) {
        counters.req_local_errors.add();
    }
    ++qp_.counters().failed;
    qp_.owner().send_completed({failure.id, failure.position, failure.opcode, true, failure.status});
    qp_.owner().send_batch_done();
    qp_.fail();
}

void Requester::rewind() {
    bool found = false;
    for (std::uint32_t position = completed_; position != next_; ++position) {
        Flight& under_way = flight(position);
        if (under_way.done) {
            continue;
        }
        set_progress(under_way, under_way.arrived, under_way.arrived);
        under_way.all_sent = false;
        if (!found) {
            sending_ = position;
            found = true;
        }
    }
}

void Requester::arm_timer() {
    const std::uint8_t code = qp_.attributes().timeout;
    if (timer_.armed() || code == 0 || rnr_waiting_) {
        return;
    }
    armed_at_ = qp_.engine().loop().clock().now();
    timer_.arm(armed_at_ + acknowledge_timeout(code));
}

void Requester::on_timer() {
    if (rnr_waiting_) {
        rnr_waiting_ = false;
        qp_.engine().schedule(qp_);
        return;
    }
    if (in_flight_ == 0) {
        return;
    }
    if (!qp_.engine().segment().settled(qp_.attributes().route.destination, armed_at_)) {
        // It is still on its way, over a link that loses nothing.
        timer_.arm(qp_.engine().loop().clock().now() + acknowledge_timeout(qp_.attributes().timeout));
        return;
    }
    ++qp_.counters().timeouts;
    went_back_ = false;
    if (retry()) {
        qp_.engine().schedule(qp_);
    }
}

}  // namespace ernic::rdma
