// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/event_loop.hpp"
#include "base/log.hpp"
#include "ionic/admin_command.hpp"
#include "ionic/device_command.hpp"
#include "ionic/device_registers.hpp"
#include "ionic/doorbell.hpp"
#include "ionic/frame_receiver.hpp"
#include "ionic/frame_sink.hpp"
#include "ionic/interrupts.hpp"
#include "ionic/lif.hpp"
#include "ionic/port.hpp"
#include "ionic/profile.hpp"
#include "ionic/rdma_device.hpp"
#include "ionic/traffic_stats.hpp"
#include "metrics/registry.hpp"
#include "pci/config_space.hpp"
#include "pci/function.hpp"
#include "pci/host.hpp"
#include "pci/msix.hpp"
#include "wire/ethernet.hpp"

namespace ernic::ionic {

/// The NIC: one PCI function with registers, device commands, one port and one LIF, as the stock Linux
/// drivers `ionic` and `ionic_rdma` expect it.
///
///   BAR 0   0x0000 device info, 0x0800 device commands, 0x2000 interrupt control, 0x8000 MSI-X table, 0xa000
///   PBA BAR 2   doorbell pages
///
/// Thread: device. Owns everything of the card but the RDMA engine's users.
class Card final : public pci::Function {
  public:
    struct Options {
        wire::MacAddress mac;
        Profile profile;
        /// Where transmitted frames go; null counts and drops them. Must outlive the card.
        net::FrameSink* sink = nullptr;
    };

    /// `host`, `loop` and `registry` must outlive the card.
    Card(const Options& options, pci::Host& host, EventLoop& loop, metrics::Registry& registry,
         const log::Logger& log);
    ~Card() override = default;
    Card(const Card&) = delete;
    Card& operator=(const Card&) = delete;

    /// Gives the card its RDMA half, before the first client. Without one (or null) RDMA is not advertised.
    void attach_rdma(std::unique_ptr<RdmaDevice> rdma);

    /// For the RDMA half: how its event queues reach the guest, and the LIF counters it adds to.
    [[nodiscard]] Interrupts& interrupts() { return interrupts_; }
    [[nodiscard]] TrafficStats& stats() { return stats_; }
    [[nodiscard]] const Profile& profile() const { return options_.profile; }
    [[nodiscard]] const wire::MacAddress& mac() const { return options_.mac; }

    /// Plugs the cable in or pulls it out; the guest is told.
    void set_link(bool up) { port_.set_carrier(up); }
    /// The guest's driver has initialised its interface and not reset it since.
    [[nodiscard]] bool driver_attached() const { return lif_.initialized(); }
    /// A frame for the guest. False when it was dropped.
    bool receive(Bytes frame) { return lif_.receive({.head = frame, .tail = {}}); }
    /// Where frames for the guest go, finished or not.
    [[nodiscard]] net::FrameSink& receiver() { return receiver_; }
    /// `handler` hears whenever the guest has posted receive buffers.
    void on_receive_room(std::function<void()> handler) { lif_.on_receive_room(std::move(handler)); }
    /// `handler` hears of every frame that the guest wanted and had no buffer for.
    void on_receive_drop(std::function<void()> handler) { lif_.on_receive_drop(std::move(handler)); }

    /// One budgeted step of pending work, for the event loop; true while there is more.
    bool step();

    // pci::Function
    [[nodiscard]] std::uint64_t bar_size(unsigned bar) const override { return config_.bar_size(bar); }
    void bar_read(unsigned bar, std::uint64_t offset, MutableBytes out) override;
    void bar_write(unsigned bar, std::uint64_t offset, Bytes data) override;
    void config_read(std::uint32_t offset, MutableBytes out) override { config_.read(offset, out); }
    void config_write(std::uint32_t offset, Bytes data) override { config_.write(offset, data); }
    [[nodiscard]] std::uint16_t msix_vectors() const override { return msix_.vectors(); }
    void msix_vector_ready(std::uint16_t vector) override { msix_.vector_ready(vector); }
    void reset() override;

  private:
    /// Makes `options` complete: a serial number when the profile has none.
    static Options complete(Options options);
    static pci::ConfigParameters config_parameters(const Options& options);
    void connect();
    void register_in(metrics::Registry& registry) const;
    /// RESET: all but configuration space and the register block, through which the command came.
    void reset_device();
    void reset_lif();
    void set_mtu(std::uint32_t mtu);
    void check_memory();
    void arm_stats_refresh();
    void refresh_stats();

    const Options options_;
    pci::Host& host_;
    EventLoop& loop_;
    log::Logger log_;
    NullFrameSink null_sink_;

    pci::ConfigSpace config_;
    pci::Msix msix_;
    Interrupts interrupts_;
    TrafficStats stats_;
    Port port_;
    Lif lif_;
    FrameReceiver receiver_;
    AdminCommands admin_commands_;
    DeviceCommands device_commands_;
    DeviceRegisters registers_;
    Doorbells doorbells_;
    std::unique_ptr<RdmaDevice> rdma_;
    Timer stats_timer_;
    std::uint32_t mtu_ = 1500;
    /// verify_shared_memory has been asked for since the last reset.
    bool memory_checked_ = false;
};

}  // namespace ernic::ionic
