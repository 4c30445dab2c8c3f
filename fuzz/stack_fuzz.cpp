// SPDX-License-Identifier: MIT
// Frames into the IP stack behind the in-process services: garbage of every layer, with right checksums so
// that it gets deep, TCP that follows the conversation and TCP that does not, fragments, super-frames, while
// time passes and the receivers run out of room. Two echo services and DHCP listen. What comes out must come
// from them.
#include <array>
#include <optional>
#include <vector>

#include "fuzz/input.hpp"
#include "net/stack/test_support.hpp"
#include "services/dhcp.hpp"
#include "services/echo.hpp"

namespace ernic::fuzz {
namespace {

using net::IpAddress;
using net::IpPrefix;
using namespace net::stack::test;  // NOLINT(google-build-using-namespace): how packets are written

constexpr wire::MacAddress kSecondMac{{2, 0, 0, 0, 0, 3}};
constexpr wire::MacAddress kDhcpMac{{2, 0, 0, 0, 0, 4}};
constexpr IpAddress kSecond4 = IpAddress::v4(0x0a000003);
constexpr IpAddress kDhcp4 = IpAddress::v4(0x0a000004);
constexpr IpAddress kSecond6 = IpAddress::v6({0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3});
/// A few connections' worth, so that the limits are reached.
constexpr std::size_t kMemory = std::size_t{1} << 20U;

/// Checks whatever the hosts send, and remembers where the last TCP conversation stands.
class Watcher final : public net::FrameSink {
  public:
    void transmit(const net::Frame& frame) override {
        require(!frame.segmentation && !frame.checksum, "hosts finish their frames");
        Packet bytes(frame.data.bytes());
        mem::copy(bytes, frame.data);
        require(bytes.size() >= sizeof(wire::EthernetHeader) && bytes.size() <= 9000 + 14,
                "frames have a sane size");
        const Seen seen = look_at(bytes);
        const wire::MacAddress& mac = seen.ethernet.source;
        require(mac == kHostMac || mac == kSecondMac || mac == kDhcpMac,
                "frames come from a host's MAC address");
        if (seen.arp) {
            require(seen.arp->sender_mac == mac && seen.arp->sender_ip.get() == ipv4_of(mac).value_v4(),
                    "ARP speaks for the own address");
            return;
        }
        require(!seen.source.is_v4() || seen.source == ipv4_of(mac),
                "IPv4 packets have the host's own source");
        require(seen.source.is_v4() || seen.source == net::link_local_of(mac) ||
                    (mac == kHostMac && seen.source == kHost6) ||
                    (mac == kSecondMac && seen.source == kSecond6),
                "IPv6 packets have the host's own source");
        if (seen.protocol == wire::kIpProtocolTcp && seen.transport.size() >= sizeof(wire::TcpHeader)) {
            require(seen.intact, "TCP checksums are right");
            last = seen.tcp();
            last_size = static_cast<std::uint32_t>(seen.tcp_payload().size());
        }
    }
    [[nodiscard]] std::size_t room() const override { return left; }

    static IpAddress ipv4_of(const wire::MacAddress& mac) {
        return mac == kHostMac ? kHost4 : mac == kSecondMac ? kSecond4 : kDhcp4;
    }

    std::size_t left = SIZE_MAX;
    std::optional<wire::TcpHeader> last;
    std::uint32_t last_size = 0;
};

class Target {
  public:
    explicit Target(Input input) : input_(input) { peer_port_.connect(&watcher_); }

    void run() {
        while (!input_.empty()) {
            operation();
            for (int i = 0; i < 1000 && stack_.step(); ++i) {
            }
            require(!stack_.step(), "a frame causes a bounded amount of work");
            require(stack_.memory_in_use() <= kMemory / 2, "frames stay within the memory");
        }
        watcher_.left = SIZE_MAX;
        pass(400);
        require(stack_.memory_in_use() < kMemory / 2, "memory is let go of");
    }

  private:
    void operation() {
        switch (input_.u8() % 12U) {
            case 0:
                send(raw());
                break;
            case 1:
                send(arp(addressing(false), static_cast<std::uint16_t>(input_.u8() % 4U)));
                break;
            case 2:
                send(icmp_echo(addressing(input_.flag()), data()));
                break;
            case 3:
                send(solicitation(addressing(true), input_.flag() ? kHost6 : kSecond6));
                break;
            case 4:
                send(udp(addressing(input_.flag()), input_.u16(), pick_port(), data()));
                break;
            case 5:
            case 6:
            case 7:
                send(tcp(addressing(input_.flag()), fields(), data()));
                break;
            case 8:
                send(any_protocol());
                break;
            case 9:
                super_frame();
                break;
            case 10:
                send(mutated());
                break;
            default:
                other();
                break;
        }
    }

    void other() {
        switch (input_.u8() % 4U) {
            case 0:
                pass(1 + input_.u8() % 64U);
                break;
            case 1:
                clock_.advance(std::uint64_t{input_.u32()} * 1000);
                loop_.run_once(false);
                break;
            case 2:
                watcher_.left = input_.u8() % 16U;
                break;
            default:
                watcher_.left = SIZE_MAX;
                peer_port_.made_room();
                break;
        }
    }

    /// Lets the clock go in steps of a quarter of a second.
    void pass(unsigned steps) {
        for (unsigned i = 0; i < steps; ++i) {
            clock_.advance(250'000'000);
            loop_.run_once(false);
            while (stack_.step()) {
            }
        }
    }

    Addressing addressing(bool v6) {
        const std::uint8_t which = input_.u8();
        const bool second = (which & 1U) != 0;
        Addressing to{.source_mac = kPeerMac,
                      .destination_mac = second ? kSecondMac : kHostMac,
                      .source = v6 ? kPeer6 : kPeer4,
                      .destination = v6 ? (second ? kSecond6 : kHost6) : (second ? kSecond4 : kHost4)};
        if ((which & 2U) != 0 && (which & 4U) != 0) {  // somebody else, or one of ours
            auto bytes = to.source.bytes_v6();
            bytes[v6 ? 15 : 3] = input_.u8();
            to.source = v6 ? IpAddress::v6(bytes) : IpAddress::v4((kPeer4.value_v4() & ~0xffU) | bytes[3]);
        }
        if ((which & 0xf8U) == 0xf8U) {
            to.destination_mac = input_.flag() ? wire::kBroadcastMac : kDhcpMac;
        }
        return to;
    }
    std::uint16_t pick_port() {
        constexpr std::array<std::uint16_t, 5> kPorts = {7, 9, 19, 67, 4000};
        return input_.pick(kPorts);
    }
    Packet data() {
        const std::uint8_t kind = input_.u8();
        if (kind >= 0xf0) {
            return Packet(input_.u16() % 9000U, std::byte{kind});
        }
        const Bytes own = input_.bytes(kind % 64U);
        return {own.begin(), own.end()};
    }
    /// What a peer would send next in the last conversation, or something else.
    TcpFields fields() {
        TcpFields result;
        result.source_port = static_cast<std::uint16_t>(40000 + input_.u8() % 8U);
        result.destination_port = pick_port();
        result.flags = input_.u8();
        result.window = input_.flag() ? 65535 : input_.u16();
        if (watcher_.last && input_.flag()) {
            const wire::TcpHeader& last = *watcher_.last;
            result.source_port = last.destination_port.get();
            result.destination_port = last.source_port.get();
            const bool begins = (last.flags & (wire::kTcpSyn | wire::kTcpFin)) != 0;
            result.acknowledgement = last.sequence.get() + watcher_.last_size + (begins ? 1 : 0);
            result.sequence = last.acknowledgement.get();
            result.flags |= wire::kTcpAck;
            if (input_.flag()) {
                result.sequence += static_cast<std::uint32_t>(static_cast<std::int8_t>(input_.u8()));
                result.acknowledgement += static_cast<std::uint32_t>(static_cast<std::int8_t>(input_.u8()));
            } else {
                result.flags = static_cast<std::uint8_t>(wire::kTcpAck | (result.flags & wire::kTcpFin));
            }
        } else if (input_.flag()) {
            result.sequence = input_.u32();
            result.acknowledgement = input_.u32();
        } else {
            result.flags = wire::kTcpSyn;
        }
        return result;
    }
    Packet raw() {
        const Bytes own = input_.bytes(input_.u8());
        Packet frame(own.begin(), own.end());
        if (frame.size() < sizeof(wire::EthernetHeader) || !input_.flag()) {
            return frame;
        }
        constexpr std::array<std::uint16_t, 4> kTypes = {0x0800, 0x86dd, 0x0806, 0x8100};
        const wire::EthernetHeader header{kHostMac, kPeerMac, be16(input_.pick(kTypes))};
        std::memcpy(frame.data(), &header, sizeof header);
        return frame;
    }
    /// Any protocol, options or extension header behind a right IP header, perhaps a fragment.
    Packet any_protocol() {
        const bool v6 = input_.flag();
        constexpr std::array<std::uint8_t, 10> kProtocols = {0, 1, 2, 6, 17, 43, 44, 58, 60, 136};
        Packet frame = ip(addressing(v6), input_.pick(kProtocols), data(), {});
        if (!v6) {
            auto header = *read_value<wire::Ipv4Header>(Bytes(frame).subspan(sizeof(wire::EthernetHeader)));
            header.flags_fragment.set(
                static_cast<std::uint16_t>(input_.u8() % 4U == 0 ? input_.u16() : input_.u8()));
            header.id.set(input_.u8() % 4U);
            header.ttl = input_.u8();
            header.checksum.set(0);
            finish(header);
            std::memcpy(frame.data() + sizeof(wire::EthernetHeader), &header, sizeof header);
        }
        return frame;
    }
    /// A right packet with a few other bytes, most of which a checksum finds.
    Packet mutated() {
        Packet frame = input_.flag() ? tcp(addressing(input_.flag()), fields(), data())
                                     : udp(addressing(input_.flag()), input_.u16(), pick_port(), data());
        for (std::uint8_t i = input_.u8() % 4U; i != 0; --i) {
            frame[input_.u16() % frame.size()] = std::byte{input_.u8()};
        }
        return frame;
    }

    void send(Packet frame) {
        mem::SpanList list;
        const std::size_t border = frame.empty() ? 0 : input_.u8() % frame.size();
        Packet tail(frame.begin() + static_cast<std::ptrdiff_t>(border), frame.end());
        frame.resize(border);
        list.add(frame.data(), frame.size());
        list.add(tail.data(), tail.size());
        peer_port_.transmit({.data = list, .insert_vlan = {}, .checksum = {}, .segmentation = {}});
    }

    void super_frame() {
        Packet header = tcp(addressing(input_.flag()), fields());
        Packet payload(input_.u16() % 65000U, std::byte{0x2a});
        mem::SpanList list;
        list.add(payload.data(), payload.size());
        peer_port_.transmit({.data = list,
                             .insert_vlan = {},
                             .checksum = {},
                             .segmentation = net::Frame::Segmentation{
                                 .header = header,
                                 .segment_size = static_cast<std::uint16_t>(1 + input_.u16() % 9000U),
                                 .first_segment = input_.u8() % 4U,
                                 .last = input_.flag()}});
    }

    static net::stack::HostConfig host(const wire::MacAddress& mac, const IpAddress& v4,
                                       const IpAddress& v6) {
        return {.mac = mac,
                .ipv4 = IpPrefix{v4, 24},
                .ipv4_gateway = {},
                .ipv6 = {IpPrefix{v6, 64}},
                .mtu = 9000};
    }
    static services::DhcpConfig dhcp() {
        return {
            .mac = kDhcpMac,
            .address = kDhcp4,
            .first = IpAddress::v4(0x0a000064),
            .last = IpAddress::v4(0x0a000068),
            .lease_seconds = 60,
            .parameters = {
                .subnet = {IpAddress::v4(0x0a000000), 24}, .router = {}, .name_servers = {}, .mtu = 1500}};
    }

    Input input_;
    Watcher watcher_;
    FakeClock clock_;
    EventLoop loop_{clock_};
    net::Bridge bridge_{&clock_};
    net::FramePort peer_port_{bridge_, "peer"};
    net::FramePort first_port_{bridge_, "first"};
    net::FramePort second_port_{bridge_, "second"};
    net::FramePort dhcp_port_{bridge_, "dhcp"};
    net::stack::Counters counters_;
    log::Logger log_{log::null_sink(), "fuzz"};
    net::stack::Stack stack_{loop_, counters_, log_, net::stack::Limits{.memory = kMemory}};
    services::EchoCounters echo_counters_;
    services::DhcpCounters dhcp_counters_;
    services::Echo first_{stack_, first_port_, host(kHostMac, kHost4, kHost6), echo_counters_};
    services::Echo second_{stack_, second_port_, host(kSecondMac, kSecond4, kSecond6), echo_counters_};
    services::Dhcp dhcp_{loop_, stack_, dhcp_port_, dhcp(), dhcp_counters_, log_};
};

}  // namespace
}  // namespace ernic::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    ernic::fuzz::Target(ernic::fuzz::Input(data, size)).run();
    return 0;
}
