// SPDX-License-Identifier: MIT
#include "ionic/rdma_queue_pair.hpp"

#include <utility>

#include "ionic/recv_queue.hpp"

namespace ernic::ionic {

namespace rdma_wire = wire::ionic_rdma;
using rdma::CompletionStatus;
using rdma_wire::CqeStatus;

namespace {

CqeStatus status_of(CompletionStatus status) {
    switch (status) {
        case CompletionStatus::Success:
            return CqeStatus::Ok;
        case CompletionStatus::LocalLength:
            return CqeStatus::LocalLength;
        case CompletionStatus::LocalQpOperation:
            return CqeStatus::LocalQpOperation;
        case CompletionStatus::LocalProtection:
            return CqeStatus::LocalProtection;
        case CompletionStatus::MemoryManagement:
            return CqeStatus::MemoryManagement;
        case CompletionStatus::BadResponse:
            return CqeStatus::BadResponse;
        case CompletionStatus::LocalAccess:
            return CqeStatus::LocalAccess;
        case CompletionStatus::RemoteInvalidRequest:
            return CqeStatus::RemoteInvalidRequest;
        case CompletionStatus::RemoteAccess:
            return CqeStatus::RemoteAccess;
        case CompletionStatus::RemoteOperation:
            return CqeStatus::RemoteOperation;
        case CompletionStatus::RetryExceeded:
            return CqeStatus::RetryExceeded;
        case CompletionStatus::RnrRetryExceeded:
            return CqeStatus::RnrRetryExceeded;
    }
    return CqeStatus::LocalQpOperation;
}

rdma_wire::ReceiveOp op_of(rdma::ReceiveKind kind) {
    switch (kind) {
        case rdma::ReceiveKind::Send:
            return rdma_wire::ReceiveOp::Send;
        case rdma::ReceiveKind::SendInvalidate:
            return rdma_wire::ReceiveOp::SendInvalidate;
        case rdma::ReceiveKind::SendImmediate:
            return rdma_wire::ReceiveOp::SendImmediate;
        case rdma::ReceiveKind::WriteImmediate:
            return rdma_wire::ReceiveOp::WriteImmediate;
    }
    return rdma_wire::ReceiveOp::Send;
}

}  // namespace

RdmaQueuePair::RdmaQueuePair(RdmaObjects& objects, mem::Ring send_ring, mem::Ring receive_ring,
                             const Identity& identity, const rdma::QueuePair::Identity& qp_identity)
    : objects_(objects),
      send_ring_(std::move(send_ring)),
      receive_ring_(std::move(receive_ring)),
      identity_(identity),
      qp_(objects.engine(), *this, qp_identity) {
}

void RdmaQueuePair::restart() {
    msn_ = msn_written_ = 0;
    msn_wanted_ = false;
    local_completed_ = false;
}

bool RdmaQueuePair::fetch_send(std::uint32_t position, rdma::WorkRequest& request) {
    const WqeLayout layout = identity_.dbid == 0 ? WqeLayout::Kernel : WqeLayout::User;
    return ionic::fetch_send(objects_.memory(), send_ring_, position, layout, request);
}

bool RdmaQueuePair::fetch_receive(std::uint32_t position, rdma::ReceiveRequest& request) {
    return ionic::fetch_receive(objects_.memory(), receive_ring_, position, request);
}

void RdmaQueuePair::pushed(RdmaObjects::Push result) {
    if (result == RdmaObjects::Push::Failed) {
        // A completion that cannot be delivered is lost for good, so the QP must not pretend to work.
        qp_.fail();
    }
}

void RdmaQueuePair::write_msn(CqeStatus status) {
    rdma_wire::SendCqe cqe{};
    cqe.msn.set(msn_);
    cqe.status_length.set(static_cast<std::uint32_t>(status));
    msn_written_ = msn_;
    msn_wanted_ = false;
    const bool error = status != CqeStatus::Ok;
    pushed(objects_.push(identity_.sq_cq_id, mutable_bytes_of(cqe),
                         rdma_wire::cqe_flags(qp_.qpn(), rdma_wire::CqeType::SendMsn, error), false));
}

void RdmaQueuePair::write_npg(std::uint64_t wqe_id, CqeStatus status) {
    rdma_wire::SendCqe cqe{};
    cqe.wqe_id = wqe_id;
    cqe.status_length.set(static_cast<std::uint32_t>(status));
    const bool error = status != CqeStatus::Ok;
    pushed(objects_.push(identity_.sq_cq_id, mutable_bytes_of(cqe),
                         rdma_wire::cqe_flags(qp_.qpn(), rdma_wire::CqeType::SendNpg, error), false));
}

void RdmaQueuePair::send_completed(const rdma::SendCompletion& completion) {
    const bool failed = completion.status != CompletionStatus::Success;
    if (qp_.identity().type == rdma::QpType::Ud || rdma::is_local(completion.opcode)) {
        if (msn_ != msn_written_) {
            write_msn(CqeStatus::Ok);
        }
        local_completed_ = true;
        last_local_ = completion.position;
        write_npg(completion.id, status_of(completion.status));
        return;
    }
    if (failed) {
        if (msn_wanted_) {
            write_msn(CqeStatus::Ok);
        }
        ++msn_;
        write_msn(status_of(completion.status));
        return;
    }
    ++msn_;
    // The kernel gives a CQ slot back per CQE it reads, so it gets one for each request (dbid 0 is the
    // kernel's).
    if (identity_.dbid == 0) {
        write_msn(CqeStatus::Ok);
        return;
    }
    const bool hides_local =
        local_completed_ && static_cast<std::int32_t>(last_local_ - completion.position) > 0;
    msn_wanted_ = msn_wanted_ || completion.signalled || hides_local;
}

void RdmaQueuePair::send_batch_done() {
    if (msn_wanted_) {
        write_msn(CqeStatus::Ok);
    }
}

void RdmaQueuePair::receive_completed(const rdma::ReceiveCompletion& completion) {
    rdma_wire::ReceiveCqe cqe{};
    cqe.wqe_id = completion.id;
    std::uint32_t source = (completion.source_qpn & 0xffffffU) |
                           std::uint32_t{static_cast<std::uint8_t>(op_of(completion.kind))} << 24U;
    if (completion.route != nullptr) {
        cqe.source_mac = completion.route->source.bytes;
        if (completion.route->ipv4) {
            source |= rdma_wire::kReceiveIpv4;
        }
        if (completion.route->vlan_tci) {
            source |= rdma_wire::kReceiveVlan;
            cqe.vlan_tag.set(*completion.route->vlan_tci);
        }
    }
    cqe.source_qpn_op.set(source);
    cqe.immediate_or_rkey.set(completion.immediate_or_key);
    const bool error = completion.status != CompletionStatus::Success;
    cqe.status_length.set(error ? static_cast<std::uint32_t>(status_of(completion.status))
                                : completion.length);
    pushed(objects_.push(identity_.rq_cq_id, mutable_bytes_of(cqe),
                         rdma_wire::cqe_flags(qp_.qpn(), rdma_wire::CqeType::Receive, error),
                         completion.solicited));
}

void RdmaQueuePair::flushed(rdma::Side side) {
    if (side == rdma::Side::Send) {
        if (msn_wanted_) {
            write_msn(CqeStatus::Ok);
        }
        write_npg(0, CqeStatus::Flushed);
        return;
    }
    rdma_wire::ReceiveCqe cqe{};
    cqe.status_length.set(static_cast<std::uint32_t>(CqeStatus::Flushed));
    pushed(objects_.push(identity_.rq_cq_id, mutable_bytes_of(cqe),
                         rdma_wire::cqe_flags(qp_.qpn(), rdma_wire::CqeType::Receive, true), true));
}

void RdmaQueuePair::raise(rdma::QpEvent event) {
    switch (event) {
        case rdma::QpEvent::SqDrained:
            objects_.raise(qp_.qpn(), rdma_wire::QpEvent::SqDrained);
            break;
        case rdma::QpEvent::CommunicationEstablished:
            objects_.raise(qp_.qpn(), rdma_wire::QpEvent::CommunicationEstablished);
            break;
        case rdma::QpEvent::Fatal:
            objects_.raise(qp_.qpn(), rdma_wire::QpEvent::Fatal);
            break;
        case rdma::QpEvent::RequestError:
            objects_.raise(qp_.qpn(), rdma_wire::QpEvent::RequestError);
            break;
        case rdma::QpEvent::AccessError:
            objects_.raise(qp_.qpn(), rdma_wire::QpEvent::AccessError);
            break;
    }
}

}  // namespace ernic::ionic
