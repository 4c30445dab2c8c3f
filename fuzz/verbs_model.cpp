// SPDX-License-Identifier: MIT
#include "fuzz/verbs_model.hpp"

#include <algorithm>
#include <bit>

namespace ernic::fuzz {

namespace rw = wire::ionic_rdma;

namespace {

bool is_local(std::uint8_t op) {
    const auto known = static_cast<rw::SendOp>(op);
    return known == rw::SendOp::RegisterMr || known == rw::SendOp::LocalInvalidate ||
           known == rw::SendOp::BindMw;
}

}  // namespace

void VerbsModel::created(const QpPlan& plan) {
    pairs_[plan.qpn] = {};
    pairs_[plan.qpn].exists = true;
    pairs_[plan.qpn].plan = plan;
}

bool VerbsModel::has_send_room(std::uint32_t qpn) const {
    return pairs_[qpn].exists && pairs_[qpn].sends.size() < pairs_[qpn].plan.sq.mask();
}

bool VerbsModel::has_receive_room(std::uint32_t qpn) const {
    return pairs_[qpn].exists && pairs_[qpn].receives.size() < pairs_[qpn].plan.rq.mask();
}

void VerbsModel::posted_send(std::uint32_t qpn, std::uint64_t id, std::uint8_t op, bool signalled) {
    Pair& pair = pairs_[qpn];
    pair.sends.push_back({id, !pair.plan.datagram && !is_local(op), signalled, false});
}

std::size_t VerbsModel::signalled_sends(std::uint32_t qpn) const {
    const Pair& pair = pairs_[qpn];
    // The kernel is told of every request, and so is everybody of requests that end at the card.
    return static_cast<std::size_t>(
        std::count_if(pair.sends.begin(), pair.sends.end(), [&pair](const Send& send) {
            return !send.done && (send.signalled || !send.remote || pair.plan.dbid == 0);
        }));
}

void VerbsModel::completed(const rw::SendCqe& raw) {
    // All kinds of entry end alike, which is how the host tells them apart.
    const std::uint32_t word = raw.qid_type_flags.get();
    const std::uint32_t qpn = word >> 8U;
    const bool error = (word & rw::kCqeError) != 0;
    const auto status = static_cast<rw::CqeStatus>(raw.status_length.get());
    require(qpn < kQueuePairs && pairs_[qpn].exists, "completions name queue pairs that exist");
    Pair& pair = pairs_[qpn];
    const bool flush = error && status == rw::CqeStatus::Flushed;
    if (static_cast<rw::CqeType>(word >> 5U & 7U) == rw::CqeType::Receive) {
        if (flush) {
            pair.receive_flushed = true;
            return;
        }
        require(!pair.receive_flushed && !pair.receive_failed,
                "no receive completes after a failed or flushed one");
        require(!pair.receives.empty() && pair.receives.front() == std::bit_cast<rw::ReceiveCqe>(raw).wqe_id,
                "receives complete once and in order");
        pair.receives.pop_front();
        pair.receive_failed = error;
        return;
    }
    if (flush) {
        pair.send_flushed = true;
        return;
    }
    require(!pair.send_flushed && !pair.send_failed, "no send completes after a failed or flushed one");
    if (static_cast<rw::CqeType>(word >> 5U & 7U) == rw::CqeType::SendMsn) {
        send_by_number(pair, raw.msn.get(), error);
    } else {
        send_by_id(pair, raw.wqe_id, error);
    }
    pair.send_failed = error;
    drop_done(pair);
}

void VerbsModel::send_by_number(Pair& pair, std::uint32_t msn, bool error) {
    std::uint32_t newly = msn - pair.msn;
    require(newly != 0, "a completion by number tells something new");
    pair.msn = msn;
    for (Send& send : pair.sends) {
        if (newly != 0 && send.remote && !send.done) {
            send.done = true;
            --newly;
        }
    }
    require(newly == 0, error ? "a failed send was posted" : "only posted sends complete");
}

void VerbsModel::send_by_id(Pair& pair, std::uint64_t id, bool /*error*/) {
    const auto oldest = std::find_if(pair.sends.begin(), pair.sends.end(),
                                     [](const Send& send) { return !send.remote && !send.done; });
    require(oldest != pair.sends.end() && oldest->id == id, "local requests complete once and in order");
    oldest->done = true;
}

void VerbsModel::drop_done(Pair& pair) {
    while (!pair.sends.empty() && pair.sends.front().done) {
        pair.sends.pop_front();
    }
}

}  // namespace ernic::fuzz
