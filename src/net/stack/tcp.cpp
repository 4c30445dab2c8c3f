// SPDX-License-Identifier: MIT
#include "net/stack/tcp.hpp"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "net/stack/core.hpp"

namespace ernic::net::stack {
namespace {

/// A peer that has vanished is noticed after 30 s of silence and three questions. Without that a guest which
/// was killed would keep its connections, and their timers, for ever.
constexpr u32_t kKeepIdle = 30'000;
constexpr u32_t kKeepInterval = 5'000;
constexpr u32_t kKeepCount = 3;

}  // namespace

struct TcpConnection::Impl final : Pending, std::enable_shared_from_this<TcpConnection::Impl> {
    Impl(Core& core_in, tcp_pcb* pcb_in)
        : core(core_in),
          pcb(pcb_in),
          peer{from_lwip(pcb_in->remote_ip), pcb_in->remote_port},
          local{from_lwip(pcb_in->local_ip), pcb_in->local_port} {
        tcp_arg(pcb, this);
        tcp_recv(pcb, &Impl::on_received);
        tcp_sent(pcb, &Impl::on_sent);
        tcp_err(pcb, &Impl::on_error);
        tcp_nagle_disable(pcb);
        ip_set_option(pcb, SOF_KEEPALIVE);
        pcb->keep_idle = kKeepIdle;
        pcb->keep_intvl = kKeepInterval;
        pcb->keep_cnt = kKeepCount;
    }
    ~Impl() override { drop_unread(); }
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    static err_t on_received(void* self, tcp_pcb* pcb, pbuf* packet, err_t error);
    static err_t on_sent(void* self, tcp_pcb* pcb, u16_t count);
    static void on_error(void* self, err_t error);

    void dispatch() override;
    void hand_over();
    /// Lets go of lwIP's connection, which goes on by itself.
    tcp_pcb* detach();
    void drop_unread();

    Core& core;
    tcp_pcb* pcb;
    Endpoint peer;
    Endpoint local;
    TcpHandler* handler = nullptr;
    /// Received, not yet taken; of the first `taken` bytes are.
    std::deque<pbuf*> unread;
    std::size_t taken = 0;
    bool stalled = false;
    bool acknowledged = false;
    bool peer_done = false;
    bool peer_done_told = false;
    bool our_end_sent = false;
    bool closed = false;
    bool closed_told = false;
};

err_t TcpConnection::Impl::on_received(void* self, tcp_pcb* /*pcb*/, pbuf* packet, err_t /*error*/) {
    auto& connection = *static_cast<Impl*>(self);
    if (packet != nullptr) {
        connection.unread.push_back(packet);
    } else {
        connection.peer_done = true;
        if (connection.our_end_sent) {
            // Both are done. lwIP will free it without telling.
            connection.detach();
            connection.closed = true;
        }
    }
    connection.core.defer(connection.shared_from_this());
    return ERR_OK;
}

err_t TcpConnection::Impl::on_sent(void* self, tcp_pcb* /*pcb*/, u16_t /*count*/) {
    auto& connection = *static_cast<Impl*>(self);
    connection.acknowledged = true;
    connection.core.defer(connection.shared_from_this());
    return ERR_OK;
}

void TcpConnection::Impl::on_error(void* self, err_t error) {
    auto& connection = *static_cast<Impl*>(self);
    connection.pcb = nullptr;  // already freed
    connection.closed = true;
    if (error != ERR_CLSD) {
        connection.core.counters().connections_lost.add();
    }
    connection.core.defer(connection.shared_from_this());
}

void TcpConnection::Impl::dispatch() {
    hand_over();
    if (handler != nullptr && std::exchange(acknowledged, false)) {
        handler->writable();
    }
    if (handler != nullptr && peer_done && unread.empty() && !std::exchange(peer_done_told, true)) {
        handler->end_of_stream();
    }
    if (handler != nullptr && closed && !std::exchange(closed_told, true)) {
        handler->closed();
    }
}

void TcpConnection::Impl::hand_over() {
    while (handler != nullptr && !unread.empty() && !stalled) {
        pbuf* const first = unread.front();
        // A chain is one only when lwIP has joined packets; its parts come one by one.
        const Bytes whole{static_cast<const std::byte*>(first->payload), first->len};
        const Bytes rest = whole.subspan(taken);
        const std::size_t accepted = std::min(handler->received(rest), rest.size());
        if (unread.empty() || unread.front() != first) {
            return;  // the handler has destroyed or aborted the connection
        }
        if (pcb != nullptr) {
            tcp_recved(pcb, static_cast<u16_t>(accepted));
        }
        taken += accepted;
        if (accepted < rest.size()) {
            stalled = true;
            return;
        }
        taken = 0;
        unread.pop_front();
        if (first->next != nullptr) {
            pbuf* const next = first->next;
            pbuf_ref(next);
            unread.push_front(next);
        }
        pbuf_free(first);
    }
}

tcp_pcb* TcpConnection::Impl::detach() {
    if (pcb != nullptr) {
        tcp_arg(pcb, nullptr);
        tcp_recv(pcb, nullptr);
        tcp_sent(pcb, nullptr);
        tcp_err(pcb, nullptr);
    }
    return std::exchange(pcb, nullptr);
}

void TcpConnection::Impl::drop_unread() {
    for (pbuf* packet : unread) {
        pbuf_free(packet);
    }
    unread.clear();
}

TcpConnection::TcpConnection(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {
}

TcpConnection::~TcpConnection() {
    impl_->handler = nullptr;
    impl_->drop_unread();
    impl_->core.catch_up();
    if (tcp_pcb* const pcb = impl_->detach()) {
        if (tcp_close(pcb) != ERR_OK) {
            tcp_abort(pcb);
        }
        impl_->core.update_timer();
    }
}

void TcpConnection::set_handler(TcpHandler* handler) {
    impl_->handler = handler;
    impl_->core.defer(impl_);
}

Endpoint TcpConnection::peer() const {
    return impl_->peer;
}

Endpoint TcpConnection::local() const {
    return impl_->local;
}

std::size_t TcpConnection::room() const {
    return impl_->pcb == nullptr || impl_->our_end_sent ? 0 : tcp_sndbuf(impl_->pcb);
}

bool TcpConnection::all_acknowledged() const {
    return impl_->pcb == nullptr || (impl_->pcb->unsent == nullptr && impl_->pcb->unacked == nullptr);
}

std::size_t TcpConnection::write(Bytes data) {
    impl_->core.catch_up();
    std::size_t size = std::min(data.size(), room());
    // Many small pieces use up lwIP's queue before its bytes; less may still fit into the last segment.
    while (size != 0 &&
           tcp_write(impl_->pcb, data.data(), static_cast<u16_t>(size), TCP_WRITE_FLAG_COPY) != ERR_OK) {
        size /= 2;
    }
    if (size != 0) {
        tcp_output(impl_->pcb);
    }
    return size;
}

void TcpConnection::resume() {
    impl_->stalled = false;
    impl_->core.defer(impl_);
}

void TcpConnection::shutdown() {
    impl_->core.catch_up();
    if (impl_->pcb != nullptr && !std::exchange(impl_->our_end_sent, true)) {
        tcp_shutdown(impl_->pcb, 0, 1);
    }
}

void TcpConnection::abort() {
    impl_->core.catch_up();
    impl_->drop_unread();
    if (tcp_pcb* const pcb = impl_->detach()) {
        tcp_abort(pcb);
        impl_->closed = true;
        impl_->core.update_timer();
    }
}

struct TcpListener::Impl final : Pending, std::enable_shared_from_this<TcpListener::Impl> {
    explicit Impl(Core& core_in) : core(core_in) {}

    static err_t on_accept(void* self, tcp_pcb* pcb, err_t error);
    void dispatch() override;

    Core& core;
    std::function<void(std::unique_ptr<TcpConnection>)> handler;
    std::vector<tcp_pcb*> listening;
    std::vector<std::unique_ptr<TcpConnection>> fresh;
};

err_t TcpListener::Impl::on_accept(void* self, tcp_pcb* pcb, err_t error) {
    auto& listener = *static_cast<Impl*>(self);
    if (error != ERR_OK || pcb == nullptr) {
        return ERR_VAL;
    }
    listener.core.counters().connections_accepted.add();
    listener.fresh.push_back(
        std::make_unique<TcpConnection>(std::make_shared<TcpConnection::Impl>(listener.core, pcb)));
    listener.core.defer(listener.shared_from_this());
    return ERR_OK;
}

void TcpListener::Impl::dispatch() {
    std::vector<std::unique_ptr<TcpConnection>> accepted;
    accepted.swap(fresh);
    for (auto& connection : accepted) {
        if (handler) {
            handler(std::move(connection));
        }
    }
}

TcpListener::TcpListener(Host& host, std::uint16_t port,
                         std::function<void(std::unique_ptr<TcpConnection>)> handler)
    : impl_(std::make_shared<Impl>(host.impl().core)) {
    impl_->handler = std::move(handler);
    for (const IpAddress& address : host.impl().all()) {
        tcp_pcb* const pcb = tcp_new();
        const ip_addr_t local = to_lwip(address, host.impl().interface);
        if (pcb != nullptr) {
            ip_set_option(pcb, SOF_REUSEADDR);
        }
        if (pcb == nullptr || tcp_bind(pcb, &local, port) != ERR_OK) {
            host.impl().core.log().error("TCP port {} of {} cannot be had", port, address.to_string());
            if (pcb != nullptr) {
                tcp_close(pcb);
            }
            continue;
        }
        tcp_bind_netif(pcb, &host.impl().interface);
        tcp_pcb* const listening = tcp_listen(pcb);
        if (listening == nullptr) {
            tcp_close(pcb);
            continue;
        }
        tcp_arg(listening, impl_.get());
        tcp_accept(listening, &Impl::on_accept);
        impl_->listening.push_back(listening);
    }
}

TcpListener::~TcpListener() {
    impl_->handler = nullptr;
    for (tcp_pcb* pcb : impl_->listening) {
        tcp_close(pcb);
    }
    impl_->fresh.clear();
}

}  // namespace ernic::net::stack
