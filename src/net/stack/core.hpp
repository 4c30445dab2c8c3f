// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "base/event_loop.hpp"
#include "base/log.hpp"
#include "net/segmentation.hpp"
#include "net/stack/filter.hpp"
#include "net/stack/host.hpp"
#include "net/stack/lwip.hpp"
#include "net/stack/stack.hpp"

/// Private to this folder: what lies behind the public types.
namespace ernic::net::stack {

/// Something that lwIP's call-backs have changed and that its user is to hear of, outside of lwIP.
class Pending {
  public:
    virtual ~Pending() = default;
    virtual void dispatch() = 0;

  private:
    friend class Core;
    bool queued_ = false;
};

/// The one instance behind a Stack: queues, memory, timers. Thread: device.
class Core final : private WireFrameSink {
  public:
    Core(EventLoop& loop, Counters& counters, const log::Logger& log, const Limits& limits);
    ~Core() override;
    Core(const Core&) = delete;
    Core& operator=(const Core&) = delete;

    bool step();
    /// From the segment, for `host`.
    void receive(Host::Impl& host, const Frame& frame);
    [[nodiscard]] std::size_t room() const;
    [[nodiscard]] std::size_t memory_in_use() const { return frame_bytes_; }
    [[nodiscard]] bool timer_armed() const { return timer_.armed(); }

    void add(Host::Impl& host);
    void remove(Host::Impl& host);
    /// The host that owns a source address; null when there is none, and nothing may be sent from it.
    [[nodiscard]] Host::Impl* owner_of(const IpAddress& source) const;

    /// `what` gets a dispatch() in this or the next step.
    void defer(std::shared_ptr<Pending> what);
    /// A neighbour is being looked for: its retries need timers. lwIP may be at work.
    void solicits();
    /// Brings lwIP's timers up to now, so that what is asked of it next does not age by the time before. Does
    /// nothing while lwIP is at work: its timers send, and none of its functions may be entered twice.
    void catch_up();
    /// To be called after anything that may have opened or closed a connection.
    void update_timer();

    /// Time is being made up for: nothing is sent.
    [[nodiscard]] bool quiet() const { return quiet_; }

    [[nodiscard]] Counters& counters() { return counters_; }
    [[nodiscard]] const Limits& limits() const { return limits_; }
    [[nodiscard]] EventLoop& loop() { return loop_; }
    [[nodiscard]] const log::Logger& log() const { return log_; }

  private:
    struct Received {
        Host::Impl* host;
        pbuf* packet;
        Classified what;
    };
    struct Block;

    void take(const WireFrame& frame) override;
    void receive_super_frame(const SuperFrame& packet, const mem::SpanList& payload);
    /// Filters, and queues a copy. `head` and `rest` are the frame.
    void queue(Bytes head, std::size_t size, const std::function<void(MutableBytes)>& fill);
    [[nodiscard]] bool connection_allowed();
    pbuf* allocate(std::size_t size);
    static void release(pbuf* packet);
    void handle(const Received& received);
    bool dispatch_pending();
    void on_timer();

    EventLoop& loop_;
    Counters& counters_;
    log::Logger log_;
    Limits limits_;
    FrameFinisher finisher_;
    std::vector<Host::Impl*> hosts_;
    std::deque<Received> incoming_;
    std::deque<std::shared_ptr<Pending>> pending_;
    /// For whom receive() is working.
    Host::Impl* receiving_ = nullptr;
    std::size_t frame_bytes_ = 0;
    bool was_full_ = false;
    bool quiet_ = false;
    /// In the middle of a frame or of lwIP's timers.
    bool at_work_ = false;
    Timer timer_;
    Nanoseconds last_fast_;
    Nanoseconds last_slow_;
    Nanoseconds soliciting_until_ = 0;
};

/// A host and its lwIP interface.
struct Host::Impl {
    Impl(Core& core_in, FramePort& port_in, const HostConfig& config_in);
    ~Impl();
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    /// Sends what waits for room; true when something was sent.
    bool flush();
    void send(pbuf* packet);
    err_t output_v4(pbuf* packet, const ip4_addr_t* destination);
    err_t output_v6(pbuf* packet, const ip6_addr_t* destination);
    void link_output(pbuf* packet);
    /// All own addresses.
    [[nodiscard]] std::vector<IpAddress> all() const;

    Core& core;
    FramePort& port;
    HostConfig config;
    HostAddresses addresses;
    netif interface {};
    /// Frames that the receivers had no room for.
    std::deque<pbuf*> waiting;
    std::size_t waiting_bytes = 0;
    Timer patience;
};

}  // namespace ernic::net::stack
