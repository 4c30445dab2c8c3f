// SPDX-License-Identifier: MIT
#include "net/capture.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
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

void CaptureCounters::register_metrics(metrics::Registry& registry) const {
    registry.add({"capture.packets", "packets", "Packets of the segment shown to the capture."}, packets);
    registry.add({"capture.dropped_packets", "packets",
                  "Packets of those that are missing in the file; high: the disk is slower than the traffic, "
                  "a smaller snaplen helps."},
                 dropped);
    registry.add({"capture.bad_frames", "frames",
                  "Frames left out because the work their sender asked for makes no sense."},
                 bad_frames);
}

Result<std::unique_ptr<Capture>> Capture::make(const Options& options, const Clock& clock,
                                               const log::Logger& log) {
    std::unique_ptr<Capture> capture(new Capture(options, clock, log));
    if (const int error = capture->spool_.error(); error != 0) {
        return Error{Errc::Io, fmt::format("cannot prepare a capture: {}", std::strerror(error))};
    }
    return capture;
}

Capture::Capture(const Options& options, const Clock& clock, const log::Logger& log)
    : application_(options.application),
      clock_(clock),
      log_(log),
      spool_(options.buffer, options.on_thread_start) {
}

Capture::~Capture() {
    (void)finish();
}

std::vector<std::byte> Capture::start_of_file(std::uint32_t snaplen) const {
    return pcapng::start_of_file(
        {.application = application_, .interface_name = "segment", .snaplen = snaplen});
}

Status Capture::open(const std::string& path, std::uint32_t snaplen) {
    // Guest data is nobody else's business. Not blocking matters for pipes only.
    constexpr mode_t kOwnerOnly = 0600;
    UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_CLOEXEC, kOwnerOnly));
    if (!fd || !write_all(fd.get(), start_of_file(snaplen))) {
        return failed(path, errno);
    }
    return begin(std::move(fd), path, snaplen);
}

Status Capture::start(UniqueFd fd, const std::string& name, std::uint32_t snaplen) {
    struct stat info {};
    const int flags = ::fcntl(fd.get(), F_GETFL);
    if (flags < 0 || ::fstat(fd.get(), &info) != 0 || (flags & O_PATH) != 0 ||
        (flags & O_ACCMODE) == O_RDONLY) {
        return Error{Errc::InvalidArgument, "the descriptor is not open for writing"};
    }
    if (!S_ISREG(info.st_mode) && !S_ISFIFO(info.st_mode) && !S_ISSOCK(info.st_mode) &&
        !S_ISCHR(info.st_mode)) {
        return Error{Errc::InvalidArgument, "a capture goes to a file, a pipe or a socket"};
    }
    if (!S_ISREG(info.st_mode) && ::fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK) != 0) {
        return failed(name, errno);
    }
    if (Status begun = begin(std::move(fd), name, snaplen); !begun) {
        return begun;
    }
    const auto header = start_of_file(snaplen);
    const Bytes part = header;
    (void)spool_.put(std::span(&part, 1));  // an empty buffer has room
    return Done{};
}

Status Capture::begin(UniqueFd fd, const std::string& name, std::uint32_t snaplen) {
    if (!spool_.open(std::move(fd))) {
        return Error{Errc::NoSpace, "no memory for the capture's buffer"};
    }
    name_ = name;
    snaplen_ = snaplen;
    begin_ = clock_.now();
    before_ = {counters_.packets.value(), counters_.dropped.value()};
    running_ = true;
    return Done{};
}

void Capture::stop() {
    if (!running_) {
        return;
    }
    const Counts seen = counts();
    const auto statistics = pcapng::statistics_block(
        {.begin = begin_, .end = clock_.now(), .received = seen.packets, .dropped = seen.dropped});
    // Fails only when the file has failed, which outcome() tells.
    (void)spool_.put_last(statistics);
    spool_.finish();
    after_ = {counters_.packets.value(), counters_.dropped.value()};
    running_ = false;
}

Status Capture::finish() {
    stop();
    spool_.close();
    return outcome();
}

Capture::State Capture::state() const {
    return running_ ? State::Running : spool_.idle() ? State::Idle : State::Ending;
}

Status Capture::outcome() const {
    const int error = spool_.error();
    return error == 0 ? Status(Done{}) : Status(failed(name_, error));
}

Capture::Counts Capture::counts() const {
    const Counts now = running_ ? Counts{counters_.packets.value(), counters_.dropped.value()} : after_;
    return {now.packets - before_.packets, now.dropped - before_.dropped};
}

void Capture::on_frame(const Frame& frame) {
    now_ = clock_.now();
    if (!finisher_.finish(frame, *this)) {
        counters_.bad_frames.add();
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
    counters_.packets.add();
    if (!running_ || !spool_.put(parts)) {
        lose();
    }
}

void Capture::lose() {
    counters_.dropped.add();
    if (spool_.error() == 0) {
        log_.warn_limited(limiter_, "capture cannot keep up: {} packets lost so far",
                          counters_.dropped.value());
    }
}

}  // namespace ernic::net
