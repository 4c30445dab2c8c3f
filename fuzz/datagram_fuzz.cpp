// SPDX-License-Identifier: MIT
// Datagrams, and with them the MADs of QP 1: address handles made of arbitrary header templates, sends to any
// queue pair, receives of any shape. What arrives must be the 40 bytes of network header and exactly what was
// sent.
#include <vector>

#include "fuzz/request_source.hpp"
#include "fuzz/verbs.hpp"
#include "fuzz/world.hpp"

namespace ernic::fuzz {
namespace {

namespace rw = wire::ionic_rdma;

constexpr std::uint32_t kQueuePairs = 3;  // QP 1 is the GSI, 2 and 3 are a program's
constexpr std::uint32_t kHandles = 4;
constexpr std::uint64_t kNetworkHeader = 40;
constexpr std::uint64_t kSource = kData;
constexpr std::uint64_t kTarget = kData + 16 * GuestRam::kPage;
constexpr std::uint64_t kSpan = 8 * GuestRam::kPage;
constexpr std::uint32_t kKey = key(1);

class Target {
  public:
    explicit Target(Input input)
        : input_(input),
          driver_({world_.ram(), world_.card(), [this] { world_.run_once(); },
                   [this](std::uint32_t offset, Bytes data) { world_.config_write(offset, data); }}) {}

    void run() {
        driver_.bring_up();
        verbs_.create_cq(1, 0, {page::at(page::kFree), 7, 5});
        for (std::uint32_t qpn = 1; qpn <= kQueuePairs; ++qpn) {
            create_qp(qpn);
        }
        verbs_.create_mr({.key = kKey, .flags = 0x1f, .va = kData, .length = kDataSize, .address = kData});
        for (std::uint32_t handle = 0; handle < kHandles; ++handle) {
            create_handle(handle);
        }
        while (!input_.empty()) {
            operation();
        }
        world_.finish();
    }

  private:
    void create_qp(std::uint32_t qpn) {
        QpPlan& plan = qps_[qpn];
        plan.qpn = qpn;
        plan.dbid = qpn == 1 ? 0 : 1;
        plan.datagram = true;
        plan.sq_cq = plan.rq_cq = 1;
        plan.sq = {page::at(page::kFree + 8 + 2 * qpn), 5, 7};
        plan.rq = {page::at(page::kFree + 24 + 2 * qpn), 5, 7};
        verbs_.create_qp(plan);
        Connection connection;
        connection.qkey = kQkey;
        connection.destination = kCardMac;
        verbs_.connect(qpn, connection);
    }

    void create_handle(std::uint32_t handle) {
        std::vector<std::byte> header(66);
        const auto plain = route_header(kCardMac, kCardMac);
        std::copy(plain.begin(), plain.end(), header.begin());
        std::size_t length = plain.size();
        switch (input_.u8() % 8U) {
            case 0: {  // anything
                const Bytes own = input_.bytes(header.size());
                std::copy(own.begin(), own.end(), header.begin());
                length = input_.below(70);
                header.resize(length);
                break;
            }
            case 1: {  // a few other bytes
                const std::size_t at = input_.below(42);
                const Bytes own = input_.bytes(std::min<std::size_t>(input_.u8() % 16U, header.size() - at));
                std::copy(own.begin(), own.end(), header.begin() + static_cast<std::ptrdiff_t>(at));
                header.resize(length);
                break;
            }
            case 2: {  // tagged
                const std::array<std::byte, 4> tag{std::byte{0x81}, std::byte{0}, std::byte{input_.u8()},
                                                   std::byte{input_.u8()}};
                header.resize(length);
                header.insert(header.begin() + 12, tag.begin(), tag.end());
                break;
            }
            default:
                header.resize(length);
                break;
        }
        verbs_.create_ah(handle, input_.u8() >= 0xf0 ? 2 : 1, header);
    }

    void operation() {
        const std::uint32_t qpn = 1 + input_.below(kQueuePairs);
        switch (input_.u8() % 12U) {
            case 0:
            case 1:
                checked_datagram(qpn);
                break;
            case 2:
            case 3:
            case 4:
                post_send(qpn);
                break;
            case 5:
            case 6:
                post_receive(qpn);
                break;
            case 7:
                create_handle(input_.below(kHandles));
                break;
            case 8:
                verbs_.destroy(rw::AdminOp::DestroyAh, input_.below(kHandles));
                break;
            case 9:
                verbs_.destroy(rw::AdminOp::DestroyQp, qpn);
                create_qp(qpn);
                break;
            case 10:
                verbs_.modify(qpn, static_cast<std::uint8_t>(input_.below(7)), {}, rw::kAttrState);
                break;
            default:
                verbs_.ring_cq(0, 1, rw::kRingConsumer, input_.u16());
                world_.run_once();
                break;
        }
    }

    void put_send(std::uint32_t qpn, const Entry& entry) {
        world_.ram().store(qps_[qpn].sq.slot(producers_[qpn].send++), entry.bytes(128));
        verbs_.ring_send(qps_[qpn], static_cast<std::uint16_t>(producers_[qpn].send & qps_[qpn].sq.mask()));
    }
    void put_receive(std::uint32_t qpn, const Entry& entry) {
        world_.ram().store(qps_[qpn].rq.slot(producers_[qpn].receive++), entry.bytes(128));
        verbs_.ring_receive(qps_[qpn],
                            static_cast<std::uint16_t>(producers_[qpn].receive & qps_[qpn].rq.mask()));
    }

    void post_send(std::uint32_t qpn) {
        std::uint8_t op = 0;
        bool signalled = false;
        put_send(qpn, requests_.send(true, op, signalled));
        world_.run_once();
    }
    void post_receive(std::uint32_t qpn) { put_receive(qpn, requests_.receive()); }

    /// Two fresh queue pairs (a sends to b, which may be a) and one datagram whose way is known to be good.
    void checked_datagram(std::uint32_t a) {
        const std::uint32_t b = 1 + input_.below(kQueuePairs);
        for (const std::uint32_t qpn : {a, b}) {
            verbs_.destroy(rw::AdminOp::DestroyQp, qpn);
            producers_[qpn] = {};
            create_qp(qpn);
        }
        verbs_.destroy(rw::AdminOp::DestroyCq, 1);
        verbs_.create_cq(1, 0, {page::at(page::kFree), 7, 5});
        verbs_.create_ah(kHandles, 1, route_header(kCardMac, kCardMac));

        const std::uint32_t length = input_.u16() % 4097U;
        const std::uint32_t cut = length == 0 ? 0 : input_.u16() % length;
        const std::uint32_t offset = input_.below(256);
        std::vector<std::byte> sent(length);
        const Bytes seed = input_.bytes(input_.u8());
        for (std::size_t i = 0; i < sent.size(); ++i) {
            sent[i] = static_cast<std::byte>(
                i * 7 + (seed.empty() ? 0U : static_cast<unsigned>(seed[i % seed.size()])));
        }
        world_.ram().store(kSource + offset, sent);
        world_.ram().store(kTarget, std::vector<std::byte>(kSpan));

        // Room for every length the input may choose.
        world_.rdma().set_mtu(9000);
        Entry receive(1, 0, 0, 0);
        const std::array<rw::Sge, 3> room = {{{be64(kTarget), be32(input_.u8()), be32(kKey)},
                                              {be64(kTarget + 256), be32(0), be32(0)},
                                              {be64(kTarget + GuestRam::kPage), be32(8192), be32(kKey)}}};
        receive.set_sges(room);
        put_receive(b, receive);
        const bool immediate = input_.flag();
        Entry send(2, static_cast<std::uint8_t>(immediate ? rw::SendOp::SendImmediate : rw::SendOp::Send),
                   rw::kWqeSignalled, 77);
        const std::array<rw::Sge, 2> pieces = {
            {{be64(kSource + offset), be32(cut), be32(kKey)},
             {be64(kSource + offset + cut), be32(length - cut), be32(kKey)}}};
        send.set_body(rw::SendBody{be32(kHandles), be32(b), be32(kQkey), be32(length)});
        send.set_sges(pieces);
        put_send(a, send);
        for (int i = 0; i < 4; ++i) {
            world_.run_once();
        }
        check_arrival(b, sent, room[0].length.get(), immediate);
    }

    void check_arrival(std::uint32_t qpn, Bytes sent, std::uint32_t first_room, bool immediate) {
        const auto cqe = world_.ram().get<rw::ReceiveCqe>(page::at(page::kFree));
        require(cqe.qid_type_flags.get() == (rw::cqe_flags(qpn, rw::CqeType::Receive, false) | rw::kCqeColor),
                "a datagram with room arrives first");
        require(cqe.wqe_id == 1 && cqe.status_length.get() == kNetworkHeader + sent.size(),
                "and says how long it is");
        require(!immediate || cqe.immediate_or_rkey.get() == 77, "and carries its immediate data");
        std::vector<std::byte> arrived(kNetworkHeader + sent.size());
        const std::size_t head = std::min<std::size_t>(first_room, arrived.size());
        world_.ram().load(kTarget, MutableBytes(arrived).first(head));
        world_.ram().load(kTarget + GuestRam::kPage, MutableBytes(arrived).subspan(head));
        require(std::equal(sent.begin(), sent.end(), arrived.begin() + kNetworkHeader),
                "and holds what was sent");
    }

    struct Producers {
        std::uint32_t send = 0;
        std::uint32_t receive = 0;
    };

    Input input_;
    World world_;
    Driver driver_;
    Verbs verbs_{driver_, world_.ram()};
    RequestSource requests_{input_, true, 0};
    std::array<QpPlan, kQueuePairs + 1> qps_;
    std::array<Producers, kQueuePairs + 1> producers_;
};

}  // namespace
}  // namespace ernic::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    ernic::fuzz::Target(ernic::fuzz::Input(data, size)).run();
    return 0;
}
