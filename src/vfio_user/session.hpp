// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/event_loop.hpp"
#include "base/fd.hpp"
#include "base/log.hpp"
#include "pci/function.hpp"
#include "vfio_user/connection.hpp"
#include "vfio_user/counters.hpp"
#include "vfio_user/dma_map.hpp"
#include "vfio_user/dma_reader.hpp"
#include "vfio_user/irq_table.hpp"
#include "vfio_user/memory_check.hpp"
#include "vfio_user/version.hpp"

namespace ernic::vfio_user {

/// One client from accept to end of file: negotiation, then execution of its commands in order of arrival.
/// The device, the DMA map and the irq table outlive it; the server resets them when the session ends.
/// Thread: device. Fails: a bad command is answered with an error, counted and logged; it never stops the
/// server.
class Session final : private Connection::Receiver {
  public:
    /// What a session works on.
    struct Context {
        EventLoop& loop;
        pci::Function& function;
        DmaMap& dma;
        IrqTable& irqs;
        Counters& counters;
        LogLimits& limits;
        log::Logger logger;
    };

    Session(UniqueFd socket, const Context& context);

    /// See Connection::receive.
    Connection::Received receive() { return connection_.receive(); }
    /// Fails: false when the client is gone.
    bool flush() { return connection_.flush(); }
    [[nodiscard]] bool unsent() const { return connection_.unsent(); }
    [[nodiscard]] int fd() const { return connection_.fd(); }
    [[nodiscard]] bool negotiated() const { return agreed_.has_value(); }

    /// See MemoryCheck.
    void verify_shared_memory(mem::Iova iova) { memory_check_.start(iova); }

  private:
    using Outcome = std::optional<Rejection>;  // nothing: success, already answered

    void on_message(Message& message) override;
    Outcome dispatch(Message& message);
    void reject(const Header& header, const Rejection& rejection);

    Outcome version(const Message& message);
    Outcome device_info(const Message& message);
    Outcome region_info(const Message& message);
    Outcome region_io_fds(const Message& message);
    Outcome irq_info(const Message& message);
    Outcome set_irqs(Message& message);
    Outcome dma_map(Message& message);
    Outcome dma_unmap(const Message& message);
    Outcome region_read(const Message& message);
    Outcome region_write(const Message& message);
    Outcome write_multi(const Message& message);
    Outcome device_reset(const Message& message);

    [[nodiscard]] Outcome check_access(const wire::vfio_user::RegionAccess& access) const;
    void read_region(const wire::vfio_user::RegionAccess& access, MutableBytes out);
    void write_region(std::uint32_t region, std::uint64_t offset, Bytes data);

    pci::Function& function_;
    DmaMap& dma_;
    IrqTable& irqs_;
    Counters& counters_;
    LogLimits& limits_;
    log::Logger logger_;
    std::array<std::uint64_t, wire::vfio_user::kRegionCount> region_sizes_{};
    Connection connection_;
    DmaReader dma_reader_;
    MemoryCheck memory_check_;
    std::optional<Negotiated> agreed_;
};

}  // namespace ernic::vfio_user
