// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/event_loop.hpp"
#include "base/fd.hpp"
#include "base/listener.hpp"
#include "base/log.hpp"
#include "base/result.hpp"
#include "mem/guest_memory.hpp"
#include "metrics/registry.hpp"
#include "pci/function.hpp"
#include "pci/host.hpp"
#include "vfio_user/bus_errors.hpp"
#include "vfio_user/counters.hpp"
#include "vfio_user/dma_map.hpp"
#include "vfio_user/irq_table.hpp"
#include "vfio_user/log_limits.hpp"
#include "vfio_user/session.hpp"

namespace ernic::vfio_user {

/// Lets one VMM at a time reach a pci::Function over a UNIX socket. When it leaves, the function is reset,
/// its memory unmapped, its eventfds closed, and the next VMM is welcome. A second VMM meanwhile is accepted
/// and closed at once: left in the backlog it would hang with its whole VM frozen for five seconds.
///
/// Life: construct, build the function on it (it is the function's pci::Host), attach(), listen(), run the
/// loop, close(), destroy the function, destroy the server. The registry must not be read after that. Thread:
/// device, for every call.
class Server final : public pci::Host {
  public:
    Server(EventLoop& loop, metrics::Registry& registry, log::Logger logger, SocketOptions options);
    /// Closes what is open without touching the function any more, which may be gone.
    ~Server() override;
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    /// The function clients will see; before listen(), once. It must live until close().
    void attach(pci::Function& function);

    /// Creates the socket. Fails: see Listener::listen and BusErrors::watch. Precondition: attach() was
    /// called.
    Status listen();

    /// Says goodbye to the client (the function is reset) and removes the socket file. Nothing happens when
    /// not listening.
    void close();

    /// One non-blocking receive attempt for the loop's busy-poll window; costs one recvmsg when nothing has
    /// come. Returns true when it made progress.
    bool poll();

    [[nodiscard]] bool connected() const { return session_ != nullptr; }
    [[nodiscard]] const Counters& counters() const { return counters_; }
    [[nodiscard]] const DmaMap& dma_map() const { return dma_; }

    // pci::Host
    mem::GuestMemory& memory() override { return dma_.memory(); }
    bool send_msix(std::uint16_t vector) override { return irqs_.fire(vector); }
    /// Asks the client for one page with the next round of the loop; the verdict comes later, see
    /// MemoryCheck.
    void verify_shared_memory(mem::Iova iova) override;

  private:
    void on_bus_error();
    void accept_one(UniqueFd socket);
    void on_client(std::uint32_t events);
    Connection::Received receive();
    void after_output(bool alive);
    [[nodiscard]] bool client_has_gone() const;
    void drop_client();

    EventLoop& loop_;
    log::Logger logger_;
    log::Limiter refuse_limiter_;
    LogLimits limits_;
    SocketOptions options_;
    Counters counters_;
    /// While listening.
    std::optional<BusErrors> bus_errors_;
    DmaMap dma_;
    IrqTable irqs_;
    pci::Function* function_ = nullptr;
    Listener listener_;
    Timer check_timer_;
    mem::Iova check_page_;
    std::unique_ptr<Session> session_;
    bool watching_output_ = false;
};

}  // namespace ernic::vfio_user
