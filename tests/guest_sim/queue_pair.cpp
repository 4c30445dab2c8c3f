// SPDX-License-Identifier: MIT
#include "guest_sim/queue_pair.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "guest_sim/error.hpp"

namespace ernic::guest_sim {
namespace {

namespace w = wire::ionic_rdma;

constexpr std::size_t kMinStride = 64;
constexpr std::uint8_t kPageLog2 = 12;
/// Most SGEs whose list fits the plain format of a 64-byte slot.
constexpr std::uint32_t kPlainSges = 2;

std::size_t stride_for(std::uint32_t sges, std::uint32_t inline_bytes) {
    const std::size_t list = sges <= kPlainSges ? w::kSglOffset + sges * sizeof(w::Sge)
                                                : w::kSpecSglOffset + sges * sizeof(w::Sge);
    return std::bit_ceil(std::max({kMinStride, list, w::kSglOffset + inline_bytes}));
}

std::uint8_t log2_of(std::size_t value) {
    return static_cast<std::uint8_t>(std::countr_zero(value));
}

std::uint8_t ceil_log2(std::uint32_t value) {
    return static_cast<std::uint8_t>(std::countr_zero(std::bit_ceil(value)));
}

}  // namespace

QueuePair::QueuePair(RdmaDriver& driver, CompletionQueue& send_cq, CompletionQueue& receive_cq,
                     const Options& options)
    : driver_(driver),
      send_cq_(send_cq),
      receive_cq_(receive_cq),
      options_(options),
      qpn_(options.qpn ? *options.qpn : driver.queue_pair_ids().take(options.udma)),
      format_(options.max_sges <= kPlainSges ? SglFormat::Plain : SglFormat::Spec32),
      send_(make_ring(options.max_send, stride_for(options.max_sges, options.max_inline))),
      receive_(make_ring(options.max_receive, stride_for(options.max_sges, 0))),
      send_meta_(send_.mask + std::size_t{1}),
      msn_slots_(send_.mask + std::size_t{1}),
      receive_ids_(receive_.mask + std::size_t{1}) {
    create();
    driver_.set_queue_pair(qpn_, this);
}

QueuePair::~QueuePair() {
    if (driver_.queue_pair(qpn_) == this) {
        driver_.set_queue_pair(qpn_, nullptr);
    }
}

QueuePair::Ring QueuePair::make_ring(std::uint32_t requests, std::size_t stride) {
    // One slot stays empty, and the ring fills at least a page.
    const std::size_t depth = std::max<std::size_t>(std::bit_ceil(requests + 1), kPage / stride);
    Ring ring;
    ring.memory = driver_.card().ram().allocate(depth * stride);
    ring.stride = stride;
    ring.mask = static_cast<std::uint32_t>(depth - 1);
    return ring;
}

void QueuePair::describe(const Ring& ring, w::RingGeometry& geometry, le32& map_count, le64& address) {
    geometry = {log2_of(ring.mask + std::size_t{1}), log2_of(ring.stride), 0, 0};
    const std::size_t pages = ring.memory.size / kPage;
    map_count.set(1);
    address.set(ring.memory.iova);
    if (options_.dbid != 0) {
        geometry.page_size_log2 = kPageLog2;
        if (pages > 1) {
            const Buffer table = driver_.card().ram().allocate(pages * sizeof(le64));
            for (std::size_t i = 0; i < pages; ++i) {
                table.set(le64(ring.memory.iova + i * kPage), i * sizeof(le64));
            }
            map_count.set(static_cast<std::uint32_t>(pages));
            address.set(table.iova);
        }
    }
}

void QueuePair::create() {
    w::CreateQp command{};
    command.pd_id.set(options_.pd);
    command.flags.set((options_.privileged ? w::kQpPrivileged : 0) |
                      (options_.remote_privileged ? w::kQpRemotePrivileged : 0));
    const std::uint32_t pipeline = driver_.udma_of(qpn_);
    command.sq_cq_id.set(send_cq_.id(pipeline));
    command.rq_cq_id.set(receive_cq_.id(pipeline));
    command.sq_tbl_index.set(0xffffffff);
    command.rq_tbl_index.set(0xffffffff);
    describe(send_, command.sq_ring, command.sq_map_count, command.sq_dma_addr);
    describe(receive_, command.rq_ring, command.rq_map_count, command.rq_dma_addr);
    command.id_ver.set(qpn_);
    command.dbid.set(options_.dbid);
    command.type_state = static_cast<std::uint8_t>(options_.type);
    driver_.command(w::AdminOp::CreateQp, command);
}

void QueuePair::destroy() {
    driver_.command(w::AdminOp::DestroyQp, w::Destroy{le32(qpn_)});
    restart();
    driver_.set_queue_pair(qpn_, nullptr);
    driver_.queue_pair_ids().release(qpn_);
}

// ---------------------------------------------------------------------------------------------------------------
// Posting

MutableBytes QueuePair::take_send_slot() {
    require(!send_.full(), "send queue is full");
    return send_.entry(send_.producer);
}

void QueuePair::sent(std::uint64_t wr_id, Op op, std::uint64_t length, bool remote, bool signalled) {
    const std::uint32_t slot = send_.producer & send_.mask;
    SendMeta& meta = send_meta_[slot];
    meta = {};
    meta.wr_id = wr_id;
    meta.op = op;
    meta.length = static_cast<std::uint32_t>(length);
    meta.signalled = signalled;
    meta.remote = remote;
    if (remote) {
        meta.sequence = msn_producer_ & send_.mask;
        msn_slots_[meta.sequence] = slot;
        ++msn_producer_;
    }
    ++send_.producer;
    send_cq_.reserve(udma(), 1);
}

void QueuePair::stage(const SendRequest& request) {
    const bool datagram = options_.type == QpType::Ud;
    encode(take_send_slot(), static_cast<std::uint16_t>(send_.producer & send_.mask), format_, datagram,
           request);
    sent(request.wr_id, request.op,
         request.inline_data.empty() ? request.sges.bytes() : request.inline_data.size(), !datagram,
         request.signalled);
}

void QueuePair::stage(const RegisterRequest& request) {
    encode(take_send_slot(), static_cast<std::uint16_t>(send_.producer & send_.mask), request);
    sent(request.wr_id, Op::RegisterMr, 0, false, request.signalled);
}

void QueuePair::stage(const BindRequest& request) {
    encode(take_send_slot(), static_cast<std::uint16_t>(send_.producer & send_.mask), request);
    sent(request.wr_id, Op::BindMw, 0, false, request.signalled);
}

void QueuePair::stage(const InvalidateRequest& request) {
    encode(take_send_slot(), static_cast<std::uint16_t>(send_.producer & send_.mask), request);
    sent(request.wr_id, Op::LocalInvalidate, 0, false, request.signalled);
}

void QueuePair::stage_raw(Bytes entry) {
    const MutableBytes slot = take_send_slot();
    require(entry.size() <= slot.size(), "raw entry larger than the slot");
    std::copy(entry.begin(), entry.end(), slot.begin());
    sent(0, Op::Send, 0, options_.type != QpType::Ud, true);
}

void QueuePair::stage(const ReceiveRequest& request) {
    require(!receive_.full(), "receive queue is full");
    const std::uint32_t slot = receive_.producer & receive_.mask;
    encode(receive_.entry(receive_.producer), static_cast<std::uint16_t>(slot), format_, request);
    receive_ids_[slot] = request.wr_id;
    ++receive_.producer;
    receive_cq_.reserve(udma(), 1);
}

void QueuePair::ring_send(std::uint16_t dbid) {
    driver_.card().ring(
        dbid, driver_.identity().send_queues.type,
        w::Doorbell::make(qpn_, 0, static_cast<std::uint16_t>(send_.producer & send_.mask)).value());
}

void QueuePair::ring_receive(std::uint16_t dbid) {
    driver_.card().ring(
        dbid, driver_.identity().receive_queues.type,
        w::Doorbell::make(qpn_, 0, static_cast<std::uint16_t>(receive_.producer & receive_.mask)).value());
}

// ---------------------------------------------------------------------------------------------------------------
// Completing

void QueuePair::on_msn(std::uint32_t msn, Status status) {
    ++entries_.msn;
    // The entry completes the requests numbered below `msn`; msn - 1 must be one that is under way.
    const std::uint32_t newest = (msn - 1 - msn_consumer_) & send_.mask;
    require(newest < msn_producer_ - msn_consumer_, "MSN outside the window: a real CQ would be stuck now");
    msn_consumer_ += newest + 1;
    if (status != Status::Ok) {
        send_meta_[msn_slots_[(msn_consumer_ - 1) & send_.mask]].status = status;
    }
}

void QueuePair::on_npg(std::uint64_t wqe_id, Status status) {
    if (status == Status::Flushed) {
        ++entries_.send_flush;
        send_flush_announced_ = true;
        return;
    }
    ++entries_.npg;
    require(wqe_id <= send_.mask, "completion for a request that does not exist");
    const auto slot = static_cast<std::uint32_t>(wqe_id);
    require(((slot - send_.consumer) & send_.mask) < send_.producer - send_.consumer,
            "completion for a request that is not posted");
    SendMeta& meta = send_meta_[slot];
    require(!meta.local_done, "second completion of one request");
    meta.local_done = true;
    if (status != Status::Ok) {
        meta.status = status;
        meta.remote = false;
    }
}

bool QueuePair::next_send(WorkCompletion& out) {
    while (!send_.empty()) {
        SendMeta& meta = send_meta_[send_.consumer & send_.mask];
        if (!send_flushing_) {
            const bool done =
                meta.remote ? meta.sequence != (msn_consumer_ & send_.mask) || msn_consumer_ == msn_producer_
                            : meta.local_done;
            if (!done) {
                if (!send_flush_announced_) {
                    return false;
                }
                send_flushing_ = true;
                continue;
            }
        }
        ++send_.consumer;
        send_cq_.retired(udma());
        const Status status = send_flushing_ ? Status::Flushed : meta.status;
        if (status == Status::Ok && !meta.signalled) {
            continue;
        }
        if (status != Status::Ok) {
            // The first error ends the normal completions; the rest is flushed.
            send_flushing_ = true;
        }
        out = WorkCompletion{};
        out.wr_id = meta.wr_id;
        out.status = status;
        out.qpn = qpn_;
        out.op = meta.op;
        out.length = meta.length;
        return true;
    }
    return false;
}

bool QueuePair::on_receive(const w::ReceiveCqe& cqe, bool error, WorkCompletion& out) {
    const auto status = error ? static_cast<Status>(cqe.status_length.get()) : Status::Ok;
    if (status == Status::Flushed) {
        ++entries_.receive_flush;
        receive_flushing_ = true;
        return false;
    }
    ++entries_.receive;
    require(!receive_.empty(), "receive completion without a posted receive");
    require(cqe.wqe_id == (receive_.consumer & receive_.mask), "receive completion of another request");
    out = WorkCompletion{};
    out.wr_id = receive_ids_[receive_.consumer & receive_.mask];
    ++receive_.consumer;
    receive_cq_.retired(udma());
    const std::uint32_t source = cqe.source_qpn_op.get();
    out.status = status;
    out.receive = true;
    out.qpn = qpn_;
    out.receive_op = static_cast<ReceiveOp>(source >> 24U & 0x1fU);
    out.source_qpn = source & 0xffffffU;
    out.ipv4 = (source & w::kReceiveIpv4) != 0;
    out.has_vlan = (source & w::kReceiveVlan) != 0;
    out.vlan = cqe.vlan_tag.get();
    out.source_mac.bytes = cqe.source_mac;
    out.length = error ? 0 : cqe.status_length.get();
    out.immediate_or_key = cqe.immediate_or_rkey.get();
    if (error) {
        receive_flushing_ = true;
    }
    return true;
}

bool QueuePair::next_flushed_receive(WorkCompletion& out) {
    if (!receive_flushing_ || receive_.empty()) {
        return false;
    }
    out = WorkCompletion{};
    out.wr_id = receive_ids_[receive_.consumer & receive_.mask];
    out.status = Status::Flushed;
    out.receive = true;
    out.qpn = qpn_;
    ++receive_.consumer;
    receive_cq_.retired(udma());
    return true;
}

void QueuePair::restart() {
    send_cq_.forget(qpn_);
    receive_cq_.forget(qpn_);
    for (; !send_.empty(); ++send_.consumer) {
        send_cq_.retired(udma());
    }
    for (; !receive_.empty(); ++receive_.consumer) {
        receive_cq_.retired(udma());
    }
    send_.producer = send_.consumer = receive_.producer = receive_.consumer = 0;
    msn_producer_ = msn_consumer_ = 0;
    send_flush_announced_ = send_flushing_ = receive_flushing_ = false;
    entries_ = {};
}

// ---------------------------------------------------------------------------------------------------------------
// State

w::AdminStatus QueuePair::try_modify(const QpAttributes& attributes) {
    w::ModifyQp command;
    std::memset(mutable_bytes_of(command).data(), 0xa5, sizeof(command));
    std::uint32_t mask = 0;
    const auto given = [&mask](const auto& attribute, std::uint32_t bit) {
        mask |= attribute ? bit : 0;
        return attribute.has_value();
    };
    std::uint8_t retry = 0xa5;
    if (given(attributes.state, w::kAttrState)) {
        command.type_state = static_cast<std::uint8_t>(*attributes.state);
    }
    std::uint16_t access = 0;
    access |= options_.privileged ? w::kQpPrivileged : 0U;
    access |= options_.remote_privileged ? w::kQpRemotePrivileged : 0U;
    if (given(attributes.access, w::kAttrAccess)) {
        access |= *attributes.access;
    }
    if (given(attributes.sqd_notify, w::kAttrSqdNotify)) {
        access |= *attributes.sqd_notify ? w::kQpSqdNotify : 0U;
    }
    command.access_flags.set(access);
    if (given(attributes.qkey, w::kAttrQkey)) {
        command.qkey_or_dest_qpn.set(*attributes.qkey);
    }
    if (given(attributes.destination_qpn, w::kAttrDestQpn)) {
        command.qkey_or_dest_qpn.set(*attributes.destination_qpn);
    }
    if (given(attributes.mtu_log2, w::kAttrPathMtu)) {
        command.pmtu_log2 = *attributes.mtu_log2;
    }
    if (given(attributes.rq_psn, w::kAttrRqPsn)) {
        command.rq_psn.set(*attributes.rq_psn);
    }
    if (given(attributes.sq_psn, w::kAttrSqPsn)) {
        command.sq_psn.set(*attributes.sq_psn);
    }
    if (given(attributes.timeout, w::kAttrTimeout)) {
        command.retry_timeout = *attributes.timeout;
    }
    if (given(attributes.retry_count, w::kAttrRetryCount)) {
        retry = static_cast<std::uint8_t>((retry & 0xf0U) | *attributes.retry_count);
    }
    if (given(attributes.rnr_retry, w::kAttrRnrRetry)) {
        retry = static_cast<std::uint8_t>((retry & 0x0fU) | *attributes.rnr_retry << 4U);
    }
    command.retry = retry;
    if (given(attributes.min_rnr_timer, w::kAttrMinRnrTimer)) {
        command.rnr_timer = *attributes.min_rnr_timer;
    }
    if (given(attributes.max_rd_atomic, w::kAttrMaxRdAtomic)) {
        const std::uint32_t depth = *attributes.max_rd_atomic;
        command.rrq_depth = depth == 0 ? 0 : static_cast<std::uint8_t>(ceil_log2(depth + 2) - 1);
    }
    if (given(attributes.max_dest_rd_atomic, w::kAttrMaxDestRdAtomic)) {
        const std::uint32_t depth = *attributes.max_dest_rd_atomic;
        command.rsq_depth = depth == 0 ? 0 : ceil_log2(depth + 1);
    }
    if (given(attributes.address, w::kAttrAddressVector)) {
        const auto header = header_template(*attributes.address);
        scratch_ = scratch_.host != nullptr ? scratch_ : driver_.card().ram().allocate(kPage, 64);
        std::memcpy(scratch_.host, header.data(), header.size());
        command.ah_id_length.set(static_cast<std::uint32_t>(header.size()) << 24U |
                                 driver_.next_address_handle());
        command.dma_addr.set(scratch_.iova);
    }
    command.attr_mask.set(mask);
    command.id_ver.set(qpn_);
    const w::AdminStatus status = driver_.try_command(w::AdminOp::ModifyQp, command);
    if (status == w::AdminStatus::Ok && attributes.state == QpState::Reset) {
        restart();
    }
    return status;
}

void QueuePair::modify(const QpAttributes& attributes) {
    const w::AdminStatus status = try_modify(attributes);
    if (status != w::AdminStatus::Ok) {
        throw GuestError("MODIFY_QP failed with status " + std::to_string(static_cast<unsigned>(status)));
    }
}

QpQuery QueuePair::query() {
    const Buffer records = driver_.card().ram().allocate(2 * kPage);
    w::QueryQp command{};
    command.sq_dma.set(records.iova);
    command.rq_dma.set(records.iova + kPage);
    command.id_ver.set(qpn_);
    driver_.command(w::AdminOp::QueryQp, command);
    return {records.get<w::QuerySqRecord>(), records.get<w::QueryRqRecord>(kPage)};
}

Event QueuePair::event(w::QpEvent code) const {
    return {w::EventType::Qp, static_cast<std::uint8_t>(code), qpn_};
}

}  // namespace ernic::guest_sim
