// SPDX-License-Identifier: MIT
// Faults on a segment: any mixture of them, added and cleared while messages and frames pass, time moves, the
// link goes up and down and a port leaves. Nothing may be changed that no fault was to change, nothing kept
// back for ever, and never more than the bounds allow.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/input.hpp"
#include "metrics/registry.hpp"
#include "net/faults.hpp"
#include "wire/ip_host.hpp"

namespace ernic::fuzz {
namespace {

using net::FaultKind;

constexpr wire::MacAddress kGuest{{0x02, 0, 0, 0, 0, 1}};
constexpr wire::MacAddress kPeer{{0x02, 0, 0, 0, 0, 2}};
constexpr wire::MacAddress kOther{{0x02, 0, 0, 0, 0, 3}};
constexpr Nanoseconds kSecond = 1'000'000'000;
constexpr std::size_t kMostMessages = 512;
constexpr std::size_t kLargestFragment = 256 * 1024;
/// Further copies of a message that one fault makes (docs/faults.md).
constexpr std::size_t kMostCopies = 16;

constexpr std::array<std::string_view, 12> kKinds = {
    "drop",      "delay=1ms", "delay=60s",  "duplicate",  "duplicate=16", "reorder",
    "reorder=3", "corrupt=7", "rate=1kbit", "rate=1Gbit", "link-down",    "link-down=5ms"};
constexpr std::array<std::string_view, 22> kConditions = {"what=messages",
                                                          "what=frames",
                                                          "direction=from-guest",
                                                          "direction=to-guest",
                                                          "from=02:00:00:00:00:01",
                                                          "to=02:00:00:00:00:02",
                                                          "qp=5",
                                                          "opcode=write",
                                                          "opcode=ack+nak",
                                                          "opcode=read-response+send",
                                                          "ethertype=arp",
                                                          "ethertype=ipv6",
                                                          "protocol=tcp",
                                                          "after=2",
                                                          "every=3",
                                                          "count=1",
                                                          "count=4",
                                                          "probability=0.5",
                                                          "seed=7",
                                                          "jitter=2ms",
                                                          "every=18446744073709551615",
                                                          "after=18446744073709551615"};

/// What all payload is cut from: bytes that tell their place.
const std::vector<std::byte>& source_bytes() {
    static const std::vector<std::byte> bytes = [] {
        std::vector<std::byte> made(kLargestFragment + 4096);
        for (std::size_t i = 0; i < made.size(); ++i) {
            made[i] = static_cast<std::byte>((i * 31 + (i >> 8U) * 17) & 0xffU);
        }
        return made;
    }();
    return bytes;
}

class Target;

/// Somebody on the segment; tells the target what arrives.
class Host final : public net::Port, public net::FrameSink {
  public:
    explicit Host(Target& target) : target_(target) {}
    void deliver(const net::Message& message) override;
    void transmit(const net::Frame& frame) override;

  private:
    Target& target_;
};

class Target {
  public:
    explicit Target(Input input) : input_(input) {
        segment_.attach(guest_, kGuest);
        segment_.attach(peer_, kPeer);
        guest_port_.connect(&guest_);
        peer_port_.connect(&peer_);
        other_port_.connect(&peer_);
        segment_.set_guest(guest_, guest_port_);
        faults_.register_metrics(registry_);
    }

    void run() {
        while (!input_.empty()) {
            operation();
            require(faults_.list().size() <= net::Faults::kMaxFaults, "faults are bounded");
        }
        finish();
    }

    void arrived(const net::Message& message) {
        const std::size_t size = message.payload != nullptr ? message.payload->bytes() : 0;
        if (message.kind == net::MessageKind::Acknowledge) {
            return;
        }
        require(message.psn < sent_.size(), "only what was sent arrives");
        Sent& sent = sent_[message.psn];
        require(message.kind == sent.kind && size == sent.size, "a message keeps its kind and size");
        require(message.route->destination == kPeer || message.route->destination == kGuest,
                "a message keeps its route");
        require(message.destination_qpn == sent.qpn, "a message keeps its QP");
        if (!ever_corrupt_) {
            require(message.swap_add == sent.operand, "an operand stays as it is");
            const std::byte* expected = source_bytes().data() + sent.offset;
            if (message.payload != nullptr) {
                for (const mem::SpanList::Piece& piece : *message.payload) {
                    require(std::memcmp(piece.data, expected, piece.size) == 0, "payload stays as it is");
                    expected += piece.size;
                }
            }
        }
        ++sent.seen;
        require(duplicators_ != 0 || sent.seen == 1, "nothing arrives twice unless asked for");
        require(sent.seen <= 1 + kMostCopies * duplicators_, "copies are bounded");
        if (message.acknowledge_request && depth_ < 4) {
            ++depth_;
            answer(message);
            --depth_;
        }
    }

    void arrived(const net::Frame& frame) {
        std::size_t size = 0;
        for (const mem::SpanList::Piece& piece : frame.data) {
            for (std::size_t i = 0; i < piece.size; ++i) {
                sum_ += std::to_integer<unsigned>(piece.data[i]);
            }
            size += piece.size;
        }
        require(size == frame.data.bytes(), "a span list knows its size");
        if (frame.segmentation) {
            for (const std::byte byte : frame.segmentation->header) {
                sum_ += std::to_integer<unsigned>(byte);
            }
        }
    }

  private:
    struct Sent {
        net::MessageKind kind;
        std::uint32_t qpn;
        std::uint64_t operand;
        std::size_t offset;
        std::size_t size;
        std::size_t seen;
    };

    void operation() {
        switch (input_.u8() % 10U) {
            case 0:
            case 1:
                add_fault();
                break;
            case 2:
                (void)faults_.clear(input_.below(12));
                break;
            case 3:
                add_text();
                break;
            case 4:
            case 5:
                send_message();
                break;
            case 6:
                send_frame();
                break;
            case 7:
                clock_.advance(std::uint64_t{input_.u16()} * 100'000);
                loop_.run_once(false);
                break;
            case 8: {
                const bool up = input_.flag();
                lossy_ = lossy_ || !up;
                link_.set(net::Link::Source::Operator, up);
                break;
            }
            default:
                come_or_go();
                break;
        }
    }

    void add_fault() {
        std::string text(input_.pick(kKinds));
        for (std::uint32_t i = input_.below(4); i != 0; --i) {
            text += fmt::format(",{}", input_.pick(kConditions));
        }
        add(text);
    }

    void add_text() {
        const Bytes bytes = input_.bytes(input_.u8());
        // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): what an operator types
        add(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    }

    void add(const std::string& text) {
        // Before it is added: an immediate one acts at once.
        if (const auto spec = net::parse_fault(text)) {
            const FaultKind kind = spec.value().kind;
            lossy_ =
                lossy_ || kind == FaultKind::Drop || kind == FaultKind::Rate || kind == FaultKind::LinkDown;
            ever_corrupt_ = ever_corrupt_ || kind == FaultKind::Corrupt;
            if (faults_.list().size() < net::Faults::kMaxFaults && kind == FaultKind::Duplicate) {
                ++duplicators_;
            }
        }
        const auto id = faults_.add(text);
        require(id || !id.error().message.empty(), "a refusal says why");
    }

    void send_message() {
        if (sent_.size() == kMostMessages) {
            return;
        }
        const std::uint8_t bits = input_.u8();
        const bool from_guest = (bits & 1U) != 0;
        net::Message message;
        message.kind = static_cast<net::MessageKind>(input_.below(9));
        if (message.kind == net::MessageKind::Acknowledge) {
            message.kind = net::MessageKind::Send;
        }
        message.acknowledge_request = (bits & 2U) != 0;
        message.first = (bits & 4U) != 0;
        message.last = (bits & 8U) != 0;
        message.destination_qpn = input_.u8() % 8U;
        message.swap_add = input_.u8();
        message.path_mtu = (bits & 16U) != 0 ? std::uint16_t{1024} : std::uint16_t{0};
        message.psn = static_cast<std::uint32_t>(sent_.size());
        std::size_t size = input_.u8();
        if (size > 250) {
            size = kLargestFragment;
        }
        const std::size_t offset = input_.u8();
        const bool has_payload = (bits & 32U) != 0;
        mem::SpanList list;
        if (has_payload) {
            fill(list, offset, size);
        }
        message.payload = has_payload ? &list : nullptr;
        message.length = size;
        sent_.push_back(
            {message.kind, message.destination_qpn, message.swap_add, offset, has_payload ? size : 0, 0});
        const net::Route route = route_to(from_guest ? kPeer : kGuest, from_guest ? kGuest : kPeer);
        message.route = &route;
        segment_.send(message);
    }

    /// In two pieces, as SGEs would have it.
    static void fill(mem::SpanList& list, std::size_t offset, std::size_t size) {
        // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): a source is only read
        auto* const start = const_cast<std::byte*>(source_bytes().data()) + offset;
        list.add(start, size / 2);
        list.add(start + size / 2, size - size / 2);
    }

    static net::Route route_to(const wire::MacAddress& destination, const wire::MacAddress& source) {
        net::Route route;
        route.destination = destination;
        route.source = source;
        return route;
    }

    /// From inside a delivery, as responders do.
    void answer(const net::Message& message) {
        net::Message answer;
        answer.kind = net::MessageKind::Acknowledge;
        answer.syndrome = message.solicited ? net::Syndrome::RnrNak : net::Syndrome::Ack;
        answer.destination_qpn = message.destination_qpn;
        answer.psn = message.psn;
        const net::Route route = route_to(message.route->source, message.route->destination);
        answer.route = &route;
        segment_.send(answer);
    }

    void send_frame() {
        const std::uint8_t bits = input_.u8();
        const bool from_guest = (bits & 1U) != 0;
        const bool super = (bits & 2U) != 0;
        std::vector<std::byte> bytes;
        const wire::MacAddress to = (bits & 4U) != 0 ? wire::kBroadcastMac : from_guest ? kPeer : kGuest;
        wire::EthernetHeader ethernet{to, from_guest ? kGuest : kOther, {}};
        constexpr std::array<std::uint16_t, 4> kTypes = {0x0800, 0x86dd, 0x0806, 0x8100};
        ethernet.ether_type.set(input_.pick(kTypes));
        const Bytes head = bytes_of(ethernet);
        bytes.assign(head.begin(), head.end());
        const Bytes body = input_.bytes(input_.u8());
        bytes.insert(bytes.end(), body.begin(), body.end());
        bytes.resize(std::max<std::size_t>(bytes.size(), super ? 54 : 14));
        net::FramePort& port = from_guest ? guest_port_ : (bits & 8U) != 0 ? other_port_ : peer_port_;
        mem::SpanList list;
        if (super) {
            fill(list, input_.u8(), input_.u16());
            bytes.resize(std::min<std::size_t>(bytes.size(), 256));
            port.transmit({.data = list,
                           .insert_vlan = {},
                           .checksum = {},
                           .segmentation = net::Frame::Segmentation{
                               .header = bytes,
                               .segment_size = static_cast<std::uint16_t>(1 + input_.u16() % 9000U),
                               .first_segment = input_.u8(),
                               .last = (bits & 16U) != 0}});
            return;
        }
        list.add(bytes.data(), bytes.size());
        std::optional<net::Frame::Checksum> checksum;
        if ((bits & 32U) != 0 && bytes.size() >= 18) {
            const auto start =
                static_cast<std::uint16_t>(input_.below(static_cast<std::uint32_t>(bytes.size() - 2)));
            checksum = {start, static_cast<std::uint16_t>(
                                   input_.below(static_cast<std::uint32_t>(bytes.size() - 1 - start)))};
        }
        port.transmit({.data = list,
                       .insert_vlan = (bits & 64U) != 0 ? std::optional<std::uint16_t>(7) : std::nullopt,
                       .checksum = checksum,
                       .checksum_valid = !checksum && (bits & 128U) != 0,
                       .segmentation = {}});
    }

    /// The peer leaves the segment, with what is kept back for it still under way, or comes again.
    void come_or_go() {
        lossy_ = true;
        if (there_) {
            segment_.detach(peer_);
            peer_port_.connect(nullptr);
        } else {
            segment_.attach(peer_, kPeer);
            peer_port_.connect(&peer_);
        }
        there_ = !there_;
    }

    /// Everything that is kept back goes on once its time has come.
    void finish() {
        link_.set(net::Link::Source::Operator, true);
        faults_.clear_all();
        require(faults_.list().empty(), "cleared is cleared");
        require(link_.up(), "no fault holds the link down any more");
        for (int i = 0; i < 64 && number("queue_pieces") != 0; ++i) {
            clock_.advance(60 * kSecond);
            loop_.run_once(false);
        }
        require(number("queue_pieces") == 0 && number("queue_bytes") == 0, "nothing is kept back for ever");
        require(!segment_.watched(), "without a fault nobody stands in the way");
        if (!lossy_ && number("overflow_drops") == 0) {
            for (const Sent& sent : sent_) {
                require(sent.seen != 0, "nothing is lost unless asked for");
            }
        }
    }

    std::uint64_t number(const char* name) {
        return registry_.to_json()["faults"][name].get<std::uint64_t>();
    }

    Input input_;
    FakeClock clock_;
    EventLoop loop_{clock_};
    net::Segment segment_{net::PayloadMode::Preserve, &clock_};
    net::FramePort guest_port_{segment_.bridge(), "guest"};
    net::FramePort peer_port_{segment_.bridge(), "peer"};
    net::FramePort other_port_{segment_.bridge(), "other"};
    Host guest_{*this};
    Host peer_{*this};
    net::Link link_;
    net::Faults faults_{segment_, link_, loop_, log::Logger(log::null_sink(), "fuzz")};
    metrics::Registry registry_;
    std::vector<Sent> sent_;
    bool there_ = true;
    bool lossy_ = false;
    bool ever_corrupt_ = false;
    std::size_t duplicators_ = 0;
    int depth_ = 0;
    std::uint64_t sum_ = 0;
};

void Host::deliver(const net::Message& message) {
    target_.arrived(message);
}
void Host::transmit(const net::Frame& frame) {
    target_.arrived(frame);
}

}  // namespace
}  // namespace ernic::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    ernic::fuzz::Target(ernic::fuzz::Input(data, size)).run();
    return 0;
}
