// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/bytes.hpp"
#include "net/stack/endpoint.hpp"
#include "net/stack/host.hpp"

namespace ernic::net::stack {

/// Who uses a connection. Every function may write to, shut down or destroy the connection. They are called
/// from Stack::step() only, never from within a call of the user. Thread: device.
class TcpHandler {
  public:
    virtual ~TcpHandler() = default;
    /// The next bytes of the stream. Returns how many of them it has taken; the rest is kept, holds the peer
    /// back, and comes again after TcpConnection::resume().
    virtual std::size_t received(Bytes data) = 0;
    /// The peer has acknowledged something, so that there is more room to write.
    virtual void writable() {}
    /// The peer sends nothing more; writing is still possible.
    virtual void end_of_stream() {}
    /// The connection is gone: both ends are done, the peer has reset it, or does not answer. What was
    /// received before has been handed over; nothing can be written any more.
    virtual void closed() {}
};

/// An open TCP connection. Destroying it sends what is written and closes it; data that has not been read is
/// answered with a reset. Dead peers are noticed after 45 s (keep-alive). Thread: device.
class TcpConnection {
  public:
    struct Impl;
    explicit TcpConnection(std::shared_ptr<Impl> impl);
    ~TcpConnection();
    TcpConnection(const TcpConnection&) = delete;
    TcpConnection& operator=(const TcpConnection&) = delete;

    /// Who hears of everything from now on. It must outlive its time here; null ends it.
    void set_handler(TcpHandler* handler);

    [[nodiscard]] Endpoint peer() const;
    [[nodiscard]] Endpoint local() const;

    /// Queues a copy of as much of `data` as there is room for and sends what the peer's window allows.
    /// Returns how many bytes; when fewer than wanted, writable() will be called.
    std::size_t write(Bytes data);
    /// Bytes that write() would take now.
    [[nodiscard]] std::size_t room() const;
    /// Everything written has been acknowledged.
    [[nodiscard]] bool all_acknowledged() const;

    /// Hands over again what received() has left.
    void resume();
    /// Ends our half of the stream behind what has been written.
    void shutdown();
    /// Ends the connection with a reset.
    void abort();

  private:
    std::shared_ptr<Impl> impl_;
};

/// Waits for connections to a port of a host, on all its addresses. Thread: device.
class TcpListener {
  public:
    struct Impl;

    /// `handler` gets every new connection, from Stack::step(); it must not destroy the listener.
    /// Precondition: nobody else listens on this port of the host. `host` must outlive this.
    TcpListener(Host& host, std::uint16_t port, std::function<void(std::unique_ptr<TcpConnection>)> handler);
    ~TcpListener();
    TcpListener(const TcpListener&) = delete;
    TcpListener& operator=(const TcpListener&) = delete;

  private:
    std::shared_ptr<Impl> impl_;
};

}  // namespace ernic::net::stack
