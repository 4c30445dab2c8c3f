// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

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

/// Numbers of captures, which are there (and stay) without one, too.
struct CaptureCounters {
    metrics::Counter packets;
    metrics::Counter dropped;
    metrics::Counter bad_frames;

    void register_metrics(metrics::Registry& registry) const;
};

/// Writes everything on the segment to a pcapng file: frames with the work done that their sender left to the
/// network, messages as the RoCE v2 packets they stand for. Packets go through a bounded buffer to a thread
/// that writes; those that find no room are counted, in the metrics and at the end in the file. One file at a
/// time, as often as wanted. Documented in docs/capture.md. Thread: device. Owns: the file and the thread.
class Capture final : public Observer, private WireFrameSink {
  public:
    /// Longer than any packet: nothing is cut off.
    static constexpr std::uint32_t kMaxSnaplen = 262144;
    /// Enough for Ethernet, IP, UDP and the headers of RDMA, or TCP with options.
    static constexpr std::uint32_t kMinSnaplen = 64;
    /// What the writing thread may lag behind: some 10 ms of loopback at full speed.
    static constexpr std::size_t kDefaultBuffer = std::size_t{32} << 20U;

    struct Options {
        /// Who writes, for the file's header.
        std::string application = {};
        /// A power of two.
        std::size_t buffer = kDefaultBuffer;
        /// Called by the writing thread before all else; may be empty.
        std::function<void()> on_thread_start = {};
    };

    /// Starts the thread, which sleeps until there is a file. `clock` tells the time of day and must outlive
    /// the capture. Must be called before the sandbox is entered. Fails: Io with one sentence.
    static Result<std::unique_ptr<Capture>> make(const Options& options, const Clock& clock,
                                                 const log::Logger& log);
    /// As finish(). Must no longer be observing.
    ~Capture() override;
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;

    /// Creates or empties the file (mode 0600), or opens a pipe that somebody reads from, writes the file's
    /// start and begins. Not in the sandbox. Precondition: state() is Idle. Fails: Io with one sentence.
    [[nodiscard]] Status open(const std::string& path, std::uint32_t snaplen = kMaxSnaplen);
    /// Begins on a descriptor somebody has opened for us: a file, written from where it stands, a pipe or a
    /// socket, which is made non-blocking. `name` is for the log. Opens nothing and does not wait.
    /// Precondition: state() is Idle. Fails: InvalidArgument (not open for writing, or nothing a capture
    /// could be written to), NoSpace (no memory for the buffer).
    [[nodiscard]] Status start(UniqueFd fd, const std::string& name, std::uint32_t snaplen = kMaxSnaplen);
    /// Ends the file with its statistics; nothing is captured afterwards. Does not wait: the thread writes
    /// out what is left.
    void stop();
    /// stop(), and waits until everything is in the file. Returns outcome().
    Status finish();

    enum class State : std::uint8_t {
        Idle,     ///< no file
        Running,  ///< also when the file has failed, until stop()
        Ending,   ///< stopped, and the thread still writes
    };
    [[nodiscard]] State state() const;
    /// How the last or current file is doing. Fails: Io with one sentence, when a write failed or a pipe's
    /// reader stopped reading.
    [[nodiscard]] Status outcome() const;
    /// The same as an errno: EPIPE when a pipe's reader has gone; 0: well.
    [[nodiscard]] int error() const { return spool_.error(); }
    /// Readable when state() or outcome() have changed on the thread's side.
    [[nodiscard]] int event_fd() const { return spool_.event_fd(); }

    /// What the last or current file has seen.
    struct Counts {
        std::uint64_t packets = 0;
        std::uint64_t dropped = 0;  ///< of those, not in the file
    };
    [[nodiscard]] Counts counts() const;
    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] std::uint32_t snaplen() const { return snaplen_; }

    void on_frame(const Frame& frame) override;
    void on_message(const Message& message) override;

    void register_metrics(metrics::Registry& registry) const { counters_.register_metrics(registry); }

  private:
    Capture(const Options& options, const Clock& clock, const log::Logger& log);
    [[nodiscard]] std::vector<std::byte> start_of_file(std::uint32_t snaplen) const;
    [[nodiscard]] Status begin(UniqueFd fd, const std::string& name, std::uint32_t snaplen);
    void take(const WireFrame& frame) override;
    /// Hands one packet on: `head` and `tail` are what is kept of `length` bytes.
    void store(Bytes head, Bytes tail, std::size_t length);
    void lose();

    std::string application_;
    const Clock& clock_;
    log::Logger log_;
    log::Limiter limiter_;
    FrameFinisher finisher_;
    Spool spool_;
    CaptureCounters counters_;
    std::array<std::byte, kMaxRocePacket> packet_{};

    // Of the current or last file.
    std::string name_;
    std::uint32_t snaplen_ = kMaxSnaplen;
    Nanoseconds begin_ = 0;
    /// The numbers at its beginning, and at its end.
    Counts before_;
    Counts after_;
    bool running_ = false;
    /// Time of the frame or message being shown.
    Nanoseconds now_ = 0;
};

}  // namespace ernic::net
