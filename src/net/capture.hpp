// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "base/log.hpp"
#include "base/result.hpp"
#include "metrics/registry.hpp"
#include "net/observer.hpp"
#include "net/roce_packets.hpp"
#include "net/segmentation.hpp"
#include "net/spool.hpp"

namespace ernic::net {

/// CLOCK_REALTIME: nanoseconds since 1970.
class RealTimeClock final : public Clock {
  public:
    [[nodiscard]] Nanoseconds now() const override;
};

/// Writes everything on the segment to a pcapng file: frames with the work done that their sender left to the
/// network, messages as the RoCE v2 packets they stand for. Packets go through a bounded buffer to a thread
/// that writes; those that find no room are counted, in the metrics and at the end in the file. Documented in
/// docs/capture.md. Thread: device. Owns: the file and the thread.
class Capture final : public Observer, private WireFrameSink {
  public:
    /// Longer than any packet: nothing is cut off.
    static constexpr std::uint32_t kMaxSnaplen = 262144;
    /// Enough for Ethernet, IP, UDP and the headers of RDMA, or TCP with options.
    static constexpr std::uint32_t kMinSnaplen = 64;
    /// What the writing thread may lag behind: some 10 ms of loopback at full speed.
    static constexpr std::size_t kDefaultBuffer = std::size_t{32} << 20U;

    struct Options {
        std::string path = {};
        /// Bytes kept of each packet.
        std::uint32_t snaplen = kMaxSnaplen;
        /// Who writes, for the file's header.
        std::string application = {};
        /// A power of two.
        std::size_t buffer = kDefaultBuffer;
        /// Called by the writing thread before all else; may be empty.
        std::function<void()> on_thread_start = {};
    };

    /// Creates or empties the file (mode 0600), or opens a pipe that somebody reads from, writes the file's
    /// start and starts the thread. `clock` tells the time of day and must outlive the capture. Must be
    /// called before the sandbox is entered. Fails: Io with one sentence.
    static Result<std::unique_ptr<Capture>> open(const Options& options, const Clock& clock,
                                                 const log::Logger& log);
    /// As finish(). Must no longer be observing.
    ~Capture() override;
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;

    void on_frame(const Frame& frame) override;
    void on_message(const Message& message) override;

    /// Writes the statistics and waits until everything is in the file; nothing is captured afterwards.
    /// Fails: Io with one sentence, when a write failed or a pipe's reader stopped reading.
    Status finish();

    void register_metrics(metrics::Registry& registry);

  private:
    Capture(UniqueFd fd, const Options& options, const Clock& clock, const log::Logger& log);
    void take(const WireFrame& frame) override;
    /// Hands one packet on: `head` and `tail` are what is kept of `length` bytes.
    void store(Bytes head, Bytes tail, std::size_t length);
    void lose();

    std::string path_;
    std::uint32_t snaplen_;
    const Clock& clock_;
    log::Logger log_;
    log::Limiter limiter_;
    FrameFinisher finisher_;
    Spool spool_;
    std::array<std::byte, kMaxRocePacket> packet_{};
    Nanoseconds begin_;
    /// Time of the frame or message being shown.
    Nanoseconds now_ = 0;
    bool finished_ = false;
    bool failure_told_ = false;
    metrics::Counter packets_;
    metrics::Counter dropped_;
    metrics::Counter bad_frames_;
};

}  // namespace ernic::net
