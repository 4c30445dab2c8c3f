// SPDX-License-Identifier: MIT
#include "net/capture.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "net/pcapng.hpp"

namespace ernic::net {
namespace {

Error failed(const std::string& path, int error) {
    // open(2): that is what a pipe without a reader says.
    const char* const reason =
        error == ENXIO ? "nobody reads from this pipe, start the reader first" : std::strerror(error);
    return {Errc::Io, fmt::format("cannot write capture file '{}': {}", path, reason)};
}

}  // namespace

Nanoseconds RealTimeClock::now() const {
    timespec time{};
    clock_gettime(CLOCK_REALTIME, &time);
    return static_cast<Nanoseconds>(time.tv_sec) * 1'000'000'000U + static_cast<Nanoseconds>(time.tv_nsec);
}

Result<std::unique_ptr<Capture>> Capture::open(const Options& options, const Clock& clock,
                                               const log::Logger& log) {
    // Guest data is nobody else's business. Not blocking matters for pipes only.
    constexpr mode_t kOwnerOnly = 0600;
    UniqueFd fd(
        ::open(options.path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_CLOEXEC, kOwnerOnly));
    if (!fd) {
        return failed(options.path, errno);
    }
    const auto start = pcapng::start_of_file(
        {.application = options.application, .interface_name = "segment", .snaplen = options.snaplen});
    if (!write_all(fd.get(), start)) {
        return failed(options.path, errno);
    }
    std::unique_ptr<Capture> capture(new Capture(std::move(fd), options, clock, log));
    if (const int error = capture->spool_.error(); error != 0) {
        return failed(options.path, error);
    }
    return capture;
}

Capture::Capture(UniqueFd fd, const Options& options, const Clock& clock, const log::Logger& log)
    : path_(options.path),
      snaplen_(options.snaplen),
      clock_(clock),
      log_(log),
      spool_(std::move(fd), options.buffer, options.on_thread_start),
      begin_(clock.now()) {
}

Capture::~Capture() {
    (void)finish();
}

void Capture::on_frame(const Frame& frame) {
    now_ = clock_.now();
    if (!finisher_.finish(frame, *this)) {
        bad_frames_.add();
    }
}

void Capture::take(const WireFrame& frame) {
    const Bytes head = frame.head.first(std::min<std::size_t>(frame.head.size(), snaplen_));
    const Bytes tail = frame.tail.first(std::min<std::size_t>(frame.tail.size(), snaplen_ - head.size()));
    store(head, tail, frame.size());
}

void Capture::on_message(const Message& message) {
    now_ = clock_.now();
    RocePackets packets(message);
    while (const auto packet = packets.next(packet_, snaplen_)) {
        store(Bytes(packet_).first(packet->captured), {}, packet->length);
    }
}

void Capture::store(Bytes head, Bytes tail, std::size_t length) {
    const pcapng::PacketFrame frame = pcapng::packet_frame(now_, head.size() + tail.size(), length);
    const std::array<Bytes, 4> parts = {Bytes(frame.header), head, tail,
                                        Bytes(frame.trailer).first(frame.trailer_size)};
    packets_.add();
    if (finished_ || !spool_.put(parts)) {
        lose();
    }
}

void Capture::lose() {
    dropped_.add();
    const int error = spool_.error();
    if (error == 0) {
        log_.warn_limited(limiter_, "capture cannot keep up: {} packets lost so far", dropped_.value());
    } else if (!failure_told_) {
        failure_told_ = true;
        log_.error("{}; the capture ends here", failed(path_, error).message);
    }
}

Status Capture::finish() {
    if (!finished_) {
        finished_ = true;
        const auto statistics = pcapng::statistics_block({.begin = begin_,
                                                          .end = clock_.now(),
                                                          .received = packets_.value(),
                                                          .dropped = dropped_.value()});
        // Fails only when the file has failed, which is told below.
        (void)spool_.put_last(statistics);
        spool_.close();
    }
    if (const int error = spool_.error(); error != 0) {
        return failed(path_, error);
    }
    return Done{};
}

void Capture::register_metrics(metrics::Registry& registry) {
    registry.add({"capture.packets", "packets", "Packets of the segment shown to the capture."}, packets_);
    registry.add({"capture.dropped_packets", "packets",
                  "Packets of those that are missing in the file; high: the disk is slower than the traffic, "
                  "a smaller snaplen helps."},
                 dropped_);
    registry.add({"capture.bad_frames", "frames",
                  "Frames left out because the work their sender asked for makes no sense."},
                 bad_frames_);
}

}  // namespace ernic::net
