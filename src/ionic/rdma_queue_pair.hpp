// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "ionic/rdma_objects.hpp"
#include "ionic/send_queue.hpp"
#include "mem/ring.hpp"
#include "rdma/queue_pair.hpp"

namespace ernic::ionic {

/// A queue pair as the driver made it: its two rings, its completion queues, and how its completions are
/// written.
///
/// The host numbers the requests it considers remote and lets one "MSN" CQE complete all up to a number;
/// requests that end at this device (all of a UD QP, REG_MR, LOCAL_INV, BIND_MW) each need an "NPG" CQE of
/// their own, signalled or not (rdma-core 65 ionic_poll_cq, `ionic_rdma` 7.2 ionic_poll_send_msn / _npg).
/// Thread: device.
class RdmaQueuePair final : public rdma::QueueOwner {
  public:
    struct Identity {
        std::uint16_t dbid;
        std::uint32_t sq_cq_id;
        std::uint32_t rq_cq_id;
        /// Flag bits of CREATE_QP that MODIFY_QP repeats and QUERY_QP shows.
        std::uint32_t flags;
    };

    RdmaQueuePair(RdmaObjects& objects, mem::Ring send_ring, mem::Ring receive_ring, const Identity& identity,
                  const rdma::QueuePair::Identity& qp_identity);

    rdma::QueuePair& qp() { return qp_; }
    [[nodiscard]] const rdma::QueuePair& qp() const { return qp_; }
    [[nodiscard]] const Identity& identity() const { return identity_; }
    /// Page table entries held for both rings.
    [[nodiscard]] std::size_t page_entries() const {
        return send_ring_.page_entries() + receive_ring_.page_entries();
    }
    /// Address handle id whose header template the QP uses, for QUERY_QP bookkeeping.
    std::uint32_t ah_id = 0;
    /// Codes as MODIFY_QP gave them, to be shown by QUERY_QP.
    std::uint8_t rrq_depth = 0;
    std::uint8_t rsq_depth = 0;
    std::uint16_t access_flags = 0;

    /// The QP goes back to RESET: numbering starts anew.
    void restart();

    bool fetch_send(std::uint32_t position, rdma::WorkRequest& request) override;
    bool fetch_receive(std::uint32_t position, rdma::ReceiveRequest& request) override;
    void send_completed(const rdma::SendCompletion& completion) override;
    void send_batch_done() override;
    void receive_completed(const rdma::ReceiveCompletion& completion) override;
    void flushed(rdma::Side side) override;
    void raise(rdma::QpEvent event) override;

  private:
    void write_msn(wire::ionic_rdma::CqeStatus status);
    void write_npg(std::uint64_t wqe_id, wire::ionic_rdma::CqeStatus status);
    void pushed(RdmaObjects::Push result);

    RdmaObjects& objects_;
    mem::Ring send_ring_;
    mem::Ring receive_ring_;
    Identity identity_;
    /// Remote requests completed since RESET, and how many of them the host has been told of.
    std::uint32_t msn_ = 0;
    std::uint32_t msn_written_ = 0;
    bool msn_wanted_ = false;
    /// Position of the newest local request that has completed; older remote requests hide it until they are
    /// told.
    bool local_completed_ = false;
    std::uint32_t last_local_ = 0;
    rdma::QueuePair qp_;
};

}  // namespace ernic::ionic
