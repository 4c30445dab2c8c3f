// SPDX-License-Identifier: MIT
#include "net/stack/udp_socket.hpp"

#include <utility>
#include <vector>

#include "net/stack/core.hpp"

namespace ernic::net::stack {

struct UdpSocket::Impl {
    struct Binding {
        IpAddress address;
        udp_pcb* pcb;
    };

    static void on_received(void* self, udp_pcb* pcb, pbuf* packet, const ip_addr_t* from, u16_t port);

    Host::Impl& host;
    std::function<void(const Datagram&)> handler;
    std::vector<Binding> bindings;
    /// A datagram that was put together from fragments, in one piece.
    std::vector<std::byte> joined;
};

void UdpSocket::Impl::on_received(void* self, udp_pcb* /*pcb*/, pbuf* packet, const ip_addr_t* from,
                                  u16_t port) {
    auto& socket = *static_cast<Impl*>(self);
    Bytes data{static_cast<const std::byte*>(packet->payload), packet->len};
    if (packet->next != nullptr) {
        socket.joined.resize(packet->tot_len);
        pbuf_copy_partial(packet, socket.joined.data(), packet->tot_len, 0);
        data = socket.joined;
    }
    socket.handler(
        {.from = {from_lwip(*from), port}, .to = from_lwip(*ip_current_dest_addr()), .data = data});
    pbuf_free(packet);
}

UdpSocket::UdpSocket(Host& host, std::uint16_t port, std::function<void(const Datagram&)> handler)
    : impl_(new Impl{host.impl(), std::move(handler), {}, {}}) {
    for (const IpAddress& address : impl_->host.all()) {
        // One per address: a socket on all would hear of the other hosts' too.
        udp_pcb* const pcb = udp_new();
        const ip_addr_t local = to_lwip(address, impl_->host.interface);
        if (pcb == nullptr || udp_bind(pcb, &local, port) != ERR_OK) {
            impl_->host.core.log().error("UDP port {} of {} cannot be had", port, address.to_string());
            if (pcb != nullptr) {
                udp_remove(pcb);
            }
            continue;
        }
        udp_bind_netif(pcb, &impl_->host.interface);
        udp_recv(pcb, &Impl::on_received, impl_.get());
        impl_->bindings.push_back({address, pcb});
    }
}

UdpSocket::~UdpSocket() {
    for (const Impl::Binding& binding : impl_->bindings) {
        udp_remove(binding.pcb);
    }
}

bool UdpSocket::send(const IpAddress& from, const Endpoint& to, Bytes data) {
    Core& core = impl_->host.core;
    // lwIP delivers to itself by its thread, which does not run here.
    if (data.size() > UINT16_MAX || !to.address.unicast() || impl_->host.addresses.owns(to.address)) {
        return false;
    }
    for (const Impl::Binding& binding : impl_->bindings) {
        if (binding.address != from || from.is_v4() != to.address.is_v4()) {
            continue;
        }
        pbuf* const packet = pbuf_alloc(PBUF_TRANSPORT, static_cast<u16_t>(data.size()), PBUF_RAM);
        if (packet == nullptr) {
            core.counters().no_memory.add();
            return false;
        }
        core.catch_up();
        std::memcpy(packet->payload, data.data(), data.size());
        const ip_addr_t peer = to_lwip(to.address, impl_->host.interface);
        const ip_addr_t local = to_lwip(from, impl_->host.interface);
        const err_t sent =
            udp_sendto_if_src(binding.pcb, packet, &peer, to.port, &impl_->host.interface, &local);
        pbuf_free(packet);
        return sent == ERR_OK;
    }
    return false;
}

}  // namespace ernic::net::stack
