// SPDX-License-Identifier: MIT
#include "net/tap.hpp"

#include <sys/epoll.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "net/flow_hash.hpp"
#include "wire/ethernet.hpp"

namespace ernic::net {
namespace {

/// A virtio-net header, a packet of the greatest IP length, Ethernet header and tags.
constexpr std::size_t kReadSize = sizeof(wire::VirtioNetHeader) + 65535 + 64;
/// Frames of one turn of the event loop, and the time a turn takes over all queues, give or take a frame.
constexpr int kFramesPerRound = 64;
constexpr Nanoseconds kLongestRound = 100'000;
/// One read may become this many frames: 64 KiB at an MTU of 1500 are 46.
constexpr std::size_t kRoomForOneRead = 64;
/// How long the TAP's queue is made to wait for a receiver without buffers before frames are dropped.
constexpr Nanoseconds kPatience = 100'000'000;
/// While its queues are empty, every fourth poll() looks: an empty read costs as much as the other polling of
/// a round of the busy-poll window, and the guest's doorbells are what most rounds bring.
constexpr int kPollsPerLook = 4;
/// How often an interface that is down or gone is looked at when nothing else tells.
constexpr Nanoseconds kRetry = 1'000'000'000;

}  // namespace

void TapCounters::register_metrics(metrics::Registry& registry) const {
    registry.add({"tap.read_errors", "errors", "reads from the TAP that failed: it was deleted"},
                 read_errors);
    registry.add({"tap.malformed", "frames", "frames with offload work that made no sense, dropped"},
                 malformed);
    registry.add({"tap.write_full", "frames", "frames dropped because the TAP's queue was full"}, write_full);
    registry.add({"tap.write_errors", "frames",
                  "frames the kernel refused; high: the guest sends frames with impossible offload requests"},
                 write_errors);
    registry.add({"tap.not_up", "frames", "frames dropped because the TAP was down or deleted"}, not_up);
    registry.add({"tap.pauses", "times",
                  "reading stopped until the guest had receive buffers; high: the guest is slower than the "
                  "host"},
                 pauses);
    registry.add(
        {"tap.link_downs", "times", "the TAP went down or was deleted, and the guest's link with it"},
        link_downs);
}

Tap::Tap(TapDevice device, FramePort& port, TapCounters& counters, EventLoop& loop, const log::Logger& log)
    : device_(std::move(device)),
      port_(port),
      counters_(counters),
      loop_(loop),
      log_(log),
      retry_(loop, [this] { check_link(); }),
      patience_(loop,
                [this] {
                    impatient_ = true;
                    resume();
                }),
      buffer_(kReadSize) {
    loop_.add(device_.change_fd(), EPOLLIN, [this](std::uint32_t) {
        device_.drain_changes();
        check_link();
    });
    port_.on_room([this] {
        if (paused_ && port_.room() >= kRoomForOneRead) {
            resume();
        }
    });
    port_.connect(this);
    check_link();
}

Tap::~Tap() {
    port_.connect(nullptr);
    port_.on_room(nullptr);
    loop_.remove(device_.change_fd());
    watch(false);
}

// Link.

void Tap::check_link() {
    TapDevice::State state = device_.state();
    if (state == TapDevice::State::Gone) {
        watch(false);  // it would report its error for ever
        if (device_.reattach()) {
            state = device_.state();
        }
    }
    if (state != TapDevice::State::Gone) {
        watch(true);
    }
    const bool now_up = state == TapDevice::State::Up;
    if (!now_up) {
        retry_.arm(loop_.clock().now() + kRetry);
    }
    if (now_up == up_) {
        return;
    }
    up_ = now_up;
    if (!up_) {
        counters_.link_downs.add();
    }
    log_.info("tap {}", up_ ? "up" : state == TapDevice::State::Gone ? "gone" : "down");
    if (link_handler_) {
        link_handler_(up_);
    }
}

void Tap::on_event(std::uint32_t events) {
    if ((events & EPOLLERR) != 0) {
        check_link();
        return;
    }
    read_frames();
}

void Tap::watch(bool on) {
    if (!on) {
        for (; watched_ != 0; --watched_) {
            loop_.remove(device_.fd(watched_ - 1));
        }
    } else if (watched_ == 0) {
        next_queue_ = 0;
        for (; watched_ < device_.queues(); ++watched_) {
            loop_.add(device_.fd(watched_), paused_ ? 0U : std::uint32_t{EPOLLIN},
                      [this](std::uint32_t events) { on_event(events); });
        }
    }
}

void Tap::set_events(std::uint32_t events) {
    for (std::size_t queue = 0; queue < watched_; ++queue) {
        loop_.modify(device_.fd(queue), events);
    }
}

void Tap::pause() {
    paused_ = true;
    counters_.pauses.add();
    set_events(0);
    patience_.arm(loop_.clock().now() + kPatience);
}

void Tap::resume() {
    paused_ = false;
    patience_.cancel();
    set_events(EPOLLIN);
}

// Host to segment.

bool Tap::read_frames() {
    if (paused_ || watched_ == 0) {
        return false;
    }
    // Each queue that is readable has a turn of its own in the same round of the event loop.
    const Nanoseconds end = loop_.clock().now() + kLongestRound / static_cast<Nanoseconds>(watched_);
    std::size_t empty = 0;
    for (int i = 0; i < kFramesPerRound; ++i) {
        // The kernel's queue in front of the TAP can wait; the guest's receive ring cannot.
        if (!impatient_ && port_.room() < kRoomForOneRead) {
            pause();
            return i != 0;
        }
        // A queue is read as long as it has frames, then the next one; a round ends when all are empty.
        while (!read_frame(device_.fd(next_queue_))) {
            if (watched_ == 0) {
                return i != 0;
            }
            next_queue_ = (next_queue_ + 1) % watched_;
            if (++empty == watched_) {
                return i != 0;
            }
        }
        empty = 0;
        impatient_ = false;
        if (loop_.clock().now() >= end) {
            break;
        }
    }
    if (watched_ != 0) {
        // Nobody waits for a queue that never empties.
        next_queue_ = (next_queue_ + 1) % watched_;
    }
    return true;
}

bool Tap::poll() {
    if (--polls_left_ > 0) {
        return false;
    }
    const bool frames = read_frames();
    polls_left_ = frames ? 1 : kPollsPerLook;
    return frames;
}

bool Tap::read_frame(int fd) {
    const ssize_t size = ::read(fd, buffer_.data(), buffer_.size());
    if (size < 0) {
        if (errno != EAGAIN && errno != EINTR) {
            counters_.read_errors.add();
            check_link();
        }
        return false;
    }
    const MutableBytes whole = MutableBytes(buffer_).first(static_cast<std::size_t>(size));
    const auto header = read_value<wire::VirtioNetHeader>(whole);
    if (!header) {
        counters_.malformed.add();
        return true;
    }
    forward(whole.subspan(sizeof *header), *header);
    return true;
}

void Tap::forward(MutableBytes packet, const wire::VirtioNetHeader& header) {
    const bool pending = (header.flags & wire::kVirtioNeedsChecksum) != 0;
    mem::SpanList data;
    if (header.gso_type == wire::kVirtioGsoNone) {
        data.add(packet.data(), packet.size());
        Frame frame{.data = data, .insert_vlan = {}, .checksum = {}, .segmentation = {}};
        frame.checksum_valid = (header.flags & wire::kVirtioDataValid) != 0;
        if (pending) {
            frame.checksum = {header.checksum_start.get(), header.checksum_offset.get()};
        }
        port_.transmit(frame);
        return;
    }
    const auto type = static_cast<std::uint8_t>(header.gso_type & ~wire::kVirtioGsoEcn);
    const auto layout = tcp_layout(packet);
    const bool tcp = layout && type == (layout->ipv4 ? wire::kVirtioGsoTcp4 : wire::kVirtioGsoTcp6);
    if (!tcp || header.gso_size.get() == 0) {
        counters_.malformed.add();
        return;
    }
    const MutableBytes payload = packet.subspan(layout->size);
    data.add(payload.data(), payload.size());
    port_.transmit({.data = data,
                    .insert_vlan = {},
                    .checksum = {},
                    .segmentation = Frame::Segmentation{.header = packet.first(layout->size),
                                                        .segment_size = header.gso_size.get(),
                                                        .first_segment = 0,
                                                        .last = true}});
}

// Segment to host.

void Tap::transmit(const Frame& frame) {
    if (!up_) {
        counters_.not_up.add();
        port_.dropped();
    } else if (frame.segmentation) {
        write_super_frame(frame);
    } else {
        write_plain(frame);
    }
}

void Tap::write_super_frame(const Frame& frame) {
    std::array<std::byte, kMaxHeader> buffer;
    const auto packet = super_frame(frame, buffer);
    if (!packet) {
        counters_.malformed.add();
        port_.dropped();
        return;
    }
    wire::VirtioNetHeader header{};
    header.flags = wire::kVirtioNeedsChecksum;
    header.checksum_start.set(packet->checksum.start);
    header.checksum_offset.set(packet->checksum.offset);
    if (packet->segment_size != 0) {
        header.gso_type =
            static_cast<std::uint8_t>((packet->ipv4 ? wire::kVirtioGsoTcp4 : wire::kVirtioGsoTcp6) |
                                      (packet->ecn ? wire::kVirtioGsoEcn : 0));
        header.gso_size.set(packet->segment_size);
        header.header_size.set(static_cast<std::uint16_t>(packet->header.size()));
    }
    write(header, packet->header, frame.data, 0);
}

void Tap::write_plain(const Frame& frame) {
    wire::VirtioNetHeader header{};
    std::size_t shift = 0;
    std::array<std::byte, wire::kMacAddressesSize + sizeof(wire::VlanTag)> tagged;
    Bytes head;
    if (frame.insert_vlan) {
        // The bridge sends on only frames with whole MAC addresses.
        copy_with_tag(frame.data, *frame.insert_vlan, tagged);
        head = tagged;
        shift = sizeof(wire::VlanTag);
    }
    if (frame.checksum) {
        header.flags = wire::kVirtioNeedsChecksum;
        header.checksum_start.set(static_cast<std::uint16_t>(frame.checksum->start + shift));
        header.checksum_offset.set(frame.checksum->offset);
    }
    write(header, head, frame.data, frame.insert_vlan ? wire::kMacAddressesSize : 0);
}

int Tap::queue_for(Bytes head, const mem::SpanList& rest) const {
    std::array<std::byte, kFlowBytes> start;
    std::size_t size = std::min(head.size(), start.size());
    std::copy_n(head.begin(), size, start.begin());
    // A head of no more than the MAC addresses and a tag continues in the frame behind its addresses.
    const std::size_t skip = size != 0 ? wire::kMacAddressesSize : 0;
    if (size < kFlowBytes) {
        size += mem::copy(MutableBytes(start).subspan(size), rest, skip);
    }
    return device_.fd(flow_hash(Bytes(start).first(size)) % device_.queues());
}

void Tap::write(const wire::VirtioNetHeader& header, Bytes head, const mem::SpanList& rest,
                std::size_t skip) {
    const int queue = device_.queues() == 1 ? device_.fd(0) : queue_for(head, rest);
    std::array<iovec, 2 + mem::SpanList::kCapacity> parts;
    int count = 0;
    const auto add = [&](const std::byte* data, std::size_t size) {
        // writev only reads, but its structure has no const.
        parts[static_cast<std::size_t>(count++)] = {const_cast<std::byte*>(data), size};
    };
    add(bytes_of(header).data(), sizeof header);
    if (!head.empty()) {
        add(head.data(), head.size());
    }
    for (const mem::SpanList::Piece& piece : rest) {
        const std::size_t skipped = std::min(skip, piece.size);
        skip -= skipped;
        if (skipped != piece.size) {
            add(piece.data + skipped, piece.size - skipped);
        }
    }
    if (::writev(queue, parts.data(), count) >= 0) {
        return;
    }
    const int error = errno;
    port_.dropped();
    if (error == EAGAIN || error == ENOBUFS) {
        counters_.write_full.add();
    } else if (error == EIO || error == EBADFD) {
        counters_.not_up.add();
        check_link();
    } else {
        counters_.write_errors.add();
        log_.warn_limited(write_limiter_, "frame refused: {}", std::strerror(error));
    }
}

}  // namespace ernic::net
