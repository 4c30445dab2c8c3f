// SPDX-License-Identifier: MIT
#include "net/tap.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/if.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "wire/ethernet.hpp"

namespace ernic::net {
namespace {

/// Of packet sockets, which want it in network byte order.
constexpr auto kAllProtocols = std::bit_cast<std::uint16_t>(be16(ETH_P_ALL));
constexpr const char* kName = "ernic-test";
constexpr std::uint16_t kExperiment = 0x88b5;
constexpr wire::MacAddress kHost{{0x02, 0, 0, 0, 0, 1}};
constexpr wire::MacAddress kGuest{{0x02, 0, 0, 0, 0, 2}};

/// Makes and breaks interfaces in a network namespace of its own.
class Host {
  public:
    Host() : back_(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC)) {
        usable_ = back_ && unshare(CLONE_NEWNET) == 0;
        control_ = UniqueFd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        if (usable_) {
            // Otherwise the kernel sends router solicitations and the like whenever it pleases.
            const UniqueFd quiet(
                ::open("/proc/sys/net/ipv6/conf/default/disable_ipv6", O_WRONLY | O_CLOEXEC));
            (void)!write(quiet.get(), "1", 1);
        }
        usable_ = usable_ && make();
    }
    ~Host() {
        if (back_) {
            EXPECT_EQ(setns(back_.get(), CLONE_NEWNET), 0);
        }
    }
    Host(const Host&) = delete;
    Host& operator=(const Host&) = delete;

    [[nodiscard]] bool usable() const { return usable_; }

    static bool make(bool multi_queue = false) {
        const UniqueFd tun(::open("/dev/net/tun", O_RDWR | O_CLOEXEC));
        ifreq request = named();
        const int flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR | (multi_queue ? IFF_MULTI_QUEUE : 0);
        request.ifr_flags = static_cast<short>(flags);
        return tun && ioctl(tun.get(), TUNSETIFF, &request) == 0 && ioctl(tun.get(), TUNSETPERSIST, 1) == 0;
    }
    void set_up(bool up) {
        ifreq request = named();
        ASSERT_EQ(ioctl(control_.get(), SIOCGIFFLAGS, &request), 0);
        request.ifr_flags = static_cast<short>(up ? request.ifr_flags | IFF_UP : request.ifr_flags & ~IFF_UP);
        ASSERT_EQ(ioctl(control_.get(), SIOCSIFFLAGS, &request), 0);
    }
    /// A packet socket on the interface: what it sends the TAP's owner reads, and the other way round.
    UniqueFd packet_socket() {
        wait_until_running();
        UniqueFd fd(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, kAllProtocols));
        ifreq request = named();
        EXPECT_EQ(ioctl(control_.get(), SIOCGIFINDEX, &request), 0);
        sockaddr_ll address{};
        address.sll_family = AF_PACKET;
        address.sll_protocol = kAllProtocols;
        address.sll_ifindex = request.ifr_ifindex;
        EXPECT_EQ(bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
        const int on = 1;
        EXPECT_EQ(setsockopt(fd.get(), SOL_PACKET, PACKET_VNET_HDR, &on, sizeof on), 0);
        return fd;
    }

  private:
    /// The kernel starts the interface's queue a moment after its carrier, and loses what is sent before.
    void wait_until_running() {
        ifreq request = named();
        for (int tries = 0; tries < 2000 && (request.ifr_flags & IFF_RUNNING) == 0; ++tries) {
            usleep(1000);
            ASSERT_EQ(ioctl(control_.get(), SIOCGIFFLAGS, &request), 0);
        }
        // Waits for the lock under which that is done.
        set_up(true);
    }

    static ifreq named() {
        ifreq request{};
        std::strncpy(static_cast<char*>(request.ifr_name), kName, IFNAMSIZ - 1);
        return request;
    }

    UniqueFd back_;
    UniqueFd control_;
    bool usable_ = false;
};

/// Remembers the frames of this test; the kernel sends some of its own when an interface comes up.
class Guest final : public FrameSink {
  public:
    struct Seen {
        std::vector<std::byte> bytes;
        std::uint16_t segment_size = 0;
        std::optional<Frame::Checksum> checksum;
    };
    void transmit(const Frame& frame) override {
        Seen one;
        if (frame.segmentation) {
            one.bytes.assign(frame.segmentation->header.begin(), frame.segmentation->header.end());
            one.segment_size = frame.segmentation->segment_size;
        }
        for (const auto& piece : frame.data) {
            one.bytes.insert(one.bytes.end(), piece.data, piece.data + piece.size);
        }
        one.checksum = frame.checksum;
        if (clock != nullptr) {
            clock->advance(cost);
        }
        if (read_value<wire::EthernetHeader>(one.bytes)->source == kHost) {
            seen.push_back(std::move(one));
        }
    }
    [[nodiscard]] std::size_t room() const override { return left; }
    std::vector<Seen> seen;
    std::size_t left = SIZE_MAX;
    /// How long it takes for a frame.
    FakeClock* clock = nullptr;
    Nanoseconds cost = 0;
};

std::vector<std::byte> frame_of(std::uint16_t ether_type, std::size_t size, bool to_guest) {
    wire::EthernetHeader header{to_guest ? kGuest : kHost, to_guest ? kHost : kGuest, be16(ether_type)};
    std::vector<std::byte> frame(size, std::byte{0x5a});
    std::memcpy(frame.data(), &header, sizeof header);
    return frame;
}

/// PACKET_VNET_HDR has the short header.
constexpr std::size_t kVnet = 10;

/// As such a packet socket takes it.
std::vector<std::byte> with_header(std::vector<std::byte> frame) {
    frame.insert(frame.begin(), kVnet, std::byte{0});
    return frame;
}

/// Ethernet, IPv4 and TCP headers, lengths and sums as the ionic driver leaves them.
std::vector<std::byte> tcp_header(bool to_guest) {
    auto frame = frame_of(wire::kEtherTypeIpv4, 54, to_guest);
    wire::Ipv4Header ip{};
    ip.version_ihl = 0x45;
    ip.ttl = 64;
    ip.protocol = wire::kIpProtocolTcp;
    ip.source.set(0x0a000001);
    ip.destination.set(0x0a000002);
    wire::TcpHeader tcp{};
    tcp.data_offset = 0x50;
    std::memcpy(frame.data() + 14, &ip, sizeof ip);
    std::memcpy(frame.data() + 34, &tcp, sizeof tcp);
    return frame;
}

class TapTest : public testing::Test {
  protected:
    void SetUp() override {
        if (!host.usable()) {
            GTEST_SKIP() << "making network namespaces and TAP interfaces needs root and /dev/net/tun";
        }
        port.connect(&guest);
    }
    void plug() {
        auto opened = TapDevice::open(kName);
        ASSERT_TRUE(opened) << opened.error().message;
        tap = std::make_unique<Tap>(std::move(opened.value()), tap_port, counters, loop, log);
        tap->on_link([this](bool up) { links.push_back(up); });
    }
    void send_plain(const std::vector<std::byte>& bytes, std::optional<std::uint16_t> vlan = {},
                    std::optional<Frame::Checksum> checksum = {}) {
        std::vector<std::byte> copy = bytes;
        mem::SpanList data;
        data.add(copy.data(), copy.size());
        port.transmit({.data = data, .insert_vlan = vlan, .checksum = checksum, .segmentation = {}});
    }
    /// The next frame from the guest on the host's side, header first.
    static std::vector<std::byte> receive(const UniqueFd& socket) {
        for (int tries = 0; tries < 20; ++tries) {
            pollfd wait{socket.get(), POLLIN, 0};
            if (::poll(&wait, 1, 2000) != 1) {
                break;
            }
            std::vector<std::byte> bytes(70'000);
            const ssize_t size = read(socket.get(), bytes.data(), bytes.size());
            bytes.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
            const auto header = read_value<wire::EthernetHeader>(Bytes(bytes).subspan(kVnet));
            if (header && header->source == kGuest) {
                return bytes;
            }
        }
        ADD_FAILURE() << "nothing arrived";
        return {};
    }
    void run(int rounds = 3) {
        for (int i = 0; i < rounds; ++i) {
            loop.run_once(false);
        }
    }

    Host host;
    FakeClock clock;
    EventLoop loop{clock};
    log::Logger log{log::null_sink(), "test"};
    Bridge bridge{&clock};
    FramePort port{bridge, "guest"};
    FramePort tap_port{bridge, "tap"};
    Guest guest;
    TapCounters counters;
    std::unique_ptr<Tap> tap;
    std::vector<bool> links;
};

TEST_F(TapTest, RefusalsSayWhy) {
    EXPECT_NE(TapDevice::open("no-such-tap").error().message.find("no such interface"), std::string::npos);
    EXPECT_NE(TapDevice::open("lo").error().message.find("not a TAP"), std::string::npos);
    EXPECT_NE(TapDevice::open("a-name-that-is-too-long").error().message.find("no interface name"),
              std::string::npos);
    plug();
    EXPECT_NE(TapDevice::open(kName).error().message.find("another program"), std::string::npos);
}

TEST_F(TapTest, FramesTravelBothWays) {
    host.set_up(true);
    plug();
    ASSERT_TRUE(tap->up());
    const UniqueFd far = host.packet_socket();
    const auto out = frame_of(kExperiment, 60, false);
    send_plain(out);
    const auto arrived = receive(far);
    EXPECT_EQ(std::vector(arrived.begin() + kVnet, arrived.end()), out);

    const auto in = with_header(frame_of(kExperiment, 1514, true));
    ASSERT_EQ(write(far.get(), in.data(), in.size()), static_cast<ssize_t>(in.size()));
    run();
    ASSERT_EQ(guest.seen.size(), 1U);
    EXPECT_EQ(guest.seen[0].bytes, std::vector(in.begin() + kVnet, in.end()));
}

TEST_F(TapTest, ATagIsInsertedOnTheWay) {
    host.set_up(true);
    plug();
    const UniqueFd far = host.packet_socket();
    const int on = 1;
    ASSERT_EQ(setsockopt(far.get(), SOL_PACKET, PACKET_AUXDATA, &on, sizeof on), 0);
    const auto sent = frame_of(kExperiment, 60, false);
    send_plain(sent, 0x6005);
    // The kernel takes the tag out of the frame again and hands it over beside it.
    std::optional<tpacket_auxdata> found;
    for (int tries = 0; tries < 20 && !found; ++tries) {
        std::array<std::byte, 2000> bytes;
        std::array<std::byte, 256> extra;
        iovec part{bytes.data(), bytes.size()};
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = extra.data();
        message.msg_controllen = extra.size();
        pollfd wait{far.get(), POLLIN, 0};
        ASSERT_EQ(::poll(&wait, 1, 2000), 1);
        const ssize_t size = recvmsg(far.get(), &message, 0);
        ASSERT_GE(size, static_cast<ssize_t>(kVnet + sizeof(wire::EthernetHeader)));
        const Bytes frame = Bytes(bytes).subspan(kVnet, static_cast<std::size_t>(size) - kVnet);
        if (read_value<wire::EthernetHeader>(frame)->source == kGuest) {
            EXPECT_EQ(std::vector(frame.begin(), frame.end()), sent);
            found.emplace();
            std::memcpy(&*found, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof *found);
        }
    }
    ASSERT_TRUE(found);
    EXPECT_NE(found->tp_status & TP_STATUS_VLAN_VALID, 0U);
    EXPECT_EQ(found->tp_vlan_tci, 0x6005);
}

TEST_F(TapTest, ATcpPacketStaysWholeBothWays) {
    host.set_up(true);
    plug();
    const UniqueFd far = host.packet_socket();
    const auto header = tcp_header(false);
    std::vector<std::byte> payload(40'000, std::byte{1});
    mem::SpanList data;
    data.add(payload.data(), payload.size());
    port.transmit(
        {.data = data,
         .insert_vlan = {},
         .checksum = {},
         .segmentation = Frame::Segmentation{.header = header, .segment_size = 1448, .last = true}});
    const auto arrived = receive(far);
    ASSERT_EQ(arrived.size(), kVnet + 54 + payload.size());
    EXPECT_EQ(arrived[0], std::byte{wire::kVirtioNeedsChecksum});
    EXPECT_EQ(arrived[1], std::byte{wire::kVirtioGsoTcp4});
    EXPECT_EQ(read_value<le16>(Bytes(arrived).subspan(4))->get(), 1448);
    EXPECT_EQ(read_value<be16>(Bytes(arrived).subspan(kVnet + 16))->get(), 40 + payload.size());

    // And back, with the same headers.
    auto in = arrived;
    std::memcpy(in.data() + kVnet, &kGuest, sizeof kGuest);
    std::memcpy(in.data() + kVnet + 6, &kHost, sizeof kHost);
    ASSERT_EQ(write(far.get(), in.data(), in.size()), static_cast<ssize_t>(in.size()));
    run();
    ASSERT_EQ(guest.seen.size(), 1U);
    EXPECT_EQ(guest.seen[0].segment_size, 1448);
    EXPECT_EQ(guest.seen[0].bytes.size(), 54 + payload.size());
    EXPECT_EQ(counters.malformed.value(), 0U);
}

TEST_F(TapTest, ImpossibleRequestsAreRefusedByTheKernelAndCounted) {
    host.set_up(true);
    plug();
    send_plain(frame_of(kExperiment, 60, false), {}, Frame::Checksum{5000, 16});
    EXPECT_EQ(counters.write_errors.value(), 1U);
    const auto header = frame_of(kExperiment, 54, false);
    mem::SpanList nothing;
    port.transmit({.data = nothing,
                   .insert_vlan = {},
                   .checksum = {},
                   .segmentation = Frame::Segmentation{.header = header, .segment_size = 1448}});
    EXPECT_EQ(counters.malformed.value(), 1U);
}

TEST_F(TapTest, LinkFollowsTheInterface) {
    plug();
    EXPECT_FALSE(tap->up());
    send_plain(frame_of(kExperiment, 60, false));
    EXPECT_EQ(counters.not_up.value(), 1U);
    host.set_up(true);
    run();
    EXPECT_EQ(links, std::vector<bool>({true}));
    host.set_up(false);
    run();
    EXPECT_EQ(links, std::vector<bool>({true, false}));
    EXPECT_EQ(counters.link_downs.value(), 1U);
}

TEST_F(TapTest, WithoutNewsTheTimerFindsOut) {
    plug();
    host.set_up(true);
    clock.advance(1'000'000'000);
    run();
    EXPECT_TRUE(tap->up());
}

TEST_F(TapTest, AnInterfaceMadeAnewIsFound) {
    host.set_up(true);
    plug();
    ASSERT_EQ(std::system("ip link delete ernic-test"), 0);
    run();
    EXPECT_FALSE(tap->up());
    ASSERT_TRUE(Host::make());
    host.set_up(true);
    clock.advance(1'000'000'000);
    run();
    EXPECT_TRUE(tap->up());
    const UniqueFd far = host.packet_socket();
    send_plain(frame_of(kExperiment, 60, false));
    EXPECT_FALSE(receive(far).empty());
}

TEST_F(TapTest, AllQueuesOfAnInterfaceAreUsed) {
    ASSERT_EQ(std::system("ip link delete ernic-test"), 0);
    ASSERT_TRUE(Host::make(true));
    host.set_up(true);
    plug();
    ASSERT_TRUE(tap->up());
    const UniqueFd far = host.packet_socket();
    std::set<std::uint16_t> ports;
    for (std::uint16_t source = 1000; source < 1016; ++source) {
        auto frame = tcp_header(false);
        const be16 value(source);
        std::memcpy(frame.data() + 34, &value, sizeof value);
        send_plain(frame);
        ports.insert(read_value<be16>(Bytes(receive(far)).subspan(kVnet + 34))->get());
    }
    EXPECT_EQ(ports.size(), 16U);

    // The kernel chooses the queue by a hash of the flow, so that some of these lie in each.
    for (std::uint16_t destination = 1; destination <= 64; ++destination) {
        auto in = tcp_header(true);
        const be16 value(destination);
        std::memcpy(in.data() + 36, &value, sizeof value);
        in.insert(in.begin(), kVnet, std::byte{0});
        ASSERT_EQ(write(far.get(), in.data(), in.size()), static_cast<ssize_t>(in.size()));
    }
    run();
    EXPECT_EQ(guest.seen.size(), 64U);
    EXPECT_EQ(counters.write_full.value() + counters.write_errors.value() + counters.read_errors.value(), 0U);

    // Made anew with one queue only: the others must not be asked for anything.
    ASSERT_EQ(std::system("ip link delete ernic-test"), 0);
    run();
    EXPECT_FALSE(tap->up());
    ASSERT_TRUE(Host::make());
    host.set_up(true);
    clock.advance(1'000'000'000);
    run();
    EXPECT_TRUE(tap->up());
    EXPECT_EQ(counters.read_errors.value(), 0U);
}

TEST_F(TapTest, ReadingPausesUntilThereIsRoomOrPatienceEnds) {
    host.set_up(true);
    plug();
    run(10);
    const UniqueFd far = host.packet_socket();
    guest.left = 1;
    const auto in = with_header(frame_of(kExperiment, 100, true));
    for (int i = 0; i < 3; ++i) {
        ASSERT_EQ(write(far.get(), in.data(), in.size()), static_cast<ssize_t>(in.size()));
    }
    run();
    EXPECT_EQ(guest.seen.size(), 0U);
    EXPECT_GE(counters.pauses.value(), 1U);
    clock.advance(100'000'000);
    run();
    EXPECT_EQ(guest.seen.size(), 1U) << "one at a time when patience has ended";
    guest.left = 1000;
    port.made_room();
    run();
    EXPECT_EQ(guest.seen.size(), 3U);
}

TEST_F(TapTest, PollingLooksLessOftenWhileThereIsNothing) {
    host.set_up(true);
    plug();
    run(10);
    const UniqueFd far = host.packet_socket();
    const auto in = with_header(frame_of(kExperiment, 100, true));
    const auto send = [&] {
        return write(far.get(), in.data(), in.size()) == static_cast<ssize_t>(in.size());
    };
    ASSERT_TRUE(send());
    EXPECT_TRUE(tap->poll());
    EXPECT_FALSE(tap->poll()) << "it looks again at once after a frame";
    ASSERT_TRUE(send());
    int polls = 1;
    while (!tap->poll() && polls < 10) {
        ++polls;
    }
    EXPECT_EQ(polls, 4);
    EXPECT_EQ(guest.seen.size(), 2U);
    ASSERT_TRUE(send());
    EXPECT_TRUE(tap->poll()) << "frames come, so the next poll looks";
}

TEST_F(TapTest, AReadingTurnEndsWhenItsTimeIsUp) {
    host.set_up(true);
    plug();
    run(10);
    const UniqueFd far = host.packet_socket();
    const auto in = with_header(frame_of(kExperiment, 100, true));
    for (int i = 0; i < 10; ++i) {
        ASSERT_EQ(write(far.get(), in.data(), in.size()), static_cast<ssize_t>(in.size()));
    }
    guest.clock = &clock;
    guest.cost = 30'000;
    EXPECT_TRUE(tap->read_frames());
    EXPECT_EQ(guest.seen.size(), 4U) << "a register access may be waiting";
    run();
    EXPECT_EQ(guest.seen.size(), 10U);
}

}  // namespace
}  // namespace ernic::net
