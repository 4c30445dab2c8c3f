// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>

#include "base/clock.hpp"
#include "base/event_loop.hpp"
#include "base/log.hpp"
#include "fuzz/driver.hpp"
#include "fuzz/guest_ram.hpp"
#include "fuzz/input.hpp"
#include "ionic/card.hpp"
#include "ionic/rdma_card.hpp"
#include "metrics/registry.hpp"
#include "net/segment.hpp"
#include "pci/host.hpp"

namespace ernic::fuzz {

/// The card's profile with tables small enough that inputs reach their ends (and that a card is quickly
/// built).
ionic::Profile small_profile();

/// One card with both halves on a segment of its own, on any host.
class Device {
  public:
    struct Options {
        net::FrameSink* sink = nullptr;
        net::PayloadMode mode = net::PayloadMode::Preserve;
        log::Level log_level = log::Level::Info;
    };

    /// `host` and `clock` must outlive this.
    Device(const Options& options, pci::Host& host, EventLoop& loop, metrics::Registry& registry);

    ionic::Card& card() { return card_; }
    ionic::RdmaCard& rdma() { return *rdma_; }

    /// One step of the card, watched: it may not do more work than the budgets allow, nor take long. True
    /// while there is more to do.
    bool step();

    /// Resets the function and fails the run when something of the guest's is still there.
    void check_reset();

  private:
    std::shared_ptr<log::Sink> sink_;
    net::Segment segment_;
    ionic::Card card_;
    ionic::RdmaCard* rdma_;
};

/// CPU time of this thread, which other processes on the machine do not lengthen.
Nanoseconds cpu_time();
/// Far above the millisecond that is promised: sanitizers slow everything down tenfold, and the scheduler is
/// not ours.
inline constexpr Nanoseconds kLongestStep = 200'000'000;

/// A machine in one process: guest memory, the device, a clock that only the input moves.
class World final : public pci::Host {
  public:
    explicit World(const Device::Options& options = {});
    ~World() override = default;

    GuestRam& ram() { return ram_; }
    ionic::Card& card() { return device_.card(); }
    ionic::RdmaCard& rdma() { return device_.rdma(); }
    [[nodiscard]] std::uint64_t interrupts() const { return interrupts_; }

    /// One round of the event loop.
    void run_once();
    [[nodiscard]] bool work_left() const { return work_left_; }
    /// Lets time pass and runs what became due.
    void advance(Nanoseconds by);
    /// Runs until the device has nothing to do. Long work is cut off, but it must move on all the time: work
    /// that changes nothing fails the run.
    void settle();
    /// The end of an input: settle, let time-outs pass, reset, and nothing may be left.
    void finish();

    // Configuration space, with the poison of the memory following bus mastering.
    void config_write(std::uint32_t offset, Bytes data);

    // pci::Host
    mem::GuestMemory& memory() override { return ram_.memory(); }
    bool send_msix(std::uint16_t vector) override;

  private:
    [[nodiscard]] std::uint64_t progress() const;

    FakeClock clock_;
    EventLoop loop_;
    GuestRam ram_;
    metrics::Registry registry_;
    std::uint64_t interrupts_ = 0;
    bool work_left_ = false;
    Device device_;
};

}  // namespace ernic::fuzz
