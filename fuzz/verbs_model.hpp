// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <deque>

#include "fuzz/verbs.hpp"

namespace ernic::fuzz {

/// What the host's side of verbs may expect of completions, kept as the drivers keep it (rdma-core 65
/// ionic_poll_cq): every posted request ends once, in order, and nothing follows a flush. Only for inputs
/// that play by the rules: honest doorbells, no CQ overflow unless said, rings nobody else writes to.
class VerbsModel {
  public:
    static constexpr std::uint32_t kQueuePairs = 8;

    /// Also for a queue pair that went back to RESET.
    void created(const QpPlan& plan);
    void destroyed(std::uint32_t qpn) { pairs_[qpn] = {}; }

    [[nodiscard]] bool has_send_room(std::uint32_t qpn) const;
    [[nodiscard]] bool has_receive_room(std::uint32_t qpn) const;
    void posted_send(std::uint32_t qpn, std::uint64_t id, std::uint8_t op, bool signalled);
    void posted_receive(std::uint32_t qpn, std::uint64_t id) { pairs_[qpn].receives.push_back(id); }

    /// A completion has been read. Fails the run when it may not exist.
    void completed(const wire::ionic_rdma::SendCqe& raw);

    /// Requests whose completion the host is still waiting for.
    [[nodiscard]] std::size_t signalled_sends(std::uint32_t qpn) const;
    [[nodiscard]] std::size_t receives(std::uint32_t qpn) const { return pairs_[qpn].receives.size(); }
    [[nodiscard]] bool failed(std::uint32_t qpn) const {
        return pairs_[qpn].send_failed || pairs_[qpn].send_flushed || pairs_[qpn].receive_failed ||
               pairs_[qpn].receive_flushed;
    }
    [[nodiscard]] bool flushed(std::uint32_t qpn) const {
        return pairs_[qpn].send_flushed && pairs_[qpn].receive_flushed;
    }

  private:
    struct Send {
        std::uint64_t id;
        /// Completed by number (MSN), not by itself (NPG).
        bool remote;
        bool signalled;
        bool done;
    };
    struct Pair {
        bool exists = false;
        QpPlan plan;
        std::deque<Send> sends;
        std::deque<std::uint64_t> receives;
        std::uint32_t msn = 0;
        bool send_failed = false;
        bool send_flushed = false;
        bool receive_failed = false;
        bool receive_flushed = false;
    };

    void send_by_number(Pair& pair, std::uint32_t msn, bool error);
    void send_by_id(Pair& pair, std::uint64_t id, bool error);
    static void drop_done(Pair& pair);

    std::array<Pair, kQueuePairs> pairs_;
};

}  // namespace ernic::fuzz
