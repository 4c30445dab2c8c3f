// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <bit>

#include "ionic/rdma_commands.hpp"
#include "ionic/rdma_queue_pair.hpp"
#include "net/route.hpp"

/// MODIFY_QP and QUERY_QP (`ionic_rdma` 7.2, ionic_modify_qp_cmd / ionic_query_qp_cmd).
namespace ernic::ionic {

namespace rdma_wire = wire::ionic_rdma;
using Status = rdma_wire::AdminStatus;

namespace {

constexpr std::uint32_t id_of(le32 id_ver) {
    return id_ver.get() & 0xffffffU;
}

constexpr std::uint8_t kMinMtuLog2 = 8;
constexpr std::uint8_t kMaxMtuLog2 = 12;
constexpr std::uint8_t kMaxDepthLog2 = 5;
constexpr std::size_t kMaxHeader = 66;
/// Bits of the access word that MODIFY_QP changes; the others are fixed at creation.
constexpr std::uint16_t kAccessMask =
    rdma_wire::kQpRemoteWrite | rdma_wire::kQpRemoteRead | rdma_wire::kQpRemoteAtomic;

/// Reads and atomics a requester may have under way. The driver turns the number n it was asked for into the
/// code ceil(log2(n + 2)) - 1 (`ionic_rdma` 7.2, ionic_modify_qp_cmd), so code c has to grant every n that
/// yields it.
constexpr std::uint32_t requester_depth(std::uint8_t code) {
    return code == 0 ? 0 : (2U << code) - 2;
}

/// What QUERY_QP reports for it: the driver shows 2^reported - 1, which must not be less than was asked for.
constexpr std::uint8_t reported_requester_depth(std::uint8_t code) {
    return code == 0 ? 0 : static_cast<std::uint8_t>(code + 1);
}

bool state_of(std::uint8_t code, rdma::QpState& state) {
    if (code > static_cast<std::uint8_t>(rdma::QpState::Error)) {
        return false;
    }
    state = static_cast<rdma::QpState>(code);
    return true;
}

}  // namespace

Status RdmaCommands::modify_attributes(RdmaQueuePair& qp, const rdma_wire::ModifyQp& command) {
    const std::uint32_t mask = command.attr_mask.get();
    const auto has = [mask](std::uint32_t bit) { return (mask & bit) != 0; };
    rdma::QpAttributes attributes = qp.qp().attributes();
    if (has(rdma_wire::kAttrAddressVector)) {
        std::array<std::byte, kMaxHeader> header;
        const std::uint32_t length = command.ah_id_length.get() >> 24U;
        if (length > header.size() ||
            !objects_.memory().read(mem::Iova{command.dma_addr.get()}, MutableBytes(header).first(length))) {
            return Status::BadAttribute;
        }
        const auto route = net::parse_route(Bytes(header).first(length));
        if (!route) {
            return Status::BadAttribute;
        }
        attributes.route = *route;
        qp.ah_id = command.ah_id_length.get() & 0xffffffU;
    }
    if (has(rdma_wire::kAttrPathMtu)) {
        if (command.pmtu_log2 < kMinMtuLog2 || command.pmtu_log2 > kMaxMtuLog2) {
            return Status::BadAttribute;
        }
        attributes.path_mtu = 1U << command.pmtu_log2;
    }
    const std::uint16_t access = command.access_flags.get();
    if (has(rdma_wire::kAttrAccess)) {
        attributes.remote_write = (access & rdma_wire::kQpRemoteWrite) != 0;
        attributes.remote_read = (access & rdma_wire::kQpRemoteRead) != 0;
        attributes.remote_atomic = (access & rdma_wire::kQpRemoteAtomic) != 0;
        qp.access_flags = access & kAccessMask;
    }
    if (has(rdma_wire::kAttrSqdNotify)) {
        attributes.sqd_notify = (access & rdma_wire::kQpSqdNotify) != 0;
    }
    if (has(rdma_wire::kAttrRqPsn)) {
        attributes.rq_psn = command.rq_psn.get() & 0xffffffU;
    }
    if (has(rdma_wire::kAttrSqPsn)) {
        attributes.sq_psn = command.sq_psn.get() & 0xffffffU;
    }
    if (has(rdma_wire::kAttrDestQpn) && qp.qp().identity().type == rdma::QpType::Rc) {
        attributes.destination_qpn = command.qkey_or_dest_qpn.get() & 0xffffffU;
    }
    if (has(rdma_wire::kAttrQkey) && qp.qp().identity().type == rdma::QpType::Ud) {
        attributes.qkey = command.qkey_or_dest_qpn.get();
    }
    if (has(rdma_wire::kAttrRateLimit)) {
        attributes.rate_limit_kbps = command.rate_limit_kbps.get();
    }
    if (has(rdma_wire::kAttrRetryCount)) {
        attributes.retry_count = command.retry & 0x7U;
    }
    if (has(rdma_wire::kAttrRnrRetry)) {
        attributes.rnr_retry = command.retry >> 4U & 0x7U;
    }
    if (has(rdma_wire::kAttrMinRnrTimer)) {
        attributes.min_rnr_timer = command.rnr_timer & 0x1fU;
    }
    if (has(rdma_wire::kAttrTimeout)) {
        attributes.timeout = command.retry_timeout & 0x1fU;
    }
    if (has(rdma_wire::kAttrMaxRdAtomic)) {
        // More than can be granted is granted as far as it goes: a program that gives back what QUERY_QP
        // showed asks for one step more each time.
        qp.rrq_depth = std::min(command.rrq_depth, kMaxDepthLog2);
        attributes.max_rd_atomic = requester_depth(qp.rrq_depth);
    }
    if (has(rdma_wire::kAttrMaxDestRdAtomic)) {
        qp.rsq_depth = std::min(command.rsq_depth, kMaxDepthLog2);
        attributes.max_dest_rd_atomic = (1U << qp.rsq_depth) - 1;
    }
    qp.qp().attributes() = attributes;
    return Status::Ok;
}

Status RdmaCommands::modify_qp(const rdma_wire::ModifyQp& command) {
    RdmaQueuePair* qp = objects_.queue_pair(id_of(command.id_ver));
    if (qp == nullptr) {
        return Status::BadIndex;
    }
    const bool changes_state = (command.attr_mask.get() & rdma_wire::kAttrState) != 0;
    rdma::QpState to = qp->qp().state();
    if (changes_state && (!state_of(command.type_state & 0xfU, to) || !qp->qp().may_enter(to))) {
        return Status::BadState;
    }
    if (const Status status = modify_attributes(*qp, command); status != Status::Ok) {
        return status;
    }
    if (!changes_state) {
        return Status::Ok;
    }
    // Entering RTR and RTS needs the peer's address, or the first message would go nowhere.
    if (to == rdma::QpState::Rtr && qp->qp().identity().type == rdma::QpType::Rc &&
        qp->qp().attributes().route.destination.zero()) {
        return Status::BadAttribute;
    }
    if (to == rdma::QpState::Reset) {
        qp->restart();
    }
    qp->qp().enter(to);
    return Status::Ok;
}

Status RdmaCommands::query_qp(const rdma_wire::QueryQp& command) {
    const RdmaQueuePair* owner = objects_.queue_pair(id_of(command.id_ver));
    if (owner == nullptr) {
        return Status::BadIndex;
    }
    RdmaQueuePair& qp = *objects_.queue_pair(id_of(command.id_ver));
    const rdma::QpAttributes& attributes = qp.qp().attributes();
    const bool datagram = qp.qp().identity().type == rdma::QpType::Ud;
    std::uint32_t flags = (qp.identity().flags & 0xffffU & ~std::uint32_t{kAccessMask}) | qp.access_flags;
    if (attributes.sqd_notify) {
        flags |= rdma_wire::kQpSqdNotify;
    }
    if (qp.qp().state() == rdma::QpState::Sqd && !qp.qp().requester().idle()) {
        flags |= rdma_wire::kQpSqDraining;
    }
    rdma_wire::QuerySqRecord sq{};
    sq.rnr_timer = attributes.min_rnr_timer;
    sq.retry_timeout = attributes.timeout;
    sq.access_flags.set(static_cast<std::uint16_t>(flags));
    sq.qkey_or_dest_qpn.set(datagram ? attributes.qkey : attributes.destination_qpn);
    sq.rate_limit_kbps.set(attributes.rate_limit_kbps);
    sq.rq_psn.set(attributes.rq_psn);
    rdma_wire::QueryRqRecord rq{};
    const auto mtu_log2 = static_cast<std::uint8_t>(std::countr_zero(attributes.path_mtu));
    rq.state_pmtu = static_cast<std::uint8_t>(static_cast<std::uint8_t>(qp.qp().state()) << 4U | mtu_log2);
    rq.retry_rnr = static_cast<std::uint8_t>(attributes.rnr_retry << 4U | attributes.retry_count);
    rq.rrq_depth = reported_requester_depth(qp.rrq_depth);
    rq.rsq_depth = qp.rsq_depth;
    rq.sq_psn.set(attributes.sq_psn);
    rq.access_flags.set(static_cast<std::uint16_t>(flags));
    if (!objects_.memory().write(mem::Iova{command.sq_dma.get()}, bytes_of(sq)) ||
        !objects_.memory().write(mem::Iova{command.rq_dma.get()}, bytes_of(rq))) {
        return Status::BadAttribute;
    }
    return Status::Ok;
}

}  // namespace ernic::ionic
