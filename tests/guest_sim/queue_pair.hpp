// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "guest_sim/address.hpp"
#include "guest_sim/completion_queue.hpp"
#include "guest_sim/rdma_driver.hpp"
#include "guest_sim/requests.hpp"
#include "guest_sim/wqe.hpp"
#include "wire/ionic_rdma.hpp"

namespace ernic::guest_sim {

enum class QpState : std::uint8_t { Reset, Init, Rtr, Rts, Sqd, Sqe, Error };
enum class QpType : std::uint8_t { Rc = 0, Uc = 1, Ud = 3 };

/// What MODIFY_QP is to change; what is not named travels as garbage behind a clear mask bit, as ib_mad and
/// rdma_cm do it.
struct QpAttributes {
    std::optional<QpState> state = std::nullopt;
    /// kQpRemoteWrite, kQpRemoteRead, kQpRemoteAtomic.
    std::optional<std::uint16_t> access = std::nullopt;
    std::optional<std::uint32_t> qkey = std::nullopt;
    std::optional<std::uint32_t> destination_qpn = std::nullopt;
    std::optional<Address> address = std::nullopt;
    std::optional<std::uint8_t> mtu_log2 = std::nullopt;
    std::optional<std::uint32_t> rq_psn = std::nullopt;
    std::optional<std::uint32_t> sq_psn = std::nullopt;
    std::optional<std::uint8_t> timeout = std::nullopt;
    std::optional<std::uint8_t> retry_count = std::nullopt;
    std::optional<std::uint8_t> rnr_retry = std::nullopt;
    std::optional<std::uint8_t> min_rnr_timer = std::nullopt;
    std::optional<std::uint32_t> max_rd_atomic = std::nullopt;
    std::optional<std::uint32_t> max_dest_rd_atomic = std::nullopt;
    std::optional<bool> sqd_notify = std::nullopt;
};

/// What QUERY_QP shows.
struct QpQuery {
    wire::ionic_rdma::QuerySqRecord sq;
    wire::ionic_rdma::QueryRqRecord rq;

    [[nodiscard]] QpState state() const { return static_cast<QpState>(rq.state_pmtu >> 4U); }
};

/// A verbs queue pair on the guest's side: rings, bookkeeping of what was posted, and completion in the
/// drivers' terms: remote requests by cumulative MSN, local ones each by its own entry, always from the head
/// of the send queue (rdma-core 65, ionic_post_send, ionic_poll_send).
class QueuePair {
  public:
    struct Options {
        QpType type = QpType::Rc;
        std::uint32_t pd = 0;
        std::uint16_t dbid = 1;
        std::uint32_t max_send = 63;
        std::uint32_t max_receive = 63;
        std::uint32_t max_sges = 2;
        std::uint32_t max_inline = 0;
        /// Kernel QPs: key 0 is any bus address.
        bool privileged = false;
        bool remote_privileged = false;
        /// Pipeline; the driver alternates.
        std::uint32_t udma = 0;
        /// A particular number instead of the next free one.
        std::optional<std::uint32_t> qpn = std::nullopt;
    };

    /// Both queues must outlive the QP.
    QueuePair(RdmaDriver& driver, CompletionQueue& send_cq, CompletionQueue& receive_cq,
              const Options& options);
    ~QueuePair();
    QueuePair(const QueuePair&) = delete;
    QueuePair& operator=(const QueuePair&) = delete;

    /// Posts one request and rings the doorbell. Fails: GuestError when the queue is full.
    void post_send(const SendRequest& request) { stage(request), ring_send(); }
    void post_local(const RegisterRequest& request) { stage(request), ring_send(); }
    void post_local(const BindRequest& request) { stage(request), ring_send(); }
    void post_local(const InvalidateRequest& request) { stage(request), ring_send(); }
    void post_receive(const ReceiveRequest& request) { stage(request), ring_receive(); }

    /// Posts without ringing, to ring once for many.
    void stage(const SendRequest& request);
    void stage(const RegisterRequest& request);
    void stage(const BindRequest& request);
    void stage(const InvalidateRequest& request);
    void stage(const ReceiveRequest& request);
    /// Stages whatever bytes the test likes as a remote request.
    void stage_raw(Bytes entry);
    void ring_send() { ring_send(options_.dbid); }
    /// Rings from page `dbid`, which need not be the QP's.
    void ring_send(std::uint16_t dbid);
    void ring_receive() { ring_receive(options_.dbid); }
    void ring_receive(std::uint16_t dbid);

    void modify(const QpAttributes& attributes);
    [[nodiscard]] wire::ionic_rdma::AdminStatus try_modify(const QpAttributes& attributes);
    void to(QpState state) { modify({.state = state}); }
    [[nodiscard]] QpQuery query();
    void destroy();

    [[nodiscard]] std::uint32_t qpn() const { return qpn_; }
    [[nodiscard]] std::uint32_t udma() const { return driver_.udma_of(qpn_); }
    [[nodiscard]] const Options& options() const { return options_; }
    [[nodiscard]] std::uint32_t send_capacity() const { return send_.mask; }
    [[nodiscard]] std::uint32_t send_room() const { return send_.mask - (send_.producer - send_.consumer); }
    [[nodiscard]] std::size_t send_stride() const { return send_.stride; }
    [[nodiscard]] EventQueue& async_events() { return driver_.async_events(qpn_); }
    [[nodiscard]] Event event(wire::ionic_rdma::QpEvent code) const;

    /// Hardware completion entries of each kind seen for this QP.
    struct EntriesSeen {
        std::uint32_t msn = 0;
        std::uint32_t npg = 0;
        std::uint32_t receive = 0;
        std::uint32_t send_flush = 0;
        std::uint32_t receive_flush = 0;
    };
    [[nodiscard]] const EntriesSeen& entries() const { return entries_; }

    // For CompletionQueue: digests entries and yields completions.
    void on_msn(std::uint32_t msn, Status status);
    void on_npg(std::uint64_t wqe_id, Status status);
    /// False when the entry was a flush announcement.
    bool on_receive(const wire::ionic_rdma::ReceiveCqe& cqe, bool error, WorkCompletion& out);
    bool next_send(WorkCompletion& out);
    bool next_flushed_receive(WorkCompletion& out);
    [[nodiscard]] const CompletionQueue& send_cq() const { return send_cq_; }
    [[nodiscard]] const CompletionQueue& receive_cq() const { return receive_cq_; }

  private:
    struct Ring {
        Buffer memory;
        std::size_t stride = 64;
        std::uint32_t mask = 0;
        std::uint32_t producer = 0;
        std::uint32_t consumer = 0;
        [[nodiscard]] MutableBytes entry(std::uint32_t position) const {
            return {memory.host + std::size_t{position & mask} * stride, stride};
        }
        [[nodiscard]] bool full() const { return producer - consumer == mask; }
        [[nodiscard]] bool empty() const { return producer == consumer; }
    };
    struct SendMeta {
        std::uint64_t wr_id = 0;
        Op op = Op::Send;
        std::uint32_t length = 0;
        std::uint32_t sequence = 0;
        Status status = Status::Ok;
        bool remote = false;
        bool signalled = false;
        bool local_done = false;
    };

    void create();
    Ring make_ring(std::uint32_t requests, std::size_t stride);
    void describe(const Ring& ring, wire::ionic_rdma::RingGeometry& geometry, le32& map_count, le64& address);
    MutableBytes take_send_slot();
    void sent(std::uint64_t wr_id, Op op, std::uint64_t length, bool remote, bool signalled);
    void restart();

    RdmaDriver& driver_;
    CompletionQueue& send_cq_;
    CompletionQueue& receive_cq_;
    Options options_;
    std::uint32_t qpn_;
    SglFormat format_ = SglFormat::Plain;
    Ring send_;
    Ring receive_;
    std::vector<SendMeta> send_meta_;
    /// Slot of each remote request by its number.
    std::vector<std::uint32_t> msn_slots_;
    std::uint32_t msn_producer_ = 0;
    std::uint32_t msn_consumer_ = 0;
    std::vector<std::uint64_t> receive_ids_;
    bool send_flush_announced_ = false;
    bool send_flushing_ = false;
    bool receive_flushing_ = false;
    EntriesSeen entries_;
    Buffer scratch_;
};

}  // namespace ernic::guest_sim
