// SPDX-License-Identifier: MIT
// The data path: queue pairs in RTS on a loopback segment, work requests and receives of any content,
// doorbells, completion queues, memory regions and windows of odd shapes, interleaved with MODIFY, DESTROY,
// resets and DMA maps that vanish. Two kinds of input, told apart by the first byte:
//
//   honest   a driver that follows the rules hands on the requests of a hostile program. Completions are
//   checked
//            against a model of what the drivers expect, memory outside of all regions must not change, and
//            its contents must not turn up elsewhere.
//   wild     everything is hostile: ring addresses, doorbell values, privileged queue pairs, ring contents
//   that change
//            while requests are under way. Only memory safety, budgets and the end of all work are checked.
#include <vector>

#include "fuzz/request_source.hpp"
#include "fuzz/verbs.hpp"
#include "fuzz/verbs_model.hpp"
#include "fuzz/world.hpp"
#include "ionic/rdma_queue_pair.hpp"

namespace ernic::fuzz {
namespace {

namespace rw = wire::ionic_rdma;

constexpr std::uint64_t kCqPages = page::kFree;        // one page per CQ
constexpr std::uint64_t kSendPages = page::kFree + 8;  // two per queue pair
constexpr std::uint64_t kReceivePages = page::kFree + 24;
constexpr std::uint64_t kCanary = page::at(page::kFree + 82);
constexpr std::uint64_t kSecret = page::at(page::kFree + 84);

constexpr std::uint32_t kFirstQp = 1;
constexpr std::uint32_t kLastQp = 6;
constexpr std::uint32_t kFirstCq = 1;
constexpr std::uint32_t kLastCq = 3;
/// Nobody on the segment has it.
constexpr wire::MacAddress kStranger{{0x02, 0xde, 0xad, 0, 0, 1}};

class Target {
  public:
    explicit Target(Input input)
        : input_(input),
          wild_((input_.u8() & 1U) != 0),
          world_({.mode = input_.u8() % 8U == 0 ? net::PayloadMode::Random : net::PayloadMode::Preserve}),
          driver_({world_.ram(), world_.card(), [this] { run_some(); },
                   [this](std::uint32_t offset, Bytes data) { world_.config_write(offset, data); }}) {}

    void run() {
        driver_.bring_up();
        guard_ = make_guard();
        world_.ram().store(kCanary, guard_);
        world_.ram().store(kSecret, guard_);
        set_up();
        while (!input_.empty()) {
            operation();
        }
        world_.settle();
        poll();
        if (honest()) {
            check_conservation();
        }
        if (!wild_) {
            check_guarded();
        }
        world_.finish();
    }

  private:
    struct Cq {
        bool exists = false;
        RingPlan ring;
        std::uint16_t dbid = 0;
        std::uint32_t consumer = 0;
        std::uint32_t told = 0;
        /// The host has let it run full at some time, so completions may be missing.
        bool overrun = false;
    };
    struct Producers {
        std::uint32_t send = 0;
        std::uint32_t receive = 0;
        std::uint32_t send_rung = 0;
        std::uint32_t receive_rung = 0;
    };

    /// Completions are looked at: the input has not done anything that excuses the card.
    [[nodiscard]] bool honest() const { return !wild_ && !excused_; }
    void run_some() {
        for (int i = 0; i < 4; ++i) {
            world_.run_once();
            if (!world_.work_left()) {
                return;
            }
        }
    }

    // A page of 16-byte pieces that no input contains by chance.
    static std::vector<std::byte> make_guard() {
        std::vector<std::byte> bytes(GuestRam::kPage);
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            bytes[i] = static_cast<std::byte>(0xe7U ^ (i % 16U * 0x2fU));
        }
        return bytes;
    }
    void check_guarded() {
        std::vector<std::byte> now(GuestRam::kPage);
        for (const std::uint64_t guarded : {kCanary, kSecret}) {
            world_.ram().load(guarded, now);
            require(now == guard_, "memory outside of all regions is never written");
        }
        world_.ram().store(kCanary, std::vector<std::byte>(GuestRam::kPage));
        world_.ram().store(kSecret, std::vector<std::byte>(GuestRam::kPage));
        require(!world_.ram().contains(Bytes(guard_).first(16)),
                "memory outside of all regions is never read");
    }

    // ---- Objects

    void set_up() {
        for (std::uint32_t id = kFirstCq; id <= kLastCq; ++id) {
            create_cq(id);
        }
        for (std::uint32_t qpn = kFirstQp; qpn <= kLastQp; ++qpn) {
            create_qp(qpn);
            connect(qpn);
        }
        verbs_.create_ah(0, 1, route_header(kCardMac, kCardMac));
        verbs_.create_ah(1, 1, route_header(kStranger, kCardMac));
        verbs_.create_ah(2, 2, route_header(kCardMac, kCardMac));
        constexpr std::uint16_t kAll = 0x1f;
        verbs_.create_mr({.key = key(1), .flags = kAll, .va = kData, .length = kDataSize, .address = kData});
        verbs_.create_mr(
            {.key = key(2), .flags = rw::kMrRemoteRead, .va = kData, .length = 5000, .address = kData});
        verbs_.create_mr({.key = key(3), .flags = rw::kMrUserKey});
        verbs_.create_mr({.key = key(4), .flags = rw::kMrIsWindow});
        verbs_.create_mr({.key = key(5), .flags = rw::kMrIsWindow | rw::kMrInvalidate});
        create_table_mr(6);
    }

    void create_cq(std::uint32_t id) {
        Cq& cq = cqs_[id];
        cq = {};
        const std::uint8_t shape = input_.u8();
        cq.exists = true;
        cq.dbid = shape & 1U;
        cq.ring = {wild_ && shape >= 0xf0 ? GuestRam::address(input_) : page::at(kCqPages + id),
                   static_cast<std::uint8_t>(7 - (shape >> 1U) % 5U), 5};
        if (!wild_) {
            world_.ram().store(cq.ring.address, std::vector<std::byte>(GuestRam::kPage));
        }
        verbs_.create_cq(id, cq.dbid, cq.ring);
    }

    void create_qp(std::uint32_t qpn) {
        QpPlan& plan = qps_[qpn];
        const std::uint8_t shape = input_.u8();
        const std::uint8_t cqs = input_.u8();
        plan = {};
        plan.qpn = qpn;
        plan.datagram = qpn == 1 || qpn == 6;
        plan.pd = shape >= 0xf0 ? 2 : 1;
        plan.dbid = shape & 1U;
        plan.sq_cq = kFirstCq + cqs % 3U;
        plan.rq_cq = kFirstCq + cqs / 3U % 3U;
        plan.sq = {page::at(kSendPages + 2 * qpn), static_cast<std::uint8_t>(4 + (shape >> 1U & 1U)), 7};
        plan.rq = {page::at(kReceivePages + 2 * qpn), static_cast<std::uint8_t>(3 + (shape >> 2U & 1U)), 7};
        if (wild_ && (shape >> 3U & 1U) != 0) {
            plan.flags = rw::kQpPrivileged | rw::kQpRemotePrivileged;
        }
        if (wild_ && (shape >> 4U & 7U) == 7) {
            plan.sq.address = GuestRam::address(input_);
            plan.rq.address = GuestRam::address(input_);
            plan.sq.depth_log2 = static_cast<std::uint8_t>(input_.below(17));
        }
        producers_[qpn] = {};
        verbs_.create_qp(plan);
        model_.created(plan);
    }

    /// 2 and 3 talk to each other, 4 to itself, 5 to nobody.
    Connection connection_of(std::uint32_t qpn) {
        Connection made;
        made.destination_qpn = qpn == 2 ? 3 : qpn == 3 ? 2 : qpn;
        made.qkey = kQkey;
        made.destination = qpn == 5 ? kStranger : kCardMac;
        const std::uint8_t odd = input_.u8();
        made.pmtu_log2 = static_cast<std::uint8_t>(8 + (odd & 0xfU) % 5U);
        if (odd >= 0xc0) {
            made.sq_psn = odd >= 0xe0 ? 0xffffff : input_.u8();
            made.rq_psn = odd >= 0xe0 ? 0xffffff : input_.u8();
            made.timeout = input_.u8() & 0x1fU;
            made.retry = input_.u8() & 7U;
            made.rnr_retry = input_.u8() & 7U;
            made.rnr_timer = input_.u8() & 0x1fU;
            made.depth_log2 = static_cast<std::uint8_t>(input_.below(6));
            made.access = input_.u8() & 7U;
        }
        return made;
    }
    void connect(std::uint32_t qpn) { verbs_.connect(qpn, connection_of(qpn)); }

    /// Its pages in the order of the input, repeated where it likes.
    void create_table_mr(std::uint32_t index) {
        const std::uint32_t count = 2 + input_.below(8);
        const std::uint8_t log2 = 12;
        const std::uint64_t table = page::kTables + index * 512;
        for (std::uint32_t i = 0; i < count; ++i) {
            const std::uint64_t target = wild_ && input_.u8() >= 0xe0
                                             ? GuestRam::address(input_)
                                             : kData + GuestRam::kPage * input_.below(kDataPages);
            world_.ram().put(table + 8 * i, le64(target));
        }
        const std::uint32_t start = input_.u16() % 4096U;
        MrPlan plan{.key = key(index, input_.u8() % 2U != 0 ? 1 : 7),
                    .pd = input_.u8() >= 0xf0 ? 2U : 1U,
                    .flags = static_cast<std::uint16_t>(input_.u8() | 1U),
                    .va = kVirtual + start,
                    .length = count * GuestRam::kPage - start,
                    .address = table,
                    .map_count = count,
                    .page_size_log2 = log2};
        if (wild_ && input_.u8() >= 0xc0) {
            plan.va = input_.u64();
            plan.length = input_.u64();
            plan.page_size_log2 = input_.u8() % 66U;
            plan.address = GuestRam::address(input_);
            plan.map_count = input_.below(9);
        }
        verbs_.create_mr(plan);
    }

    // ---- Work requests

    void post_send(std::uint32_t qpn) {
        const QpPlan& plan = qps_[qpn];
        const std::uint32_t repeat = input_.u8() >= 0xe0 ? plan.sq.mask() : 1;
        std::uint8_t op = 0;
        bool signalled = false;
        Entry entry = requests_.send(plan.datagram, op, signalled);
        for (std::uint32_t i = 0; i < repeat && (wild_ || model_.has_send_room(qpn)); ++i) {
            const std::uint64_t id = next_id_++;
            entry.overwrite(0, bytes_of(id));
            world_.ram().store(plan.sq.slot(producers_[qpn].send++),
                               entry.bytes(std::size_t{1} << plan.sq.stride_log2));
            model_.posted_send(qpn, id, op, signalled);
        }
        if (input_.u8() % 8U != 0) {
            producers_[qpn].send_rung = producers_[qpn].send;
            verbs_.ring_send(plan, static_cast<std::uint16_t>(producers_[qpn].send & plan.sq.mask()));
        }
    }

    void post_receive(std::uint32_t qpn) {
        const QpPlan& plan = qps_[qpn];
        if (!wild_ && !model_.has_receive_room(qpn)) {
            return;
        }
        const std::uint64_t id = next_id_++;
        Entry entry = requests_.receive();
        entry.overwrite(0, bytes_of(id));
        world_.ram().store(plan.rq.slot(producers_[qpn].receive++),
                           entry.bytes(std::size_t{1} << plan.rq.stride_log2));
        model_.posted_receive(qpn, id);
        if (input_.u8() % 8U != 0) {
            producers_[qpn].receive_rung = producers_[qpn].receive;
            verbs_.ring_receive(plan, static_cast<std::uint16_t>(producers_[qpn].receive & plan.rq.mask()));
        }
    }

    // ---- Completions

    /// Reads what is new. With a repeated look the model sees everything in order.
    void poll() {
        for (std::uint32_t id = kFirstCq; id <= kLastCq && honest(); ++id) {
            Cq& cq = cqs_[id];
            while (cq.exists && cq.consumer - cq.told < cq.ring.mask()) {
                const auto cqe = world_.ram().get<rw::SendCqe>(cq.ring.slot(cq.consumer));
                const std::uint32_t color = (cq.consumer >> cq.ring.depth_log2 & 1U) == 0 ? 1 : 0;
                if ((cqe.qid_type_flags.get() & rw::kCqeColor) != color) {
                    break;
                }
                ++cq.consumer;
                model_.completed(cqe);
            }
            cq.overrun = cq.overrun || cq.consumer - cq.told == cq.ring.mask();
        }
    }

    void tell(std::uint32_t id) {
        Cq& cq = cqs_[id];
        poll();
        cq.told = cq.consumer;
        verbs_.ring_cq(cq.dbid, id, rw::kRingConsumer,
                       static_cast<std::uint16_t>(cq.consumer & cq.ring.mask()));
    }

    void check_conservation() {
        for (std::uint32_t qpn = kFirstQp; qpn <= kLastQp; ++qpn) {
            const auto* owner = world_.rdma().objects().queue_pair(qpn);
            const QpPlan& plan = qps_[qpn];
            if (owner == nullptr || cqs_[plan.sq_cq].overrun || cqs_[plan.rq_cq].overrun ||
                !cqs_[plan.sq_cq].exists || !cqs_[plan.rq_cq].exists) {
                continue;
            }
            rdma::QueuePair& qp = world_.rdma().objects().queue_pair(qpn)->qp();
            const bool all_rung = producers_[qpn].send_rung == producers_[qpn].send;
            if (qp.state() == rdma::QpState::Rts && all_rung && !world_.work_left() &&
                qp.requester().idle() && !qp.requester().has_posted()) {
                require(model_.signalled_sends(qpn) == 0, "an idle queue pair has told of all its requests");
            }
            tell(plan.sq_cq);
            tell(plan.rq_cq);
            verbs_.modify(qpn, 6, {}, rw::kAttrState);
            world_.settle();
            poll();
            if (cqs_[plan.sq_cq].overrun || cqs_[plan.rq_cq].overrun) {
                continue;
            }
            require(model_.flushed(qpn), "a queue pair in ERROR has flushed both its queues");
        }
    }

    // ---- Everything else that happens

    void operation() {
        const std::uint8_t what = input_.u8() % 32U;
        const std::uint32_t qpn = kFirstQp + input_.below(kLastQp);
        const std::uint32_t cq = kFirstCq + input_.below(kLastCq);
        if (what < 10) {
            post_send(qpn);
        } else if (what < 16) {
            post_receive(qpn);
        } else if (what < 19) {
            world_.run_once();
            poll();
        } else if (what < 22) {
            tell(cq);
        } else {
            rare_operation(what, qpn, cq);
        }
    }

    void rare_operation(std::uint8_t what, std::uint32_t qpn, std::uint32_t cq) {
        switch (what) {
            case 22:
                world_.advance(input_.flag() ? input_.u16() : std::uint64_t{input_.u16()} << 14U);
                break;
            case 23:
                verbs_.ring_cq(cqs_[cq].dbid, cq, static_cast<std::uint8_t>(rw::kRingArm + input_.below(2)),
                               0);
                break;
            case 24:
                modify(qpn);
                break;
            case 25:
                replace(qpn, cq);
                break;
            case 26: {
                const std::uint32_t index = 1 + input_.below(kRegions - 1);
                verbs_.destroy(rw::AdminOp::DestroyMr, key(index));
                if (input_.flag()) {
                    create_table_mr(index);
                }
                break;
            }
            case 27:
                excused_ = true;
                change_map();
                break;
            case 28:
                excused_ = true;
                reset();
                break;
            default:
                if (wild_) {
                    wild_operation(qpn, cq);
                }
                break;
        }
    }

    void modify(std::uint32_t qpn) {
        poll();
        const auto state = static_cast<std::uint8_t>(input_.below(8));
        if (state == 7) {  // the whole way from RESET
            verbs_.modify(qpn, 0, {}, rw::kAttrState);
            restarted(qpn);
            connect(qpn);
            return;
        }
        verbs_.modify(qpn, state, connection_of(qpn), input_.u32() | rw::kAttrState);
        if (state == 0) {
            restarted(qpn);
        }
    }
    void restarted(std::uint32_t qpn) {
        producers_[qpn] = {};
        poll();
        model_.created(qps_[qpn]);
    }

    void replace(std::uint32_t qpn, std::uint32_t cq) {
        poll();
        if (input_.u8() >= 0xc0) {
            verbs_.destroy(rw::AdminOp::DestroyCq, cq);
            cqs_[cq].exists = false;
            excused_ = true;  // its queue pairs have nobody to complete to
            if (input_.flag()) {
                create_cq(cq);
            }
            return;
        }
        verbs_.destroy(rw::AdminOp::DestroyQp, qpn);
        poll();
        model_.destroyed(qpn);
        create_qp(qpn);
        connect(qpn);
    }

    void change_map() {
        const auto region = static_cast<GuestRam::Id>(input_.below(GuestRam::kRegions));
        if (input_.u8() >= 0xe0) {
            driver_.config_write16(4, input_.flag() ? 6 : 2);
        } else if (world_.ram().mapped(region)) {
            world_.ram().unmap(region);
        } else {
            world_.ram().map(region);
        }
        world_.run_once();
    }

    void reset() {
        switch (input_.below(3)) {
            case 0:
                driver_.config_write16(0x68, 0x8000);  // function level reset
                break;
            case 1: {
                wire::ionic::Command command{};
                command.opcode = static_cast<std::uint8_t>(wire::ionic::Opcode::LifReset);
                driver_.device_command(command);
                break;
            }
            default:
                break;
        }
        driver_.bring_up();
        set_up();
    }

    void wild_operation(std::uint32_t qpn, std::uint32_t cq) {
        const QpPlan& plan = qps_[qpn];
        switch (input_.below(5)) {
            case 0:
                verbs_.ring_send(plan, input_.u16());
                break;
            case 1:
                verbs_.ring_receive(plan, input_.u16());
                break;
            case 2:
                verbs_.ring_cq(cqs_[cq].dbid, cq, static_cast<std::uint8_t>(input_.below(4)), input_.u16());
                break;
            case 3: {  // the ring changes while its requests are under way
                const RingPlan& ring = input_.flag() ? plan.sq : plan.rq;
                world_.ram().store(ring.slot(input_.u8()) + input_.u8() % 128U,
                                   input_.bytes(input_.u8() % 64U));
                break;
            }
            default:
                world_.ram().store(GuestRam::address(input_), input_.bytes(input_.u8()));
                break;
        }
    }

    Input input_;
    bool wild_;
    RequestSource requests_{input_, wild_, kCanary};
    bool excused_ = false;
    World world_;
    Driver driver_;
    Verbs verbs_{driver_, world_.ram()};
    VerbsModel model_;
    std::array<QpPlan, kLastQp + 1> qps_;
    std::array<Producers, kLastQp + 1> producers_;
    std::array<Cq, kLastCq + 1> cqs_;
    std::uint64_t next_id_ = 1;
    std::vector<std::byte> guard_;
};

}  // namespace
}  // namespace ernic::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    ernic::fuzz::Target(ernic::fuzz::Input(data, size)).run();
    return 0;
}
