// SPDX-License-Identifier: MIT
#include "fuzz/verbs.hpp"

#include <algorithm>

#include "ionic/profile.hpp"

namespace ernic::fuzz {

namespace rw = wire::ionic_rdma;

namespace {

/// MODIFY_QP state codes.
constexpr std::uint8_t kInit = 1;
constexpr std::uint8_t kReadyToReceive = 2;
constexpr std::uint8_t kReadyToSend = 3;
constexpr std::uint8_t kTypeUd = 3;

rw::RingGeometry geometry(const RingPlan& ring) {
    return {ring.depth_log2, ring.stride_log2, 0, 12};
}

}  // namespace

std::array<std::byte, 42> route_header(const wire::MacAddress& destination, const wire::MacAddress& source) {
    struct Headers {
        wire::EthernetHeader ethernet;
        wire::Ipv4Header ip;
        wire::UdpHeader udp;
    } headers{};
    static_assert(sizeof headers == 42);
    headers.ethernet = {destination, source, be16(wire::kEtherTypeIpv4)};
    headers.ip.version_ihl = 0x45;
    headers.ip.ttl = 64;
    headers.ip.protocol = wire::kIpProtocolUdp;
    headers.ip.source.set(0x0a000001);
    headers.ip.destination.set(0x0a000001);
    headers.udp.source_port.set(0xc000);
    headers.udp.destination_port.set(wire::kRoceUdpPort);
    std::array<std::byte, 42> bytes{};
    std::memcpy(bytes.data(), &headers, sizeof headers);
    return bytes;
}

void Verbs::create_cq(std::uint32_t id, std::uint16_t dbid, const RingPlan& ring) {
    rw::CreateCq command{};
    command.ring = geometry(ring);
    command.id_ver.set(id);
    command.map_count.set(1);
    command.dma_addr.set(ring.address);
    command.dbid.set(dbid);
    driver_.rdma_admin(rw::AdminOp::CreateCq, command);
}

void Verbs::create_qp(const QpPlan& plan) {
    rw::CreateQp command{};
    command.pd_id.set(plan.pd);
    command.flags.set(plan.flags);
    command.sq_cq_id.set(plan.sq_cq);
    command.rq_cq_id.set(plan.rq_cq);
    command.sq_ring = geometry(plan.sq);
    command.rq_ring = geometry(plan.rq);
    command.sq_map_count.set(1);
    command.rq_map_count.set(1);
    command.sq_dma_addr.set(plan.sq.address);
    command.rq_dma_addr.set(plan.rq.address);
    command.id_ver.set(plan.qpn);
    command.dbid.set(plan.dbid);
    command.type_state = plan.datagram ? kTypeUd : 0;
    driver_.rdma_admin(rw::AdminOp::CreateQp, command);
}

void Verbs::create_mr(const MrPlan& plan) {
    rw::CreateMr command{};
    command.va.set(plan.va);
    command.length.set(plan.length);
    command.pd_id.set(plan.pd);
    command.key.set(plan.key);
    command.map_count.set(plan.map_count);
    command.dma_addr.set(plan.address);
    command.flags.set(plan.flags);
    command.page_size_log2 = plan.page_size_log2;
    driver_.rdma_admin(rw::AdminOp::CreateMr, command);
}

void Verbs::create_ah(std::uint32_t id, std::uint32_t pd, Bytes header) {
    memory_.store(page::kHeaders, header);
    rw::CreateAh command{};
    command.dma_addr.set(page::kHeaders);
    command.length.set(static_cast<std::uint32_t>(header.size()));
    command.pd_id.set(pd);
    command.id_ver.set(id);
    driver_.rdma_admin(rw::AdminOp::CreateAh, command);
}

void Verbs::destroy(rw::AdminOp op, std::uint32_t id) {
    driver_.rdma_admin(op, rw::Destroy{le32(id)});
}

void Verbs::modify(std::uint32_t qpn, std::uint8_t state, const Connection& connection,
                   std::uint32_t attributes) {
    const auto header = route_header(connection.destination, kCardMac);
    memory_.store(page::kHeaders, header);
    rw::ModifyQp command{};
    command.attr_mask.set(attributes);
    command.access_flags.set(connection.access);
    command.rq_psn.set(connection.rq_psn);
    command.sq_psn.set(connection.sq_psn);
    command.qkey_or_dest_qpn.set((attributes & rw::kAttrQkey) != 0 ? connection.qkey
                                                                   : connection.destination_qpn);
    command.pmtu_log2 = connection.pmtu_log2;
    command.retry = static_cast<std::uint8_t>(connection.rnr_retry << 4U | connection.retry);
    command.rnr_timer = connection.rnr_timer;
    command.retry_timeout = connection.timeout;
    command.rrq_depth = connection.depth_log2;
    command.rsq_depth = connection.depth_log2;
    command.ah_id_length.set(static_cast<std::uint32_t>(header.size()) << 24U);
    command.dma_addr.set(page::kHeaders);
    command.type_state = state;
    command.id_ver.set(qpn);
    driver_.rdma_admin(rw::AdminOp::ModifyQp, command);
}

void Verbs::connect(std::uint32_t qpn, const Connection& connection) {
    modify(qpn, kInit, connection, rw::kAttrState | rw::kAttrAccess | rw::kAttrQkey);
    modify(qpn, kReadyToReceive, connection,
           rw::kAttrState | rw::kAttrAddressVector | rw::kAttrPathMtu | rw::kAttrRqPsn | rw::kAttrDestQpn |
               rw::kAttrMaxDestRdAtomic | rw::kAttrMinRnrTimer);
    modify(qpn, kReadyToSend, connection,
           rw::kAttrState | rw::kAttrSqPsn | rw::kAttrTimeout | rw::kAttrRetryCount | rw::kAttrRnrRetry |
               rw::kAttrMaxRdAtomic);
}

void Verbs::ring_send(const QpPlan& qp, std::uint16_t index) {
    driver_.doorbell(qp.dbid, static_cast<std::uint32_t>(ionic::QueueType::RdmaSend),
                     rw::Doorbell::make(qp.qpn, 0, index).value());
}

void Verbs::ring_receive(const QpPlan& qp, std::uint16_t index) {
    driver_.doorbell(qp.dbid, static_cast<std::uint32_t>(ionic::QueueType::RdmaRecv),
                     rw::Doorbell::make(qp.qpn, 0, index).value());
}

void Verbs::ring_cq(std::uint16_t dbid, std::uint32_t cq, std::uint8_t ring, std::uint16_t index) {
    driver_.doorbell(dbid, static_cast<std::uint32_t>(ionic::QueueType::RdmaCompletion),
                     rw::Doorbell::make(cq, ring, index).value());
}

Entry::Entry(std::uint64_t id, std::uint8_t op, std::uint16_t flags, std::uint32_t immediate_or_key) {
    const rw::WqeHeader header{id, op, 0, be16(flags), be32(immediate_or_key)};
    std::memcpy(bytes_.data(), &header, sizeof header);
}

void Entry::set_sges(std::span<const rw::Sge> sges) {
    set_sge_count_or_key(static_cast<std::uint8_t>(sges.size()));
    overwrite(rw::kSglOffset, std::as_bytes(sges));
}

void Entry::set_inline(Bytes data) {
    overwrite(rw::kSglOffset, data);
}

void Entry::overwrite(std::size_t at, Bytes data) {
    if (at < bytes_.size()) {
        std::memcpy(bytes_.data() + at, data.data(), std::min(data.size(), bytes_.size() - at));
    }
}

}  // namespace ernic::fuzz
