// SPDX-License-Identifier: MIT
// The responder's side of unreliable datagrams.
#include "net/route.hpp"
#include "rdma/engine.hpp"
#include "rdma/queue_pair.hpp"
#include "rdma/responder.hpp"
#include "wire/roce.hpp"

namespace ernic::rdma {
namespace {

/// BTH, DETH and ICRC around a datagram's payload.
constexpr std::size_t kDatagramOverhead =
    sizeof(wire::roce::BaseHeader) + sizeof(wire::roce::DatagramHeader) + wire::roce::kIcrcSize;
/// What precedes the payload in a datagram's receive buffers.
constexpr std::uint64_t kNetworkHeader = 40;
/// The general services interface, where management datagrams arrive (InfiniBand 3.9.4).
constexpr std::uint32_t kManagementQpn = 1;

}  // namespace

void Responder::drop_and_give_up(const net::Message& message, QpEvent event, CompletionStatus local) {
    ++qp_.counters().dropped;
    qp_.engine().counters().datagrams_dropped.add();
    qp_.engine().counters().resp_operation_errors.add();
    give_up(message, event, local);
}

bool Responder::take_datagram_receive(const net::Message& message, mem::SpanList& header,
                                      mem::SpanList& payload) {
    EngineCounters& counters = qp_.engine().counters();
    if (next_ == producer_) {
        ++qp_.counters().dropped;
        counters.datagrams_dropped.add();
        counters.resp_out_of_buffer.add();
        return false;
    }
    if (!qp_.owner().fetch_receive(next_, receive_)) {
        drop_and_give_up(message, QpEvent::Fatal, CompletionStatus::LocalQpOperation);
        return false;
    }
    CompletionStatus status = scatter(0, kNetworkHeader, header);
    if (status == CompletionStatus::Success) {
        status = scatter(kNetworkHeader, message.length, payload);
    }
    if (status == CompletionStatus::LocalLength) {
        counters.resp_local_length_errors.add();
        if (qp_.qpn() == kManagementQpn) {
            // Every process knows this QP and its Q_Key: none may end the guest's connection manager by a
            // datagram that is longer than a MAD.
            ++qp_.counters().dropped;
            counters.datagrams_dropped.add();
            return false;
        }
    }
    ++next_;
    receive_in_hand_ = true;
    if (status != CompletionStatus::Success) {
        // InfiniBand 11.6.2: the receive it would have filled ends with the error, and the QP with it.
        drop_and_give_up(message,
                         status == CompletionStatus::LocalLength ? QpEvent::RequestError : QpEvent::Fatal,
                         status);
        return false;
    }
    return true;
}

void Responder::on_datagram(const net::Message& message) {
    mem::SpanList header_place;
    mem::SpanList payload_place;
    if (!take_datagram_receive(message, header_place, payload_place)) {
        return;
    }
    receive_in_hand_ = false;
    const std::uint64_t padding = wire::roce::padding_of(message.length);
    auto header = net::network_header(*message.route,
                                      kDatagramOverhead + message.length + padding +
                                          (message.has_immediate ? sizeof(wire::roce::ImmediateHeader) : 0));
    mem::SpanList header_source;
    header_source.add(header.data(), header.size());
    mem::copy(header_place, header_source);
    if (qp_.qpn() == kManagementQpn) {
        // A test pattern is for the payload of programs; rdma_cm must work beside it.
        mem::copy(payload_place, *message.payload);
    } else {
        (void)qp_.engine().segment().mover().move(payload_place, message);
    }
    ++qp_.counters().received;
    qp_.counters().received_bytes += message.length;
    qp_.engine().counters().rx_messages.add();
    qp_.engine().counters().rx_bytes.add(message.length);

    ReceiveCompletion completion;
    completion.id = receive_.id;
    completion.kind = message.has_immediate ? ReceiveKind::SendImmediate : ReceiveKind::Send;
    completion.solicited = message.solicited;
    completion.length = static_cast<std::uint32_t>(kNetworkHeader + message.length);
    completion.source_qpn = message.source_qpn;
    completion.immediate_or_key = message.immediate;
    completion.route = message.route;
    qp_.owner().receive_completed(completion);
}

}  // namespace ernic::rdma
