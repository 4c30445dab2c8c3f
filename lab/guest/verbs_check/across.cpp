// SPDX-License-Identifier: MIT
// Transfers between two machines: each runs this program, and a TCP connection beside the device says what
// comes next. Both sides compute every byte from a seed, so none is compared with a copy that came the same
// way.
#include "across.hpp"

#include <arpa/inet.h>
#include <endian.h>

#include <cinttypes>
#include <cstring>
#include <random>

#include "cases.hpp"
#include "check.hpp"
#include "order_line.hpp"
#include "pattern.hpp"

namespace {

constexpr std::size_t kRoom = 9 * kMiB;
constexpr std::size_t kGrh = 40;
constexpr std::uint32_t kQkey = 0x11223344;
constexpr unsigned kRandomRounds = 60;
constexpr unsigned kBursts = 10;
constexpr std::size_t kBurst = 32;
constexpr std::size_t kStride = std::size_t{256} * 1024;

/// One end: its memory, its queue pairs, and what it knows of the other end.
class Station {
  public:
    Station(const Device& device, OrderLine& line)
        : device_(device),
          line_(line),
          source_(device.pd(), kRoom),
          target_(device.pd(), kRoom),
          other_(meet()),
          rc_(device, options(IBV_QPT_RC)),
          ud_(device, options(IBV_QPT_UD)) {
        line_.say("queue-pairs %u %u", rc_.qpn(), ud_.qpn());
        const std::string answer = line_.hear();
        std::uint32_t qpn = 0;
        require(sscanf(answer.c_str(), "queue-pairs %u %u", &qpn, &other_.datagram_qpn) == 2,
                "the other end says '%s'", answer.c_str());
        rc_.connect(qpn);
        ud_.start(kQkey);
        ibv_ah_attr where{};
        where.is_global = 1;
        where.grh.dgid = other_.gid;
        where.grh.sgid_index = static_cast<std::uint8_t>(device.gid_index());
        where.grh.hop_limit = 64;
        where.port_num = kPort;
        address_.reset(ibv_create_ah(device.pd(), &where));
        require(address_ != nullptr, "ibv_create_ah: %s", strerror(errno));
        // Both are ready to receive before one of them sends.
        line_.say("connected");
        line_.expect("connected");
    }

    /// As the requester: all of one order at once, and the other end's verdict.
    void lead(const std::vector<Order>& orders) {
        const std::string verdict = lead_unjudged(orders);
        require(verdict == "ok", "the other end: %s", verdict.c_str());
    }

    /// The same for a transfer that the other end must find fault with.
    void lead_planted(const Order& order) {
        const std::string verdict = lead_unjudged({order}, true);
        require(verdict.rfind("bad byte ", 0) == 0, "a planted byte is not found: %s", verdict.c_str());
    }

    /// As the other end: until the requester has no more.
    void follow() {
        for (std::string line = line_.hear(); line != "over"; line = line_.hear()) {
            unsigned count = 0;
            require(sscanf(line.c_str(), "orders %u", &count) == 1, "'%s' is no order", line.c_str());
            std::vector<Order> orders;
            for (unsigned i = 0; i < count; ++i) {
                orders.push_back(Order::read(line_.hear()));
                prepare(orders.back());
            }
            line_.say("ready");
            line_.expect("done");
            std::string verdict = "ok";
            try {
                for (const Order& order : orders) {
                    inspect(order);
                }
            } catch (const Failure& reason) {
                verdict = std::string("bad ") + reason.what();
            }
            line_.say("%s", verdict.c_str());
        }
    }

    [[nodiscard]] std::size_t mtu() const { return device_.mtu(); }

  private:
    struct Other {
        ibv_gid gid{};
        std::uint64_t source = 0;
        std::uint32_t source_key = 0;
        std::uint64_t target = 0;
        std::uint32_t target_key = 0;
        std::uint32_t datagram_qpn = 0;
    };

    Other meet() {
        const ibv_gid own = device_.gid(device_.gid_index());
        line_.say("station %016" PRIx64 " %016" PRIx64 " %" PRIx64 " %x %" PRIx64 " %x",
                  be64toh(own.global.subnet_prefix), be64toh(own.global.interface_id), source_.va(),
                  source_.rkey(), target_.va(), target_.rkey());
        const std::string answer = line_.hear();
        Other other;
        std::uint64_t high = 0;
        std::uint64_t low = 0;
        require(sscanf(answer.c_str(), "station %" SCNx64 " %" SCNx64 " %" SCNx64 " %x %" SCNx64 " %x", &high,
                       &low, &other.source, &other.source_key, &other.target, &other.target_key) == 6,
                "the other end says '%s'", answer.c_str());
        other.gid.global.subnet_prefix = htobe64(high);
        other.gid.global.interface_id = htobe64(low);
        return other;
    }

    [[nodiscard]] EndpointOptions options(ibv_qp_type type) const {
        EndpointOptions options;
        options.type = type;
        options.remote = other_.gid;
        return options;
    }

    [[nodiscard]] static Layout source_layout(const Order& order) {
        return {order.at, order.size, order.op == Order::Kind::Read ? 1 : order.pieces};
    }
    [[nodiscard]] static Layout target_layout(const Order& order) {
        const bool one = order.op == Order::Kind::Write || order.op == Order::Kind::WriteImm;
        return {order.at, order.size, one ? 1 : order.pieces};
    }

    std::string lead_unjudged(const std::vector<Order>& orders, bool planted = false) {
        line_.say("orders %zu", orders.size());
        for (const Order& order : orders) {
            line_.say("%s", order.text().c_str());
        }
        line_.expect("ready");
        for (const Order& order : orders) {
            perform(order, planted);
        }
        for (const Order& order : orders) {
            finish(order);
        }
        line_.say("done");
        return line_.hear();
    }

    // The requester's part.

    void perform(const Order& order, bool planted) {
        const Layout from = source_layout(order);
        const Layout to = target_layout(order);
        switch (order.op) {
            case Order::Kind::Send:
            case Order::Kind::SendImm:
            case Order::Kind::Write:
            case Order::Kind::WriteImm: {
                fill(source_, from, order.seed);
                if (planted) {
                    *source_.at(from.place(order.size / 2)) ^= 0x40;
                }
                SendRequest request(request_opcode(order.transfer()), order.seed);
                request.local(from.sges(source_));
                if (order.op == Order::Kind::Write || order.op == Order::Kind::WriteImm) {
                    request.remote(other_.target + to.begin(), other_.target_key);
                }
                if (order.op == Order::Kind::SendImm || order.op == Order::Kind::WriteImm) {
                    request.immediate(order.immediate());
                }
                rc_.post(request);
                break;
            }
            case Order::Kind::Read:
                fill_background(target_, to);
                rc_.post(SendRequest(IBV_WR_RDMA_READ, order.seed)
                             .local(to.sges(target_))
                             .remote(other_.source + from.begin(), other_.source_key));
                break;
            case Order::Kind::Add:
                rc_.post(SendRequest(IBV_WR_ATOMIC_FETCH_AND_ADD, order.seed)
                             .local({target_.sge(order.at, 8)})
                             .fetch_add(other_.target + order.at, other_.target_key, order.size));
                break;
            case Order::Kind::Swap:
                rc_.post(
                    SendRequest(IBV_WR_ATOMIC_CMP_AND_SWP, order.seed)
                        .local({target_.sge(order.at, 8)})
                        .compare_swap(other_.target + order.at, other_.target_key, order.seed, order.size));
                break;
            case Order::Kind::Datagram:
                fill(source_, from, order.seed);
                ud_.post(SendRequest(IBV_WR_SEND, order.seed)
                             .local(from.sges(source_))
                             .datagram(address_.get(), other_.datagram_qpn, kQkey));
                break;
        }
    }

    void finish(const Order& order) {
        switch (order.op) {
            case Order::Kind::Datagram:
                ud_.finish_send(order.seed, IBV_WC_SEND);
                return;
            case Order::Kind::Add:
            case Order::Kind::Swap:
                rc_.finish_send(order.seed,
                                order.op == Order::Kind::Add ? IBV_WC_FETCH_ADD : IBV_WC_COMP_SWAP);
                require(word(order.at) == order.seed, "the atomic returned 0x%" PRIx64 ", not 0x%" PRIx64,
                        word(order.at), order.seed);
                return;
            default:
                rc_.finish_send(order.seed, completion_opcode(order.transfer()));
        }
        if (order.op == Order::Kind::Read) {
            verify(target_, target_layout(order), order.seed, order.size);
        }
    }

    // The other end's part.

    void prepare(const Order& order) {
        switch (order.op) {
            case Order::Kind::Read:
                fill(source_, source_layout(order), order.seed);
                return;
            case Order::Kind::Add:
            case Order::Kind::Swap:
                memcpy(target_.at(order.at), &order.seed, sizeof order.seed);
                return;
            case Order::Kind::Datagram:
                fill_background(target_, Layout(order.at, kGrh + order.size));
                ud_.receive(order.seed, {target_.sge(order.at, kGrh + order.size)});
                return;
            default:
                break;
        }
        const Layout to = target_layout(order);
        fill_background(target_, to);
        if (takes_receive(order.transfer())) {
            rc_.receive(order.seed,
                        scatters_to_receive(order.transfer()) ? to.sges(target_) : std::vector<ibv_sge>{});
        }
    }

    void inspect(const Order& order) {
        switch (order.op) {
            case Order::Kind::Read:
                return;
            case Order::Kind::Add:
                require(word(order.at) == order.seed + order.size, "the word is 0x%" PRIx64, word(order.at));
                return;
            case Order::Kind::Swap:
                require(word(order.at) == order.size, "the word is 0x%" PRIx64, word(order.at));
                return;
            case Order::Kind::Datagram: {
                ud_.finish_receive(order.seed, kGrh + order.size);
                const auto wrong = find_difference(target_.at(order.at + kGrh), order.size, order.seed);
                require(!wrong, "byte %zu of a datagram is wrong", wrong.value_or(0));
                return;
            }
            default:
                break;
        }
        if (takes_receive(order.transfer())) {
            const bool write = order.op == Order::Kind::WriteImm;
            const ibv_wc completion =
                rc_.finish_receive(order.seed, order.size, write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);
            require(order.op == Order::Kind::Send || ntohl(completion.imm_data) == order.immediate(),
                    "immediate data 0x%x", ntohl(completion.imm_data));
        }
        verify(target_, target_layout(order), order.seed, order.size);
    }

    [[nodiscard]] std::uint64_t word(std::size_t at) const {
        std::uint64_t value = 0;
        memcpy(&value, target_.at(at), sizeof value);
        return value;
    }

    const Device& device_;
    OrderLine& line_;
    Buffer source_;
    Buffer target_;
    Other other_;
    Endpoint rc_;
    Endpoint ud_;
    Owned<ibv_ah> address_;
};

constexpr Order::Kind kTransfers[] = {Order::Kind::Send, Order::Kind::SendImm, Order::Kind::Write,
                                      Order::Kind::WriteImm, Order::Kind::Read};

/// What one end has the other one do, and how much of it went well.
class Course {
  public:
    explicit Course(Station& station) : station_(station) {}

    void run() {
        for (const Order::Kind kind : kTransfers) {
            for (const SizeEdge& edge : size_edges()) {
                const std::size_t size = edge.bytes(station_.mtu());
                for (const std::size_t pieces : {1UL, 4UL}) {
                    if (size <= 8 * kMiB && (pieces == 1 || size >= 64)) {
                        run_one({kind, size, 4096 + pieces, pieces, fresh_seed()});
                    }
                }
            }
        }
        for (const std::size_t size : {std::size_t{1}, std::size_t{64}, station_.mtu()}) {
            run_one({Order::Kind::Datagram, size, 4096, 1, fresh_seed()});
        }
        for (int i = 0; i < 20; ++i) {
            run_one({i % 2 == 0 ? Order::Kind::Add : Order::Kind::Swap, fresh_seed() * 7919, 4096, 1,
                     fresh_seed()});
        }
        for (unsigned i = 0; i < kRandomRounds; ++i) {
            run_one(random_order(4096, 8 * kMiB));
        }
        for (unsigned i = 0; i < kBursts; ++i) {
            // Receives are taken in the order of the sends, and all of one burst are under way together.
            std::vector<Order> orders;
            for (std::size_t place = 0; place < kBurst; ++place) {
                orders.push_back(random_order(4096 + place * kStride, kStride - 16384));
            }
            station_.lead(orders);
            passed += kBurst;
        }
        station_.lead_planted({Order::Kind::Write, 100'001, 4096, 1, fresh_seed()});
        station_.lead_planted({Order::Kind::Send, 3 * kMiB, 4096, 3, fresh_seed()});
    }

    std::size_t passed = 0;
    std::uint64_t bytes = 0;

  private:
    void run_one(const Order& order) {
        try {
            station_.lead({order});
        } catch (const Failure& reason) {
            fail("%s: %s", order.text().c_str(), reason.what());
        }
        ++passed;
        bytes += order.op == Order::Kind::Add || order.op == Order::Kind::Swap ? 8 : order.size;
    }

    Order random_order(std::size_t at, std::size_t most) {
        const std::size_t size = 64 + (random_() % 2 == 0 ? random_() % 8192 : random_() % (most - 64));
        return {kTransfers[random_() % std::size(kTransfers)], size, at, 1 + random_() % 5, fresh_seed()};
    }

    Station& station_;
    std::mt19937_64 random_{11};
};

}  // namespace

std::string run_across(const Device& device, const std::string& host) {
    OrderLine line(host);
    Station station(device, line);
    // First the one that has connected gives the orders, then the other one.
    Course course(station);
    for (const bool leads : {!line.listened(), line.listened()}) {
        if (leads) {
            course.run();
            line.say("over");
        } else {
            station.follow();
        }
    }
    char text[128];
    snprintf(text, sizeof text,
             "%zu transfers, %" PRIu64 " MiB one by one, every byte verified at the other end", course.passed,
             course.bytes / kMiB);
    return text;
}
