// SPDX-License-Identifier: MIT
// DHCP messages: arbitrary ones into the reader, and conversations of several clients with the server. What
// the server gives must lie in its range, and never belong to two clients at once.
#include <map>
#include <vector>

#include "fuzz/input.hpp"
#include "net/stack/test_support.hpp"
#include "services/dhcp.hpp"

namespace ernic::fuzz {
namespace {

using net::IpAddress;
using namespace net::stack::test;  // NOLINT(google-build-using-namespace): how packets are written
using wire::dhcp::MessageType;
namespace option = wire::dhcp::option;

constexpr IpAddress kServer = IpAddress::v4(0x0a000001);
constexpr std::uint32_t kFirst = 0x0a000064;
constexpr std::uint32_t kCount = 4;
constexpr std::uint32_t kLeaseSeconds = 60;

class Target final : public net::FrameSink {
  public:
    explicit Target(Input input) : input_(input) { peer_port_.connect(this); }

    void run() {
        while (!input_.empty()) {
            switch (input_.u8() % 4U) {
                case 0:
                    arbitrary();
                    break;
                case 1:
                    clock_.advance(std::uint64_t{input_.u8()} * 1'000'000'000);
                    break;
                default:
                    conversation();
                    break;
            }
            loop_.run_once(false);
            while (stack_.step()) {
            }
            require(counters_.leases <= kCount, "no more leases than addresses");
        }
    }

    void transmit(const net::Frame& frame) override {
        Packet bytes(frame.data.bytes());
        mem::copy(bytes, frame.data);
        const Seen seen = look_at(bytes);
        if (seen.protocol != wire::kIpProtocolUdp) {
            return;
        }
        require(seen.intact, "answers have a right checksum");
        const auto header =
            *read_value<wire::dhcp::Header>(Bytes(seen.transport).subspan(sizeof(wire::UdpHeader)));
        require(header.operation == wire::dhcp::kReply, "servers answer");
        const std::uint32_t given = header.your_ip.get();
        if (given == 0) {
            return;
        }
        require(given - kFirst < kCount, "addresses come from the range");
        const auto type =
            static_cast<MessageType>(seen.transport.at(sizeof(wire::UdpHeader) + sizeof header + 2));
        if (type == MessageType::Ack) {
            wire::MacAddress client;
            std::copy_n(header.client_hardware.begin(), 6, client.bytes.begin());
            const auto& [holder, until] = holders_[given];
            require(holder == client || until <= clock_.now() || released_.count(given) != 0,
                    "an address has one client");
            holders_[given] = {client, clock_.now() + std::uint64_t{kLeaseSeconds} * 1'000'000'000};
            released_.erase(given);
        }
    }

  private:
    void arbitrary() {
        const Bytes own = input_.bytes(input_.u16() % 600U);
        (void)services::parse_dhcp(own);
        Packet message(sizeof(wire::dhcp::Header));
        wire::dhcp::Header header{};
        header.operation = wire::dhcp::kRequest;
        header.hardware_type = 1;
        header.hardware_size = 6;
        header.client_hardware[5] = 1;
        header.cookie.set(wire::dhcp::kCookie);
        std::memcpy(message.data(), &header, sizeof header);
        message.insert(message.end(), own.begin(), own.end());
        forget(header.client_hardware);
        send(message, input_.flag());
    }

    void conversation() {
        wire::dhcp::Header header{};
        header.operation = wire::dhcp::kRequest;
        header.hardware_type = 1;
        header.hardware_size = 6;
        header.flags.set(input_.flag() ? wire::dhcp::kBroadcastFlag : std::uint16_t{0});
        header.client_hardware[0] = 2;
        header.client_hardware[5] = static_cast<std::uint8_t>(1 + input_.u8() % 8U);
        header.cookie.set(wire::dhcp::kCookie);
        const std::uint8_t parts = input_.u8();
        const auto address = [this] {
            return be32(input_.u8() % 8U == 0 ? input_.u32() : kFirst + input_.u8() % 6U);
        };
        if ((parts & 1U) != 0) {
            header.client_ip = address();
        }
        Packet message = join(bytes_of(header));
        const auto add = [&message](std::uint8_t code, Bytes value) {
            message.push_back(static_cast<std::byte>(code));
            message.push_back(static_cast<std::byte>(value.size()));
            message.insert(message.end(), value.begin(), value.end());
        };
        const auto type = static_cast<std::uint8_t>(1 + input_.u8() % 8U);
        add(option::kMessageType, bytes_of(type));
        if ((parts & 2U) != 0) {
            add(option::kRequestedAddress, bytes_of(address()));
        }
        if ((parts & 4U) != 0) {
            add(option::kServerIdentifier, (parts & 8U) != 0 ? kServer.bytes() : bytes_of(address()));
        }
        forget(header.client_hardware);
        send(message, (parts & 16U) != 0);
    }

    /// Whatever a client says may give its own address back.
    void forget(const std::array<std::uint8_t, 16>& client) {
        for (const auto& [address, holder] : holders_) {
            if (std::equal(holder.first.bytes.begin(), holder.first.bytes.end(), client.begin())) {
                released_[address] = true;
            }
        }
    }

    void send(const Packet& message, bool unicast) {
        Addressing to{.source_mac = kPeerMac, .destination_mac = wire::kBroadcastMac, .source = IpAddress()};
        to.destination = IpAddress::v4(0xffffffff);
        if (unicast) {
            to = {.source_mac = kPeerMac,
                  .destination_mac = kHostMac,
                  .source = kPeer4,
                  .destination = kServer};
            to.source = IpAddress::v4(kFirst);
        }
        Packet frame = udp(to, wire::dhcp::kClientPort, wire::dhcp::kServerPort, message);
        mem::SpanList list;
        list.add(frame.data(), frame.size());
        peer_port_.transmit({.data = list, .insert_vlan = {}, .checksum = {}, .segmentation = {}});
    }

    static services::DhcpConfig config() {
        return {.mac = kHostMac,
                .address = kServer,
                .first = IpAddress::v4(kFirst),
                .last = IpAddress::v4(kFirst + kCount - 1),
                .lease_seconds = kLeaseSeconds,
                .parameters = {.subnet = {IpAddress::v4(0x0a000000), 24},
                               .router = kServer,
                               .name_servers = {kServer, kServer},
                               .mtu = 9000}};
    }

    Input input_;
    FakeClock clock_;
    EventLoop loop_{clock_};
    net::Bridge bridge_{&clock_};
    net::FramePort peer_port_{bridge_, "peer"};
    net::FramePort server_port_{bridge_, "server"};
    net::stack::Counters stack_counters_;
    log::Logger log_{log::null_sink(), "fuzz"};
    net::stack::Stack stack_{loop_, stack_counters_, log_};
    services::DhcpCounters counters_;
    services::Dhcp server_{loop_, stack_, server_port_, config(), counters_, log_};
    std::map<std::uint32_t, std::pair<wire::MacAddress, Nanoseconds>> holders_;
    std::map<std::uint32_t, bool> released_;
};

}  // namespace
}  // namespace ernic::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    ernic::fuzz::Target(ernic::fuzz::Input(data, size)).run();
    return 0;
}
