// SPDX-License-Identifier: MIT
// A peer of the mesh that says what it likes, before and after it has introduced itself, as one that was
// accepted and as one that was dialed. Nothing it sends may reach memory that it has no key for, be passed on
// in somebody else's name, or stay queued without bound.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "fuzz/input.hpp"
#include "mesh/fabric.hpp"
#include "rdma/engine.hpp"

namespace ernic::fuzz {
namespace {

constexpr std::size_t kMemory = 704U << 10U;
/// Only this part may be written by the peer.
constexpr std::uint64_t kOpenStart = 64U << 10U;
constexpr std::uint64_t kOpenSize = 512U << 10U;
constexpr std::uint32_t kKey = 1U << 8U | 0x5aU;
constexpr std::uint32_t kPd = 3;
constexpr wire::MacAddress kGuest = {{2, 0, 0, 0, 0, 1}};
constexpr wire::MacAddress kPeer = {{2, 0, 0, 0, 0, 2}};

/// Posts receives without end into the open part, and nothing else.
class Owner final : public rdma::QueueOwner {
  public:
    bool fetch_send(std::uint32_t, rdma::WorkRequest&) override { return false; }
    bool fetch_receive(std::uint32_t, rdma::ReceiveRequest& request) override {
        request.sge_count = 1;
        request.sges[0] = {kOpenStart, 300U << 10U, kKey};
        return true;
    }
    void send_completed(const rdma::SendCompletion&) override {}
    void send_batch_done() override {}
    void receive_completed(const rdma::ReceiveCompletion&) override {}
    void flushed(rdma::Side) override {}
    void raise(rdma::QpEvent) override {}
};

class Target {
  public:
    explicit Target(Input input) : input_(input) {}

    void run() {
        dialed_ = input_.flag();
        set_up();
        while (!input_.empty()) {
            switch (input_.u8() % 8U) {
                case 0:
                    send_raw(input_.bytes(input_.u8()));
                    break;
                case 1:
                    send_hello();
                    break;
                case 2:
                    announce();
                    break;
                case 3:
                    send_frame(static_cast<mesh::FrameType>(input_.u8() % 12U), input_.bytes(input_.u8()),
                               input_.u16());
                    break;
                case 4:
                    clock_.advance(std::uint64_t{input_.u8()} * 100'000'000);
                    break;
                case 5:
                    reconnect();
                    break;
                default:
                    send_message();
                    break;
            }
            turn();
        }
        require(untouched(0, kOpenStart), "memory in front");
        require(untouched(kOpenStart + kOpenSize, kMemory), "memory behind");
        for (const mesh::PeerStatus& peer : fabric_->peers()) {
            require(peer.queued <= mesh::kMaxQueuedControl, "bounded queue");
        }
        fabric_.reset();
    }

  private:
    /// Still zeros, as at the beginning.
    [[nodiscard]] bool untouched(std::size_t from, std::size_t to) const {
        return memory_[from] == std::byte{} &&
               std::memcmp(&memory_[from], &memory_[from + 1], to - from - 1) == 0;
    }

    void set_up() {
        guest_.publish({mem::Region{*Range::make(0, kMemory), memory_.data(), true, true}});
        guest_.set_enabled(true);
        engine_.set_mac(kGuest);
        rdma::MemoryRegion region;
        region.valid = true;
        region.pd = kPd;
        region.rights = {true, true, true, true, true, false};
        region.va = kOpenStart;
        region.length = kOpenSize;
        region.pages = mem::PageList::contiguous(mem::Iova{kOpenStart});
        engine_.memory_table().create(kKey, std::move(region));
        qp_ = std::make_unique<rdma::QueuePair>(
            engine_, owner_,
            rdma::QueuePair::Identity{.qpn = 2, .pd = kPd, .sq_depth = 16, .rq_depth = 1U << 15U});
        qp_->enter(rdma::QpState::Init);
        rdma::QpAttributes& attributes = qp_->attributes();
        attributes.destination_qpn = 3;
        attributes.remote_write = attributes.remote_read = attributes.remote_atomic = true;
        attributes.route = route(kPeer, kGuest);
        qp_->enter(rdma::QpState::Rtr);
        qp_->enter(rdma::QpState::Rts);
        qp_->receive_posted((1U << 15U) - 1);

        mesh::Config config;
        config.listen = {net::IpAddress::v4(0x7f000001), 0};
        config.name = "fuzz";
        config.is_manager = !dialed_;
        if (dialed_) {
            listener_ = std::move(mesh::listen_on(config.listen).value());
            config.manager = *mesh::local_endpoint(listener_.get());
        }
        fabric_ = std::make_unique<mesh::Fabric>(std::move(config), segment_, port_, loop_, counters_,
                                                 log::Logger(log::null_sink(), "fuzz"));
        require(fabric_->start().ok(), "a port to listen on");
        reconnect();
    }

    static net::Route route(const wire::MacAddress& to, const wire::MacAddress& from) {
        net::Route route;
        route.destination = to;
        route.source = from;
        route.ipv4 = true;
        route.ip4.version_ihl = 0x45;
        route.ip4.protocol = wire::kIpProtocolUdp;
        return route;
    }

    void reconnect() {
        socket_.reset();
        if (!dialed_) {
            socket_ = mesh::begin_connect(fabric_->endpoint());
        } else {
            for (int i = 0; i < 8 && !socket_; ++i) {
                clock_.advance(1'000'000'000);
                turn();
                socket_.reset(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
            }
        }
        turn();
    }

    void turn() {
        for (int i = 0; i < 3; ++i) {
            loop_.run_once(false);
            engine_.step();
            fabric_->step();
            std::array<std::byte, 16384> answers;  // NOLINT(cppcoreguidelines-pro-type-member-init)
            while (socket_ && ::recv(socket_.get(), answers.data(), answers.size(), MSG_DONTWAIT) > 0) {
            }
        }
    }

    void send_raw(Bytes bytes) {
        if (socket_) {
            (void)::send(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        }
    }

    void send_frame(mesh::FrameType type, Bytes head, std::size_t body) {
        mesh::Prefix prefix{};
        prefix.type = static_cast<std::uint8_t>(type);
        prefix.head_size.set(static_cast<std::uint16_t>(head.size()));
        prefix.body_size.set(static_cast<std::uint32_t>(body));
        std::vector<std::byte> bytes(sizeof prefix);
        std::memcpy(bytes.data(), &prefix, sizeof prefix);
        bytes.insert(bytes.end(), head.begin(), head.end());
        bytes.resize(bytes.size() + body, std::byte{0xa5});
        send_raw(bytes);
    }

    void send_hello() {
        mesh::Hello hello;
        hello.capabilities = mesh::kCapabilityManager | mesh::kCapabilityJoin;
        hello.number = input_.u8();
        hello.id.bytes[0] = input_.u8() % 4U;
        hello.endpoint.port = 9;
        hello.name = "peer";
        send_frame(mesh::FrameType::Hello, mesh::encode(hello), 0);
    }

    void announce() {
        const std::vector<wire::MacAddress> macs = {input_.flag() ? kPeer : kGuest};
        send_frame(mesh::FrameType::Announce, mesh::encode_macs(macs), 0);
    }

    void send_message() {
        const net::Route way = input_.u8() % 8U != 0 ? route(kGuest, kPeer) : route(kPeer, kGuest);
        net::Message message;
        message.route = &way;
        message.kind = static_cast<net::MessageKind>(input_.u8() % 10U);
        const std::uint8_t bits = input_.u8();
        message.first = (bits & 1U) == 0;
        message.last = (bits & 2U) == 0;
        message.has_immediate = (bits & 4U) != 0;
        message.has_invalidate = (bits & 8U) != 0;
        message.acknowledge_request = (bits & 16U) != 0;
        message.destination_qpn = 2;
        message.source_qpn = 3;
        message.psn = (bits & 32U) != 0 ? input_.u32() : psn_;
        message.path_mtu = 1024;
        message.rkey = (bits & 64U) != 0 ? input_.u32() : kKey;
        message.remote_va = kOpenStart + input_.u32() % (2 * kOpenSize) - (bits & 128U);
        message.length = input_.u32() % (mesh::kMaxBody + 2);
        message.message_length = message.length + input_.u16();
        message.invalidate_key = input_.u8();
        mesh::HeadBuffer head;
        mesh::encode(message, head);
        const bool brings =
            message.kind == net::MessageKind::Send || message.kind == net::MessageKind::Write ||
            message.kind == net::MessageKind::Datagram || message.kind == net::MessageKind::ReadResponse;
        send_frame(mesh::FrameType::Message, head.view(), brings ? message.length : 0);
        psn_ = (psn_ + static_cast<std::uint32_t>((message.length + 1023) / 1024)) & 0xffffffU;
    }

    Input input_;
    bool dialed_ = false;
    FakeClock clock_;
    EventLoop loop_{clock_};
    std::vector<std::byte> memory_ = std::vector<std::byte>(kMemory);
    mem::GuestMemory guest_;
    net::Segment segment_{net::PayloadMode::Preserve, &clock_};
    net::FramePort port_{segment_.bridge(), "mesh"};
    rdma::Engine engine_{{8, 16, 4, 1U << 10U}, guest_, segment_, loop_};
    Owner owner_;
    std::unique_ptr<rdma::QueuePair> qp_;
    mesh::Counters counters_;
    UniqueFd listener_;
    std::unique_ptr<mesh::Fabric> fabric_;
    UniqueFd socket_;
    std::uint32_t psn_ = 0;
};

}  // namespace
}  // namespace ernic::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    ernic::fuzz::Target(ernic::fuzz::Input(data, size)).run();
    return 0;
}
