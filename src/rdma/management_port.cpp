// SPDX-License-Identifier: MIT
#include "rdma/management_port.hpp"

#include <cassert>

namespace ernic::rdma {
namespace {

constexpr std::size_t kNetworkHeader = 40;
constexpr std::uint8_t kHopLimit = 64;
/// Ports of the dynamic range (RFC 6335), which RoCE uses as a hint for spreading flows.
constexpr std::uint16_t kUdpSourcePort = 0xc000;

}  // namespace

net::Route way_back(const net::Route& heard) {
    net::Route back;
    back.destination = heard.source;
    back.source = heard.destination;
    back.vlan_tci = heard.vlan_tci;
    back.ipv4 = heard.ipv4;
    if (heard.ipv4) {
        back.ip4.version_ihl = 0x45;
        back.ip4.tos = heard.ip4.tos;
        back.ip4.ttl = kHopLimit;
        back.ip4.protocol = wire::kIpProtocolUdp;
        back.ip4.source = heard.ip4.destination;
        back.ip4.destination = heard.ip4.source;
    } else {
        back.ip6.version_class_flow = heard.ip6.version_class_flow;
        back.ip6.next_header = wire::kIpProtocolUdp;
        back.ip6.hop_limit = kHopLimit;
        back.ip6.source = heard.ip6.destination;
        back.ip6.destination = heard.ip6.source;
    }
    back.udp_source_port = kUdpSourcePort;
    return back;
}

ManagementPort::ManagementPort(Endpoint& endpoint)
    : endpoint_(endpoint),
      datagrams_(kDatagrams),
      sending_(kDatagrams),
      queue_(endpoint.engine(), *this, wire::ib_cm::kManagementQpn, QpType::Ud, buffers()) {
    assert(endpoint.limits().address_handles >= kDatagrams);
    arrived_.reserve(kDatagrams);
    free_sends_.reserve(kDatagrams);
    for (std::uint32_t i = 0; i < kDatagrams; ++i) {
        free_sends_.push_back(i);
    }
    QpAttributes attributes;
    attributes.qkey = wire::ib_cm::kManagementQkey;
    queue_.bring_up(attributes);
}

std::vector<ServiceQueue::Buffer> ManagementPort::buffers() {
    std::vector<ServiceQueue::Buffer> pieces;
    for (Buffer& buffer : datagrams_) {
        pieces.push_back({buffer.network_header, buffer.bytes});
    }
    return pieces;
}

bool ManagementPort::send(const net::Route& route, const Datagram& datagram) {
    if (free_sends_.empty()) {
        return false;
    }
    const std::uint32_t place = free_sends_.back();
    free_sends_.pop_back();
    sending_[place] = datagram;
    endpoint_.engine().set_address_handle(place, queue_.qp().identity().pd, route);
    ServiceQueue::Request request;
    request.address_handle = place;
    request.destination_qpn = wire::ib_cm::kManagementQpn;
    request.number = place;
    request.piece_count = 1;
    request.pieces[0] = {sending_[place].data(), sending_[place].size()};
    queue_.post(request);
    return true;
}

void ManagementPort::received(std::uint32_t buffer, const ReceiveCompletion& completion) {
    arrived_.push_back({.buffer = buffer,
                        .usable = completion.length == kNetworkHeader + wire::ib_cm::kMadSize &&
                                  completion.source_qpn == wire::ib_cm::kManagementQpn &&
                                  completion.route != nullptr,
                        .back = completion.route != nullptr ? way_back(*completion.route) : net::Route{}});
}

void ManagementPort::sent(std::uint32_t number, void* context) {
    (void)context;
    free_sends_.push_back(number);
}

void ManagementPort::failed() {
    // Nobody can make a datagram's buffers of ours wrong; should it be, connections end by their own timers.
}

}  // namespace ernic::rdma
