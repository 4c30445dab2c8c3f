// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/event_loop.hpp"
#include "base/fd.hpp"
#include "base/log.hpp"
#include "base/result.hpp"
#include "metrics/registry.hpp"
#include "net/bridge.hpp"
#include "net/frame.hpp"
#include "net/segmentation.hpp"
#include "wire/virtio_net.hpp"

namespace ernic::net {

/// Opening, and opening again, of an existing TAP interface. Owns: its descriptors.
class TapDevice {
  public:
    /// Queues that are used of an interface made with `multi_queue`.
    static constexpr std::size_t kMaxQueues = 4;

    /// Opens /dev/net/tun and attaches it to `interface`, which must exist. Fails: with one sentence (no such
    /// interface, not a TAP, in use, no permission, no driver).
    static Result<TapDevice> open(const std::string& interface);

    /// Attaches to the interface again after it was deleted and made anew. Opens nothing and creates nothing.
    /// Fails: as open().
    [[nodiscard]] Status reattach();

    enum class State : std::uint8_t {
        Up,
        Down,  ///< `ip link set .. down`
        Gone,  ///< deleted
    };
    [[nodiscard]] State state() const;

    /// How many queues are attached: one, or more of a `multi_queue` interface.
    [[nodiscard]] std::size_t queues() const { return queues_; }
    /// Precondition: `queue` < queues().
    [[nodiscard]] int fd(std::size_t queue) const { return tuns_[queue].get(); }
    /// Readable when some interface of the process's network namespace has changed.
    [[nodiscard]] int change_fd() const { return changes_.get(); }
    /// Throws away what made change_fd() readable.
    void drain_changes() const;

  private:
    using Tuns = std::array<UniqueFd, kMaxQueues>;
    TapDevice(std::string interface, Tuns tuns, UniqueFd changes)
        : interface_(std::move(interface)), tuns_(std::move(tuns)), changes_(std::move(changes)) {}
    [[nodiscard]] Status attach();
    [[nodiscard]] Status configure(int tun) const;

    std::string interface_;
    /// All open from the beginning, because attaching again must open nothing; the first queues_ are
    /// attached.
    Tuns tuns_;
    std::size_t queues_ = 1;
    UniqueFd changes_;
};

/// Numbers of a TAP, which are there (and zero) without one too.
struct TapCounters {
    metrics::Counter read_errors;
    metrics::Counter malformed;
    metrics::Counter write_full;
    metrics::Counter write_errors;
    metrics::Counter not_up;
    metrics::Counter pauses;
    metrics::Counter link_downs;

    void register_metrics(metrics::Registry& registry) const;
};

/// A TAP interface of the host as a port of the segment. Frames travel with a virtio-net header, so that
/// checksums and TCP segmentation stay undone both ways until somebody needs them done:
///
///     guest memory --- one writev ---> | virtio_net_hdr | frame |      guest's TSO packet: one frame
///     read of 64 KiB                <- | virtio_net_hdr | frame |      cut only for a port without offloads
///
/// Of an interface with several queues up to TapDevice::kMaxQueues are used: a flow (addresses and ports)
/// stays in one, so that its packets keep their order, and the kernel answers a flow in the queue it came
/// from; a flow that fills its queue loses only its own packets.
///
/// While the interface is down or gone nothing is sent, and the link is reported as down. Thread: device.
class Tap final : public FrameSink {
  public:
    /// All references must outlive this.
    Tap(TapDevice device, FramePort& port, TapCounters& counters, EventLoop& loop, const log::Logger& log);
    ~Tap() override;
    Tap(const Tap&) = delete;
    Tap& operator=(const Tap&) = delete;

    void transmit(const Frame& frame) override;

    /// Reads frames while there are some, the budget of a round lasts and the segment has room; true when
    /// there were some.
    bool read_frames();
    /// For the busy-poll window: read_frames(), but while there are none only every few times, since each
    /// look is a system call. Nothing is lost: the event loop still watches the TAP.
    bool poll();

    [[nodiscard]] bool up() const { return up_; }
    /// `handler` hears every change of up().
    void on_link(std::function<void(bool up)> handler) { link_handler_ = std::move(handler); }

  private:
    void on_event(std::uint32_t events);
    bool read_frame(int fd);
    /// Listens to the attached queues, or to none.
    void watch(bool on);
    /// What each queue is watched for now.
    void set_events(std::uint32_t events);
    void forward(MutableBytes packet, const wire::VirtioNetHeader& header);
    void write_super_frame(const Frame& frame);
    void write_plain(const Frame& frame);
    /// The queue of the flow that a frame starting with `head`, or with `rest` without one, belongs to.
    [[nodiscard]] int queue_for(Bytes head, const mem::SpanList& rest) const;
    /// A virtio-net header and what `head` and `rest` hold, in one write.
    void write(const wire::VirtioNetHeader& header, Bytes head, const mem::SpanList& rest, std::size_t skip);
    /// Looks whether the interface is up, attaches again when it is gone, and tells of changes.
    void check_link();
    void pause();
    void resume();

    TapDevice device_;
    FramePort& port_;
    TapCounters& counters_;
    EventLoop& loop_;
    log::Logger log_;
    log::Limiter write_limiter_;
    std::function<void(bool up)> link_handler_;
    Timer retry_;
    Timer patience_;
    bool up_ = false;
    /// How many queues the loop watches: all of the device, or none.
    std::size_t watched_ = 0;
    /// The queue whose turn it is to be read.
    std::size_t next_queue_ = 0;
    /// Calls of poll() until it looks.
    int polls_left_ = 1;
    bool paused_ = false;
    /// The next frame is read even when nobody has room for it.
    bool impatient_ = false;
    std::vector<std::byte> buffer_;
};

}  // namespace ernic::net
