// SPDX-License-Identifier: MIT
#include "net/stack/core.hpp"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <new>

#include "net/checksum.hpp"
#include "net/stack/tcp_window.hpp"

namespace ernic::net::stack {
namespace {

/// lwIP's TCP timer, and that of everything else.
constexpr Nanoseconds kFast = Nanoseconds{TCP_TMR_INTERVAL} * 1'000'000;
constexpr Nanoseconds kSlow = 1'000'000'000;
/// ARP gives up after 5 s, neighbour discovery after 3.
constexpr Nanoseconds kSolicitation = 6'000'000'000;
/// Nothing in lwIP's tables lives longer: what is older may as well be exactly so old.
constexpr Nanoseconds kOldest = 300'000'000'000;
/// Waiting frames; a bound beside that of their bytes, since each also costs a look.
constexpr std::size_t kQueue = 1024;
/// What one step may cost: some 50 us of copying and checking.
constexpr std::size_t kFramesPerStep = 16;
constexpr std::size_t kBytesPerStep = std::size_t{64} << 10U;
constexpr std::size_t kDispatchesPerStep = 4;
/// As much of a frame as the filter looks at.
constexpr std::size_t kFilterHead = 128;
/// Ethernet header 14: this aligns the IP header.
constexpr std::size_t kAlignment = 2;
/// Closed connections that wait for stray segments (TIME-WAIT) beyond this make room for new ones.
constexpr std::size_t kMaxTimeWait = 256;

Core* the_core = nullptr;

std::size_t length_of(const tcp_pcb* list) {
    std::size_t count = 0;
    for (; list != nullptr; list = list->next) {
        ++count;
    }
    return count;
}

}  // namespace

/// A received frame for lwIP: its pbuf, and behind it the bytes.
struct Core::Block {
    pbuf_custom custom{};
    Core* core = nullptr;
    std::size_t size = 0;
};

Core::Core(EventLoop& loop, Counters& counters, const log::Logger& log, const Limits& limits)
    : loop_(loop),
      counters_(counters),
      log_(log),
      limits_(limits),
      timer_(loop, [this] { on_timer(); }),
      last_fast_(loop.clock().now()),
      last_slow_(last_fast_) {
    assert(the_core == nullptr && "lwIP's state is global: one stack at a time");
    the_core = this;
    static const bool initialised = [] {
        lwip_init();
        return true;
    }();
    (void)initialised;
}

Core::~Core() {
    assert(hosts_.empty());
    // What was closed but not yet acknowledged belongs to nobody any more.
    while (tcp_active_pcbs != nullptr) {
        tcp_abort(tcp_active_pcbs);
    }
    while (tcp_tw_pcbs != nullptr) {
        tcp_abandon(tcp_tw_pcbs, 0);
    }
    for (int i = 0; i < 64; ++i) {  // lets go of half reassembled datagrams
        ip_reass_tmr();
        ip6_reass_tmr();
    }
    for (const Received& received : incoming_) {
        pbuf_free(received.packet);
    }
    the_core = nullptr;
}

void Core::add(Host::Impl& host) {
    hosts_.push_back(&host);
}

void Core::remove(Host::Impl& host) {
    std::erase(hosts_, &host);
    std::erase_if(incoming_, [&host](const Received& received) {
        if (received.host != &host) {
            return false;
        }
        pbuf_free(received.packet);
        return true;
    });
    if (netif_default == &host.interface) {
        netif_default = nullptr;
    }
}

Host::Impl* Core::owner_of(const IpAddress& source) const {
    for (Host::Impl* host : hosts_) {
        if (host->addresses.owns(source)) {
            return host;
        }
    }
    return nullptr;
}

// Segment to lwIP.

std::size_t Core::room() const {
    return frame_bytes_ >= limits_.frame_bytes() || incoming_.size() >= kQueue ? 0
                                                                               : kQueue - incoming_.size();
}

void Core::receive(Host::Impl& host, const Frame& frame) {
    receiving_ = &host;
    if (frame.insert_vlan) {
        counters_.not_for_us.add();  // hosts are on the untagged network
    } else if (frame.segmentation) {
        // lwIP takes a segment of any size: cutting it would only be work.
        std::array<std::byte, kMaxHeader> buffer;
        if (const auto packet = super_frame(frame, buffer)) {
            receive_super_frame(*packet, frame.data);
        } else if (!finisher_.finish(frame, *this)) {
            counters_.malformed.add();
        }
    } else {
        wire::MacAddress destination;
        const bool whole = mem::copy(mutable_bytes_of(destination), frame.data) == sizeof destination;
        if (whole && destination != host.addresses.mac && !destination.multicast()) {
            counters_.not_for_us.add();  // before its checksum is computed for nothing
        } else if (!finisher_.finish(frame, *this)) {
            counters_.malformed.add();
        }
    }
    receiving_ = nullptr;
}

void Core::receive_super_frame(const SuperFrame& packet, const mem::SpanList& payload) {
    const std::size_t header = packet.header.size();
    queue(packet.header, header + payload.bytes(), [&](MutableBytes out) {
        std::copy(packet.header.begin(), packet.header.end(), out.begin());
        mem::copy(out.subspan(header), payload);
        // The field holds the sum of the pseudo header, so it is part of what is summed.
        const le16 checksum(finished_checksum(ones_complement_sum(out.subspan(packet.checksum.start))));
        std::memcpy(out.data() + packet.checksum.start + packet.checksum.offset, &checksum, sizeof checksum);
    });
}

void Core::take(const WireFrame& frame) {
    // The head of a frame in two parts holds all headers. Memory that the guest can write to is read once:
    // what the filter has looked at is what lwIP gets.
    std::array<std::byte, kFilterHead> copied;
    const std::size_t size = std::min(frame.head.size(), copied.size());
    std::copy_n(frame.head.begin(), size, copied.begin());
    queue(Bytes(copied).first(size), frame.size(), [&](MutableBytes out) {
        const Bytes rest = frame.head.subspan(size);
        auto end = std::copy_n(copied.begin(), size, out.begin());
        end = std::copy(rest.begin(), rest.end(), end);
        std::copy(frame.tail.begin(), frame.tail.end(), end);
    });
}

void Core::queue(Bytes head, std::size_t size, const std::function<void(MutableBytes)>& fill) {
    const Bytes looked_at = head.first(std::min(head.size(), kFilterHead));
    const Classified what =
        size > UINT16_MAX ? Classified{} : classify(looked_at, size, receiving_->addresses);
    switch (what.verdict) {
        case Verdict::Take:
            break;
        case Verdict::NotForUs:
            counters_.not_for_us.add();
            return;
        case Verdict::Unwanted:
            counters_.unwanted.add();
            return;
        case Verdict::Malformed:
            counters_.malformed.add();
            return;
    }
    if (owner_of(what.source) != nullptr) {
        // lwIP would hand its answer from host to host by a thread that does not run, and end the process.
        counters_.unwanted.add();
        return;
    }
    if (what.opens_connection && !connection_allowed()) {
        counters_.connections_refused.add();
        return;
    }
    if (incoming_.size() >= kQueue) {
        counters_.queue_full.add();
        was_full_ = true;
        receiving_->port.dropped();
        return;
    }
    pbuf* const packet = allocate(size);
    if (packet == nullptr) {
        counters_.no_memory.add();
        was_full_ = true;
        receiving_->port.dropped();
        return;
    }
    fill({static_cast<std::byte*>(packet->payload), size});
    counters_.frames_taken.add();
    incoming_.push_back({receiving_, packet, what});
}

bool Core::connection_allowed() {
    if (length_of(tcp_tw_pcbs) >= kMaxTimeWait) {
        tcp_pcb* oldest = tcp_tw_pcbs;
        while (oldest->next != nullptr) {
            oldest = oldest->next;  // new ones are put in front
        }
        tcp_abandon(oldest, 0);
    }
    return length_of(tcp_active_pcbs) < limits_.connections();
}

pbuf* Core::allocate(std::size_t size) {
    const std::size_t whole = sizeof(Block) + kAlignment + size;
    if (frame_bytes_ + whole > limits_.frame_bytes()) {
        return nullptr;
    }
    void* const memory = std::malloc(whole);
    if (memory == nullptr) {
        return nullptr;
    }
    auto* const block = new (memory) Block;
    block->core = this;
    block->size = whole;
    block->custom.custom_free_function = &Core::release;
    frame_bytes_ += whole;
    // PBUF_REF, so that lwIP never writes in front of the bytes, where the block is.
    return pbuf_alloced_custom(PBUF_RAW, static_cast<u16_t>(size), PBUF_REF, &block->custom,
                               static_cast<std::byte*>(memory) + sizeof(Block) + kAlignment,
                               static_cast<u16_t>(size));
}

void Core::release(pbuf* packet) {
    // The pbuf is the first member of the first member.
    auto* const block = reinterpret_cast<Block*>(packet);
    block->core->frame_bytes_ -= block->size;
    std::free(block);
}

void Core::handle(const Received& received) {
    if (overruns_window(received.what)) {
        counters_.unwanted.add();
        pbuf_free(received.packet);
        return;
    }
    // A packet without a route of its own is an answer, and leaves where the question came from.
    netif_default = &received.host->interface;
    at_work_ = true;
    ethernet_input(received.packet, &received.host->interface);
    if (received.what.listener_query) {
        // lwIP would answer after a random delay; on a segment of ours nobody profits from that, and it would
        // need a timer.
        constexpr int kLongestDelay = 101;  // in ticks of 100 ms
        for (int i = 0; i < kLongestDelay; ++i) {
            mld6_tmr();
        }
    }
    at_work_ = false;
}

bool Core::step() {
    bool worked = false;
    if (!incoming_.empty()) {
        catch_up();
        std::size_t bytes = 0;
        for (std::size_t i = 0; i < kFramesPerStep && bytes < kBytesPerStep && !incoming_.empty(); ++i) {
            const Received received = incoming_.front();
            incoming_.pop_front();
            bytes += received.packet->tot_len;
            handle(received);
        }
        worked = true;
    }
    worked = dispatch_pending() || worked;
    for (Host::Impl* host : hosts_) {
        worked = host->flush() || worked;
    }
    if (was_full_ && incoming_.size() <= kQueue / 2 && frame_bytes_ <= limits_.frame_bytes() / 2) {
        was_full_ = false;
        for (Host::Impl* host : hosts_) {
            host->port.made_room();
        }
    }
    if (worked) {
        update_timer();
    }
    return worked;
}

// Call-backs of lwIP to their users.

void Core::defer(std::shared_ptr<Pending> what) {
    if (!what->queued_) {
        what->queued_ = true;
        pending_.push_back(std::move(what));
    }
}

bool Core::dispatch_pending() {
    bool worked = false;
    for (std::size_t i = 0; i < kDispatchesPerStep && !pending_.empty(); ++i) {
        const std::shared_ptr<Pending> what = std::move(pending_.front());
        pending_.pop_front();
        what->queued_ = false;
        what->dispatch();
        worked = true;
    }
    return worked;
}

// Time.

void Core::solicits() {
    soliciting_until_ = loop_.clock().now() + kSolicitation;
    // No more than that: lwIP is in the middle of sending, where a timer of its own may not send, too.
    if (!timer_.armed()) {
        timer_.arm(last_slow_ + kSlow);
    }
}

void Core::update_timer() {
    const Nanoseconds now = loop_.clock().now();
    if (tcp_active_pcbs != nullptr) {
        if (!timer_.armed() || timer_.deadline() > now + kFast) {
            catch_up();
            timer_.arm(last_fast_ + kFast);
        }
    } else if (now < soliciting_until_) {
        if (!timer_.armed()) {
            catch_up();
            timer_.arm(last_slow_ + kSlow);
        }
    } else {
        timer_.cancel();
    }
}

void Core::on_timer() {
    catch_up();
    update_timer();
}

void Core::catch_up() {
    if (at_work_) {
        return;
    }
    at_work_ = true;
    const Nanoseconds now = loop_.clock().now();
    // A process that was stopped for a minute has not lost its connections.
    const Nanoseconds longest = tcp_active_pcbs != nullptr ? 4 * kFast : kOldest;
    for (Nanoseconds* last : {&last_fast_, &last_slow_}) {
        if (now - *last > std::max(longest, kSlow)) {
            *last = now - std::max(longest, kSlow);
        }
    }
    while (now - last_fast_ >= kFast) {
        last_fast_ += kFast;
        counters_.timer_ticks.add();
        tcp_tmr();
    }
    while (now - last_slow_ >= kSlow) {
        last_slow_ += kSlow;
        // What would have been asked long ago, and not been answered, is not asked now.
        quiet_ = now - last_slow_ >= kSlow;
        etharp_tmr();
        nd6_tmr();
        ip_reass_tmr();
        ip6_reass_tmr();
    }
    quiet_ = false;
    at_work_ = false;
}

}  // namespace ernic::net::stack
