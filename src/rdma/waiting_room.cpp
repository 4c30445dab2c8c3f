// SPDX-License-Identifier: MIT
#include "rdma/waiting_room.hpp"

#include <algorithm>

#include "rdma/queue_pair.hpp"

namespace ernic::rdma {

void WaitingRoom::add(net::Port& port, QueuePair& qp, bool served) {
    Row& row = rows_[&port];
    if (qp.identity().type == QpType::Ud) {
        row.datagrams.push_back(qp);
    } else {
        (served ? row.served : row.hungry).push_back(qp);
    }
}

void WaitingRoom::open(net::Port& port) {
    if (rows_.contains(&port) && std::find(open_.begin(), open_.end(), &port) == open_.end()) {
        open_.push_back(&port);
    }
}

void WaitingRoom::close(net::Port& port, TurnQueue& ready) {
    std::erase(open_, &port);
    const auto found = rows_.find(&port);
    if (found == rows_.end()) {
        return;
    }
    Row& row = found->second;
    for (TurnQueue* const queue : {&row.datagrams, &row.hungry, &row.served}) {
        while (QueuePair* const qp = queue->first()) {
            queue->remove(*qp);
            ready.push_back(*qp);
        }
    }
    rows_.erase(found);
}

QueuePair* WaitingRoom::pick(const Row& row, const net::Port& port) {
    if (!row.datagrams.empty() && port.ready(true)) {
        return row.datagrams.first();
    }
    if (!port.ready(false)) {
        return nullptr;
    }
    return row.hungry.empty() ? row.served.first() : row.hungry.first();
}

QueuePair* WaitingRoom::next() {
    while (!open_.empty()) {
        net::Port& port = *open_.back();
        const auto row = rows_.find(&port);
        if (QueuePair* const qp = pick(row->second, port)) {
            qp->turn.queue->remove(*qp);
            // The other ports come first now.
            std::rotate(open_.begin(), open_.end() - 1, open_.end());
            return qp;
        }
        // It tells when it is ready again; without anybody left it need not.
        open_.pop_back();
        if (row->second.datagrams.empty() && row->second.hungry.empty() && row->second.served.empty()) {
            rows_.erase(row);
        }
    }
    return nullptr;
}

void WaitingRoom::forget() {
    rows_.clear();
    open_.clear();
}

}  // namespace ernic::rdma
