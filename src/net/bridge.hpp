// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "metrics/registry.hpp"
#include "net/filter.hpp"
#include "net/frame.hpp"
#include "net/mac_table.hpp"
#include "net/observer.hpp"

namespace ernic::net {

class Bridge;

/// A socket of the segment for somebody who sends and takes frames: the guest's card, a TAP device. Exists
/// from the beginning; a device may be plugged in later. Thread: device.
class FramePort final : public FrameSink {
  public:
    /// `name` is part of the names of its numbers. `bridge` must outlive the port.
    FramePort(Bridge& bridge, std::string name);
    ~FramePort() override;
    FramePort(const FramePort&) = delete;
    FramePort& operator=(const FramePort&) = delete;

    /// Plugs in who takes the frames that leave the segment here; null pulls it out. It must outlive its time
    /// here.
    void connect(FrameSink* device) { device_ = device; }

    /// From the device into the segment.
    void transmit(const Frame& frame) override;
    /// The least room any other device has.
    [[nodiscard]] std::size_t room() const override;

    /// The device could not take a frame it was given.
    void dropped() { drops_.add(); }
    /// `handler` hears that another device may have more room.
    void on_room(std::function<void()> handler) { room_handler_ = std::move(handler); }
    /// The device has made room; tells the others.
    void made_room();

    [[nodiscard]] const std::string& name() const { return name_; }
    /// Somebody takes the frames that leave here.
    [[nodiscard]] bool connected() const { return device_ != nullptr; }
    struct Counts {
        std::uint64_t frames_in = 0;
        std::uint64_t bytes_in = 0;
        std::uint64_t frames_out = 0;
        std::uint64_t bytes_out = 0;
        std::uint64_t drops = 0;
    };
    [[nodiscard]] Counts counts() const;

    void register_metrics(metrics::Registry& registry) const;

  private:
    friend class Bridge;
    void deliver(const Frame& frame);

    Bridge& bridge_;
    std::string name_;
    FrameSink* device_ = nullptr;
    MacTable::Port id_ = 0;
    std::function<void()> room_handler_;
    metrics::Counter frames_in_;
    metrics::Counter bytes_in_;
    metrics::Counter frames_out_;
    metrics::Counter bytes_out_;
    metrics::Counter drops_;
};

/// A learning bridge (IEEE 802.1D) between frame ports. Thread: device.
class Bridge {
  public:
    /// A segment has the guest, a TAP, services and the mesh.
    static constexpr std::size_t kMaxPorts = 32;

    /// Without a clock nothing ages. `clock` must outlive the bridge.
    explicit Bridge(const Clock* clock) : clock_(clock) {}

    /// `observer` sees each frame once, before it is delivered; null ends it.
    void observe(Observer* observer) { observer_ = observer; }
    /// `filter` decides on each frame, after the observer; null ends it.
    void filter(Filter* filter) { filter_ = filter; }
    /// Whose port is the guest's, for the path a filter is told.
    void set_guest(const FramePort& port) { guest_ = port.id_; }

    /// To the port its destination was last seen at; to all others when that is unknown; never back to
    /// `from`. For a filter that kept a frame back; everybody else transmits.
    void deliver(const Frame& frame, MacTable::Port from);

    /// The port with number `id`; null when there is none.
    [[nodiscard]] const FramePort* port(MacTable::Port id) const { return ports_[id]; }
    /// See MacTable::at().
    [[nodiscard]] std::optional<MacTable::Seen> address(std::size_t place) const {
        return table_.at(place, now());
    }

    void register_metrics(metrics::Registry& registry) const;

  private:
    friend class FramePort;
    void add(FramePort& port);
    void remove(FramePort& port);
    void forward(FramePort& from, const Frame& frame);
    /// The port `destination` was last seen at. Fails: nullopt, which means all.
    [[nodiscard]] std::optional<MacTable::Port> port_of(const wire::MacAddress& destination,
                                                        Nanoseconds time) const;
    [[nodiscard]] Path path_of(MacTable::Port from, std::optional<MacTable::Port> known) const;
    void hand_over(const Frame& frame, MacTable::Port from, std::optional<MacTable::Port> known);
    [[nodiscard]] Nanoseconds now() const { return clock_ != nullptr ? clock_->now() : 0; }

    const Clock* clock_;
    Observer* observer_ = nullptr;
    Filter* filter_ = nullptr;
    std::optional<MacTable::Port> guest_;
    MacTable table_;
    std::array<FramePort*, kMaxPorts> ports_{};
    metrics::Counter floods_;
    metrics::Counter same_port_;
    metrics::Counter runts_;
    metrics::Counter evictions_;
};

}  // namespace ernic::net
