// SPDX-License-Identifier: MIT
// How a responder's answers reach its peer: at once, or when there is room.
#include <algorithm>

#include "rdma/engine.hpp"
#include "rdma/queue_pair.hpp"
#include "rdma/responder.hpp"

namespace ernic::rdma {
namespace {

/// The last word of this queue pair.
bool is_final(net::Syndrome syndrome) {
    return syndrome == net::Syndrome::NakInvalidRequest || syndrome == net::Syndrome::NakRemoteAccess ||
           syndrome == net::Syndrome::NakRemoteOperation;
}

}  // namespace

void Responder::give(Answer answer) {
    if (is_final(answer.syndrome)) {
        // The queue pair fails next, and forgets what waits.
        transmit_now(answer, nullptr, 0, 0);
        return;
    }
    if (answers_.empty() && transmit(answer)) {
        return;
    }
    if (qp_.state() == QpState::Error) {
        return;
    }
    const auto is_ack = [](const Answer& other) {
        return other.kind == net::MessageKind::Acknowledge && other.syndrome == net::Syndrome::Ack;
    };
    if (!answers_.empty() && is_ack(answer) && is_ack(answers_.back())) {
        answers_.back() = answer;
    } else if (answers_.size() - answered_ < kMaxAnswers) {
        answers_.push_back(answer);
    } else {
        qp_.engine().counters().resp_answers_dropped.add();
    }
    qp_.engine().wait_for_room(qp_, false);
}

Turned Responder::step(Budget& budget) {
    while (answered_ != answers_.size()) {
        if (budget.spent()) {
            return Turned::More;
        }
        Answer& answer = answers_[answered_];
        const std::uint64_t before = answer.sent;
        const bool whole = transmit(answer);
        if (answers_.empty()) {
            return Turned::Done;  // it failed, and all were forgotten
        }
        budget.take(answer.sent - before + (whole ? 1 : 0));
        if (!whole) {
            return Turned::Blocked;
        }
        if (++answered_ > answers_.size() / 2) {
            answers_.erase(answers_.begin(), answers_.begin() + static_cast<std::ptrdiff_t>(answered_));
            answered_ = 0;
        }
    }
    return Turned::Done;
}

bool Responder::transmit(Answer& answer) {
    if (answer.kind == net::MessageKind::ReadResponse) {
        return transmit_read(answer);
    }
    if (!qp_.engine().segment().ready(qp_.attributes().route.destination)) {
        return false;
    }
    transmit_now(answer, nullptr, 0, 0);
    return true;
}

bool Responder::transmit_read(Answer& answer) {
    do {
        if (!qp_.engine().segment().ready(qp_.attributes().route.destination)) {
            return false;
        }
        const std::uint64_t offset = answer.sent;
        const std::uint64_t length = std::min(answer.length - offset, kFragment);
        mem::SpanList source;
        if (length != 0 &&
            qp_.engine().memory_table().append(qp_.remote_user(), answer.rkey, answer.va + offset, length,
                                               Use::RemoteRead, source) != KeyVerdict::Ok) {
            qp_.engine().counters().resp_access_errors.add();
            net::Message request;
            request.psn = answer.psn.value();
            request.source_qpn = qp_.attributes().destination_qpn;
            refuse(request, net::Syndrome::NakRemoteAccess, QpEvent::AccessError,
                   CompletionStatus::LocalAccess);
            return true;
        }
        answer.sent += length;
        const bool last = answer.sent == answer.length;
        const Answer part = answer;
        transmit_now(part, &source, offset, length);
        if (last || qp_.state() == QpState::Error) {
            return true;
        }
    } while (true);
}

void Responder::transmit_now(const Answer& answer, const mem::SpanList* payload, std::uint64_t offset,
                             std::uint64_t length) {
    const QpAttributes& attributes = qp_.attributes();
    net::Message response;
    response.route = &attributes.route;
    response.kind = answer.kind;
    response.first = offset == 0;
    response.last = offset + length == answer.length;
    response.syndrome = answer.syndrome;
    response.rnr_timer = answer.kind == net::MessageKind::Acknowledge ? attributes.min_rnr_timer : 0;
    response.destination_qpn = attributes.destination_qpn;
    response.source_qpn = qp_.qpn();
    // kFragment is a multiple of every path MTU, so all parts before this one are whole packets.
    response.psn = answer.psn.plus(static_cast<std::uint32_t>(offset / qp_.path_mtu())).value();
    response.msn = answer.msn;
    response.swap_add = answer.original;
    if (answer.kind == net::MessageKind::ReadResponse) {
        response.path_mtu = static_cast<std::uint16_t>(attributes.path_mtu);
        response.length = length;
        response.payload = payload;
    }
    qp_.engine().segment().send(response);
}

}  // namespace ernic::rdma
