// SPDX-License-Identifier: MIT
#include "rdma/queue_pair.hpp"

#include <algorithm>

#include "rdma/engine.hpp"

namespace ernic::rdma {

QueuePair::QueuePair(Engine& engine, QueueOwner& owner, const Identity& identity)
    : engine_(engine), owner_(owner), identity_(identity), requester_(*this), responder_(*this) {
    engine_.add(*this);
}

QueuePair::~QueuePair() {
    engine_.remove(*this);
}

bool QueuePair::may_enter(QpState to) const {
    if (to == QpState::Reset || to == QpState::Error || to == state_) {
        return true;
    }
    switch (to) {
        case QpState::Init:
            return state_ == QpState::Reset;
        case QpState::Rtr:
            return state_ == QpState::Init;
        case QpState::Rts:
            return state_ == QpState::Rtr || state_ == QpState::Sqd || state_ == QpState::Sqe;
        case QpState::Sqd:
            return state_ == QpState::Rts;
        default:
            return false;
    }
}

void QueuePair::enter(QpState to) {
    const QpState from = state_;
    switch (to) {
        case QpState::Reset:
            state_ = to;
            requester_.reset();
            responder_.reset();
            attributes_ = QpAttributes{};
            drain_pending_ = false;
            return;
        case QpState::Rtr:
            state_ = to;
            responder_.start(Psn(attributes_.rq_psn));
            return;
        case QpState::Rts:
            state_ = to;
            if (from == QpState::Rtr) {
                requester_.start(Psn(attributes_.sq_psn));
            }
            engine_.schedule(*this);
            return;
        case QpState::Sqd:
            state_ = to;
            if (from != QpState::Sqd) {
                drain_pending_ = attributes_.sqd_notify;
                engine_.schedule(*this);
            }
            return;
        case QpState::Error:
            if (from != QpState::Error) {
                fail();
            }
            return;
        case QpState::Init:
        case QpState::Sqe:
            state_ = to;
            return;
    }
}

void QueuePair::fail() {
    if (state_ == QpState::Error) {
        return;
    }
    state_ = QpState::Error;
    requester_.stop();
    responder_.stop();
    drain_pending_ = false;
    flush();
}

void QueuePair::flush() {
    engine_.counters().req_flushes.add();
    engine_.counters().resp_flushes.add();
    owner_.flushed(Side::Send);
    owner_.flushed(Side::Receive);
}

void QueuePair::drained() {
    if (drain_pending_) {
        drain_pending_ = false;
        owner_.raise(QpEvent::SqDrained);
    }
}

void QueuePair::send_posted(std::uint32_t producer_index) {
    if (state_ == QpState::Reset) {
        return;
    }
    requester_.posted(producer_index, identity_.sq_depth - 1);
    if (state_ == QpState::Error) {
        requester_.stop();
        engine_.counters().req_flushes.add();
        owner_.flushed(Side::Send);
    } else if (state_ == QpState::Rts) {
        engine_.schedule(*this);
    }
}

bool QueuePair::step(Budget& budget) {
    const Budget before = budget;
    const Turned answers = responder_.step(budget);
    const Turned requests = requester_.step(budget);
    const Turned turned = std::max(answers, requests);
    if (turned == Turned::Blocked) {
        engine_.wait_for_room(*this, budget.bytes != before.bytes);
    }
    return turned == Turned::More;
}

void QueuePair::receive_posted(std::uint32_t producer_index) {
    if (state_ == QpState::Reset) {
        return;
    }
    responder_.posted(producer_index, identity_.rq_depth - 1);
    if (state_ == QpState::Error) {
        engine_.counters().resp_flushes.add();
        owner_.flushed(Side::Receive);
    }
}

}  // namespace ernic::rdma
