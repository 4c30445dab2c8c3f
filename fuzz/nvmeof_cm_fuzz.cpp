// SPDX-License-Identifier: MIT
// A host of an NVMe over Fabrics target: management datagrams of any content and order, queues that are
// connected and then used by the rules or against them, keys that come and go, silence, time. Whatever the
// target does must stay within the host's regions, its tables stay bounded, and when all is quiet nothing of
// a host that has left remains.
#include <array>
#include <memory>
#include <vector>

#include "fuzz/input.hpp"
#include "nvmeof/rdma_transport.hpp"
#include "nvmeof/target.hpp"
#include "rdma/cm_messages.hpp"
#include "rdma/service_queue.hpp"

namespace ernic::fuzz {
namespace {

using namespace wire::ib_cm;  // NOLINT(google-build-using-namespace): every name here is one of its

constexpr wire::MacAddress kHostMac{{0x02, 0, 0, 0, 0, 1}};
constexpr wire::MacAddress kTargetMac{{0x02, 0, 0, 0, 0, 2}};
constexpr std::uint32_t kQueues = 4;
constexpr std::uint32_t kReceives = 40;
constexpr std::size_t kDataBytes = std::size_t{64} << 10U;
constexpr Nanoseconds kSecond = 1'000'000'000;

/// Memory of the host that the target may reach, between pages that it must not touch.
struct HostData {
    std::array<std::byte, 4096> before;
    std::array<std::byte, kDataBytes> data;
    std::array<std::byte, 4096> behind;
};

/// One queue pair of the host.
class HostQueue final : rdma::ServiceQueue::User {
  public:
    HostQueue(rdma::Engine& engine, std::uint32_t qpn)
        : capsules_(kReceives), queue_(engine, *this, qpn, rdma::QpType::Rc, buffers()) {}

    rdma::ServiceQueue& queue() { return queue_; }

    void send(Bytes capsule) {
        auto& copy = capsules_[next_capsule_++ % capsules_.size()];
        copy.assign(capsule.begin(), capsule.end());
        rdma::ServiceQueue::Request request;
        request.piece_count = 1;
        request.pieces[0] = {copy.data(), copy.size()};
        if (queue_.outstanding() < kReceives) {
            queue_.post(request);
        }
    }

  private:
    void received(std::uint32_t buffer, const rdma::ReceiveCompletion& completion) override {
        require(completion.length == nvmeof::kCompletionBytes, "responses are completion entries");
        queue_.post_receive(buffer);
    }
    void sent(std::uint32_t, void*) override {}
    void failed() override {}
    std::vector<rdma::ServiceQueue::Buffer> buffers() {
        std::vector<rdma::ServiceQueue::Buffer> list;
        for (auto& response : responses_) {
            list.push_back({response, {}});
        }
        return list;
    }

    std::array<std::array<std::byte, 32>, kReceives> responses_{};
    std::vector<std::vector<std::byte>> capsules_;
    std::size_t next_capsule_ = 0;
    rdma::ServiceQueue queue_;
};

class Target {
  public:
    explicit Target(Input input) : input_(input) {
        data_->before.fill(std::byte{0xa5});
        data_->behind.fill(std::byte{0xa5});
        make_region();
    }

    void run() {
        while (!input_.empty()) {
            switch (input_.below(10)) {
                case 0:
                    (void)port_.send(route(), input_.value<rdma::ManagementPort::Datagram>());
                    break;
                case 1:
                    message();
                    break;
                case 2:
                case 3:
                    connect();
                    break;
                case 4:
                    clock_.advance(std::uint64_t{input_.u8()} * kSecond / 8);
                    break;
                case 5:
                    if (auto& queue = queues_[input_.below(kQueues)]) {
                        queue->queue().qp().fail();
                    }
                    break;
                case 6:
                    endpoint_.engine().memory_table().destroy(kKey);
                    make_region();
                    break;
                default:
                    command();
                    break;
            }
            settle();
        }
        queues_ = {};
        for (int i = 0; i < 200 && transport_.connections() != 0; ++i) {
            clock_.advance(10 * kSecond);
            settle();
        }
        check();
    }

  private:
    static constexpr std::uint32_t kKey = 1U << 8U | 0x42U;

    void make_region() {
        rdma::MemoryRegion region;
        region.valid = true;
        region.pd = 1;
        region.rights = {true, true, true, true, true, false};
        region.va = address();
        region.length = kDataBytes;
        region.pages = mem::PageList::contiguous(mem::Iova{address()});
        (void)engine_.memory_table().create(kKey, std::move(region));
    }
    [[nodiscard]] std::uint64_t address() const {
        return reinterpret_cast<std::uintptr_t>(data_->data.data());
    }

    void check() {
        const auto untouched = [](const auto& page) {
            return std::all_of(page.begin(), page.end(),
                               [](std::byte byte) { return byte == std::byte{0xa5}; });
        };
        require(untouched(data_->before) && untouched(data_->behind), "nothing beside the region is touched");
        require(transport_.connections() <= nvmeof::RdmaTransport::kMostConnections,
                "connections are bounded");
    }

    void settle() {
        loop_.run_once(false);
        for (int i = 0; i < 2000; ++i) {
            bool more = engine_.step();
            port_.receive([this](const net::Route&, const rdma::ManagementPort::Datagram& datagram) {
                heard(datagram);
            });
            more = runtime_.step() || more;
            more = transport_.step() || more;
            if (!more && !port_.has_arrivals()) {
                break;
            }
        }
        check();
    }

    void heard(const rdma::ManagementPort::Datagram& datagram) {
        const auto header = rdma::cm::header_of(datagram);
        require(header.has_value(), "answers are communication management");
        if (static_cast<Attribute>(header->attribute_id.get()) != Attribute::Reply) {
            return;
        }
        const auto reply = rdma::cm::body_of<Reply>(datagram);
        const std::uint32_t number = reply.remote_id.get() % kQueues;
        target_ids_[number] = reply.local_id.get();
        target_qpns_[number] = reply.qpn.get() >> 8U;
        auto& queue = queues_[number];
        if (!queue || queue->queue().qp().state() != rdma::QpState::Reset) {
            return;
        }
        rdma::QpAttributes attributes;
        attributes.destination_qpn = target_qpns_[number];
        attributes.sq_psn = reply.psn.get() >> 8U;
        attributes.rq_psn = 7;
        attributes.timeout = 14;
        attributes.retry_count = 2;
        attributes.rnr_retry = 2;
        attributes.remote_read = attributes.remote_write = true;
        attributes.route = route();
        queue->queue().bring_up(attributes);
    }

    static net::Route route() {
        net::Route route;
        route.source = kHostMac;
        route.destination = kTargetMac;
        route.ipv4 = true;
        route.ip4.version_ihl = 0x45;
        return route;
    }

    template <typename Body>
    void send(Attribute attribute, const Body& body) {
        (void)port_.send(route(), rdma::cm::datagram_of(attribute, 0, body));
    }

    /// A REQ as it should be but for a byte or two, for a new queue pair.
    void connect() {
        const std::uint32_t number = input_.below(kQueues);
        if (input_.flag()) {
            const std::uint32_t qpn = 2 + number * 8 + next_qpn_++ % 8;
            queues_[number].reset();
            if (engine_.find(qpn) == nullptr) {
                queues_[number] = std::make_unique<HostQueue>(engine_, qpn);
            }
            peer_ids_[number] += kQueues;
        }
        Request body{};
        body.local_id.set(peer_ids_[number] + number);
        body.service_id.set(kServicePrefixTcp | 4420);
        body.ca_guid.set(1);
        body.qpn_resources.set((queues_[number] ? queues_[number]->queue().qp().qpn() : 99U) << 8U | 4U);
        body.psn_retry.set(7U << 8U | 10U << 3U | 2U);
        body.mtu_rnr_retry = 3U << 4U | 2U;
        body.cm_retries = 2U << 4U;
        body.primary.acknowledge_timeout = 14U << 3U;
        RdmaCmHeader header{};
        header.ip_version = 0x40;
        header.destination[12] = 10;
        header.destination[15] = 2;
        wire::nvme_rdma::ConnectRequest wish{};
        wish.queue_id.set(static_cast<std::uint16_t>(number));
        wish.host_receive_entries.set(kReceives);
        wish.host_send_entries.set(static_cast<std::uint16_t>(31));
        std::memcpy(body.private_data.data(), &header, sizeof header);
        std::memcpy(body.private_data.data() + sizeof header, &wish, sizeof wish);
        for (std::uint32_t damage = input_.below(8); damage > 5; --damage) {
            auto* const bytes = reinterpret_cast<std::byte*>(&body);
            bytes[input_.below(sizeof body)] = input_.value<std::byte>();
        }
        send(Attribute::Request, body);
    }

    /// Any other message about a connection.
    void message() {
        const std::uint32_t number = input_.below(kQueues);
        DisconnectRequest body{};
        body.local_id.set(peer_ids_[number] + number);
        body.remote_id.set(target_ids_[number]);
        body.remote_qpn.set(target_qpns_[number] << 8U);
        if (input_.below(4) == 0) {
            auto* const bytes = reinterpret_cast<std::byte*>(&body);
            bytes[input_.below(16)] = input_.value<std::byte>();
        }
        send(static_cast<Attribute>(0x10 + input_.below(12)), body);
    }

    /// A command capsule: Connect, Property Set, or any.
    void command() {
        auto& queue = queues_[input_.below(kQueues)];
        if (!queue) {
            return;
        }
        std::vector<std::byte> capsule(64);
        const auto set = [&capsule](std::size_t at, const auto& value) {
            std::memcpy(capsule.data() + at, &value, sizeof value);
        };
        const std::uint32_t shape = input_.below(8);
        const Bytes own = input_.bytes(input_.below(65));
        std::copy(own.begin(), own.end(), capsule.begin());
        set(1, std::uint8_t{0x40});
        if (shape != 0) {
            // A key that is right, and an address and length that mostly are.
            set(24, le64(address() + (shape == 1 ? input_.u16() : 0U)));
            set(32, le32((shape == 2 ? input_.u16() : 4096U) & 0xffffffU));
            set(35, le32(kKey));
            set(39, std::uint8_t{0x40});
        }
        if (shape == 3) {
            connect_command(capsule, set);
        } else if (shape == 4) {
            set(0, std::uint8_t{0x7f});
            set(4, std::uint8_t{0});
            set(40, std::uint8_t{0});
            set(44, le32(0x14));
            set(48, le64(0x460001));
        } else if (shape == 5) {
            set(24, le64(0));
            set(32, le32(input_.u16()));
            set(39, std::uint8_t{0x01});
            const Bytes data = input_.bytes(input_.u8());
            capsule.insert(capsule.end(), data.begin(), data.end());
            capsule.resize(capsule.size() + input_.u16() % 5000U);
        } else if (shape == 6) {
            capsule.resize(input_.below(80));
        }
        queue->send(capsule);
    }

    template <typename Set>
    void connect_command(std::vector<std::byte>& capsule, const Set& set) {
        const auto qid = static_cast<std::uint16_t>(input_.below(3));
        set(0, std::uint8_t{0x7f});
        set(4, std::uint8_t{1});
        set(32, le32(1024));
        set(35, le32(kKey));
        set(39, std::uint8_t{0x40});
        set(40, le16(0));
        set(42, le16(qid));
        set(44, le16(31));
        set(46, std::uint8_t{0});
        set(48, le32(input_.u16()));
        auto& data = data_->data;
        std::fill_n(data.begin(), 1024, std::byte{0});
        const le16 controller(qid == 0 ? std::uint16_t{0xffff} : static_cast<std::uint16_t>(input_.below(4)));
        std::memcpy(data.data() + 16, &controller, sizeof controller);
        const std::string_view nqn = input_.flag() ? "nvmet-test" : "nqn.2014-08.org.nvmexpress.discovery";
        std::memcpy(data.data() + 256, nqn.data(), nqn.size());
        std::memcpy(data.data() + 512, "host", 4);
        (void)capsule;
    }

    static nvmeof::TargetConfig config() {
        nvmeof::TargetConfig config;
        config.host.mac = kTargetMac;
        config.host.ipv4 = net::IpPrefix{net::IpAddress::v4(0x0a000002), 24};
        config.in_capsule = 4096;
        config.max_transfer = 1U << 16U;
        config.namespaces = {{.id = 1, .size = 1U << 20U}, {.id = 3, .size = 1U << 16U, .block_size = 4096}};
        return config;
    }

    Input input_;
    FakeClock clock_;
    EventLoop loop_{clock_};
    net::Segment segment_;
    log::Logger log_{log::null_sink(), "fuzz"};
    nvmeof::Runtime runtime_{loop_, log_};
    nvmeof::Directory directory_;
    std::unique_ptr<nvmeof::Target> target_ =
        std::move(nvmeof::Target::make(config(), runtime_, directory_).value());
    nvmeof::TransportCounters counters_;
    rdma::ConnectionCounters connection_counters_;
    nvmeof::RdmaTransport transport_{
        segment_, loop_,     {kTargetMac, {net::IpAddress::v4(0x0a000002)}, {4420}},
        *target_, counters_, connection_counters_,
        log_};
    std::unique_ptr<HostData> data_ = std::make_unique<HostData>();
    rdma::Endpoint endpoint_{segment_, loop_, kHostMac, {64, rdma::ManagementPort::kDatagrams, 4}};
    rdma::Engine& engine_ = endpoint_.engine();
    rdma::ManagementPort port_{endpoint_};
    std::array<std::unique_ptr<HostQueue>, kQueues> queues_;
    std::array<std::uint32_t, kQueues> peer_ids_{};
    std::array<std::uint32_t, kQueues> target_ids_{};
    std::array<std::uint32_t, kQueues> target_qpns_{};
    std::uint32_t next_qpn_ = 0;
};

}  // namespace
}  // namespace ernic::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    ernic::fuzz::Target(ernic::fuzz::Input(data, size)).run();
    return 0;
}
