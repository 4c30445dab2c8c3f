// SPDX-License-Identifier: MIT
//
// Random requests on many queue pairs that share one completion queue, each checked when it completes.
#include <endian.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <deque>
#include <iterator>
#include <map>
#include <random>
#include <utility>

#include "cases.hpp"
#include "check.hpp"

namespace {

constexpr std::size_t kMost = 66000;  ///< longest message
constexpr std::size_t kPieces = 4;    ///< pieces of local memory at most
/// Room for one message in pieces with its guards.
constexpr std::size_t kArea = 70000 / 4096 * 4096 + 4096;

class Side {
  public:
    std::unique_ptr<Endpoint> end;
    Side* peer = nullptr;

    /// A request that has been posted and not completed.
    struct Posted {
        std::uint64_t id;
        ibv_wr_opcode opcode;
        bool signalled;
        std::uint64_t seed;
        std::size_t size;
        std::size_t slot;
        std::optional<Layout> target;  ///< what to check when it completes
        std::uint64_t answer;          ///< atomics: the value that was there before
    };
    /// A message that the peer has sent or will have sent before it arrives.
    struct Expected {
        ibv_wr_opcode opcode;
        std::uint64_t seed;
        std::size_t size;
        std::uint32_t immediate;
    };
    std::deque<Posted> posted;
    std::deque<Expected> expected;
    std::deque<std::pair<std::uint64_t, Layout>> receives;
    std::uint64_t next_id = 0;
    std::uint64_t next_receive = 0;
    std::size_t unsignalled = 0;
    /// Offsets in the big buffer: `window` areas each, and two words for atomics that the peer works on.
    std::size_t sources = 0, targets = 0, inbox = 0, words = 0;
    std::uint64_t swap_word = 0, add_word = 0;  ///< what the peer's words must hold by now
};

class Stress {
  public:
    Stress(const Device& device, const StressOptions& options)
        : device_(device),
          options_(options),
          random_(options.seed),
          sides_(2 * options.pairs),
          buffer_(device.pd(), buffer_size(), kAllAccess, Buffer::Pages::Huge) {
        const std::size_t entries = sides_.size() * 5 * options.window;
        cq_.reset(ibv_create_cq(device.context(), static_cast<int>(entries), nullptr, nullptr, 0));
        require(cq_ != nullptr, "ibv_create_cq of %zu entries: %s", entries, strerror(errno));
        EndpointOptions wanted;
        wanted.cq = cq_.get();
        wanted.send_depth = 2 * options.window;
        wanted.receive_depth = 2 * options.window;
        wanted.sges = kPieces;
        wanted.inline_bytes = kInline;
        std::size_t at = 4096;
        for (Side& side : sides_) {
            side.end = std::make_unique<Endpoint>(device, wanted);
            side.sources = at;
            side.targets = side.sources + options.window * kArea;
            side.inbox = side.targets + options.window * kArea;
            side.words = side.inbox + 2 * options.window * kArea;
            at = side.words + 4096;
            memset(buffer_.at(side.words), 0, 64);
            by_qpn_[side.end->qpn()] = &side;
        }
        for (std::size_t i = 0; i < sides_.size(); i += 2) {
            sides_[i].peer = &sides_[i + 1];
            sides_[i + 1].peer = &sides_[i];
            sides_[i].end->connect(sides_[i + 1].end->qpn());
            sides_[i + 1].end->connect(sides_[i].end->qpn());
        }
        for (Side& side : sides_) {
            for (std::size_t i = 0; i < 2 * options.window; ++i) {
                post_receive(side);
            }
        }
    }

    std::string run() {
        const double begin = now();
        const double end = begin + options_.seconds;
        double last_progress = begin;
        std::size_t turn = 0;
        while (true) {
            const double time = now();
            if (time < end) {
                for (std::size_t i = 0; i < sides_.size(); ++i) {
                    Side& side = sides_[turn++ % sides_.size()];
                    if (side.posted.size() < options_.window) {
                        post_some(side);
                    }
                }
            } else if (!finish_tails()) {
                break;
            }
            if (complete_some()) {
                last_progress = time;
            }
            require(time - last_progress < Endpoint::patience_ms / 1000.0, "nothing completed for %d ms",
                    Endpoint::patience_ms);
        }
        check_words();
        char text[160];
        const double took = now() - begin;
        snprintf(text, sizeof text,
                 "%" PRIu64 " requests, %.1f MB in %.1f s on %u pairs, %" PRIu64 " of them messages",
                 requests_, static_cast<double>(bytes_) / 1e6, took, options_.pairs, messages_);
        return text;
    }

  private:
    static constexpr std::uint32_t kInline = 64;

    [[nodiscard]] std::size_t buffer_size() const {
        return 8192 + 2 * options_.pairs * (4 * options_.window * kArea + 4096);
    }
    static double now() {
        timespec time{};
        clock_gettime(CLOCK_MONOTONIC, &time);
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
    }
    std::size_t below(std::size_t limit) { return random_() % limit; }

    /// Small ones mostly, and edges more often than chance would have them.
    std::size_t random_size() {
        static const std::size_t edges[] = {0,   1,    63,   64,   65,    255,   256,
                                            257, 4095, 4096, 4097, 65535, 65536, 65537};
        const std::size_t mtu = device_.mtu();
        switch (below(5)) {
            case 0:
                return edges[below(std::size(edges))];
            case 1:
                return mtu * below(5) + below(3) + (mtu > 0 ? 0 : 1);
            case 2:
                return below(64);
            case 3:
                return below(4096);
            default:
                return below(kMost - 4096);
        }
    }

    void post_receive(Side& side) {
        const std::size_t area = side.inbox + side.next_receive % (2 * options_.window) * kArea;
        const Layout layout(area + kGuard + below(64), kMost, 1 + below(kPieces));
        side.receives.emplace_back(side.next_receive, layout);
        side.end->receive(side.next_receive++, layout.sges(buffer_));
        // The background is written when the message that comes is known, see expect().
    }

    /// What `size` bytes occupy of a layout: only that, and a guard behind it, is prepared and checked.
    static Layout front(const Layout& layout, std::size_t size) {
        Layout part = layout;
        part.shorten(size);
        return part;
    }

    void post_some(Side& side) {
        std::vector<SendRequest> requests;
        const std::size_t count = 1 + below(std::min<std::size_t>(4, options_.window - side.posted.size()));
        for (std::size_t i = 0; i < count; ++i) {
            requests.push_back(random_request(side));
        }
        side.end->post(std::move(requests));
    }

    SendRequest random_request(Side& side) {
        static const ibv_wr_opcode opcodes[] = {IBV_WR_SEND,
                                                IBV_WR_SEND_WITH_IMM,
                                                IBV_WR_RDMA_WRITE,
                                                IBV_WR_RDMA_WRITE_WITH_IMM,
                                                IBV_WR_RDMA_READ,
                                                IBV_WR_ATOMIC_CMP_AND_SWP,
                                                IBV_WR_ATOMIC_FETCH_AND_ADD,
                                                IBV_WR_RDMA_WRITE,
                                                IBV_WR_RDMA_READ,
                                                IBV_WR_SEND};
        ibv_wr_opcode opcode = opcodes[below(std::size(opcodes))];
        // As many messages may be under way as there are receives; more would only make them wait.
        if (side.peer->expected.size() >= 2 * options_.window &&
            (opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM ||
             opcode == IBV_WR_RDMA_WRITE_WITH_IMM)) {
            opcode = IBV_WR_RDMA_WRITE;
        }
        Side::Posted item{side.next_id++, opcode, false, fresh_seed(), random_size(), 0, {}, 0};
        item.slot = item.id % options_.window;
        SendRequest request(opcode, item.id);
        // Fewer than half of a window, so that there is always room for the signalled one that ends the wait.
        if (side.unsignalled + 1 < options_.window / 2 && below(4) != 0) {
            request.unsignalled();
            ++side.unsignalled;
        } else {
            item.signalled = true;
            side.unsignalled = 0;
        }
        if (below(8) == 0) {
            request.flags(IBV_SEND_FENCE);
        }
        const std::size_t source_area = side.sources + item.slot * kArea;
        const std::size_t target_area = side.targets + item.slot * kArea;
        switch (opcode) {
            case IBV_WR_ATOMIC_CMP_AND_SWP:
            case IBV_WR_ATOMIC_FETCH_AND_ADD:
                prepare_atomic(side, item, request, target_area);
                break;
            case IBV_WR_RDMA_READ: {
                // The peer's memory is one buffer with ours; its side of a READ is our own source area.
                const Layout from(source_area + kGuard + below(64), item.size);
                item.target.emplace(target_area + kGuard + below(64), item.size, 1 + below(kPieces));
                fill(buffer_, from, item.seed);
                fill_background(buffer_, *item.target);
                request.local(item.target->sges(buffer_)).remote(buffer_.va(from.begin()), buffer_.rkey());
                break;
            }
            default:
                prepare_outbound(side, item, request, source_area, target_area);
        }
        bytes_ += item.size;
        ++requests_;
        side.posted.push_back(item);
        return request;
    }

    void prepare_atomic(Side& side, Side::Posted& item, SendRequest& request, std::size_t target_area) {
        item.size = 8;
        const std::size_t answer = target_area + kGuard + below(64);
        item.target.emplace(answer, 8);
        fill_background(buffer_, *item.target);
        request.local({buffer_.sge(answer, 8)});
        const std::uint64_t words = buffer_.va(side.peer->words);
        if (item.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
            item.answer = side.add_word;
            const std::uint64_t add = random_();
            side.add_word += add;
            request.fetch_add(words + 8, buffer_.rkey(), add);
        } else {
            item.answer = side.swap_word;
            const bool hits = below(3) != 0;
            const std::uint64_t next = random_();
            request.compare_swap(words, buffer_.rkey(), hits ? side.swap_word : ~side.swap_word, next);
            side.swap_word = hits ? next : side.swap_word;
        }
    }

    void prepare_outbound(Side& side, Side::Posted& item, SendRequest& request, std::size_t source_area,
                          std::size_t target_area) {
        const Layout from(source_area + kGuard + below(64), item.size, 1 + below(kPieces));
        fill(buffer_, from, item.seed);
        request.local(from.sges(buffer_));
        if (item.size <= kInline && below(2) == 0) {
            request.flags(IBV_SEND_INLINE);
        }
        const auto immediate = static_cast<std::uint32_t>(random_());
        if (item.opcode == IBV_WR_RDMA_WRITE || item.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
            item.target.emplace(target_area + kGuard + below(64), item.size);
            fill_background(buffer_, *item.target);
            request.remote(buffer_.va(item.target->begin()), buffer_.rkey());
        }
        if (item.opcode == IBV_WR_SEND_WITH_IMM || item.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
            request.immediate(immediate);
        }
        if (item.opcode != IBV_WR_RDMA_WRITE) {
            expect(*side.peer, {item.opcode, item.seed, item.size, immediate});
        }
    }

    /// Receives are used in order, so the one that the message will get is known.
    void expect(Side& side, const Side::Expected& message) {
        const std::size_t index = side.expected.size();
        if (index < side.receives.size()) {
            fill_background(buffer_, front(side.receives[index].second, message.size));
        }
        side.expected.push_back(message);
        ++messages_;
    }

    bool complete_some() {
        ibv_wc completions[16];
        const int count = ibv_poll_cq(cq_.get(), 16, completions);
        require(count >= 0, "ibv_poll_cq failed with %d", count);
        for (int i = 0; i < count; ++i) {
            const ibv_wc& completion = completions[i];
            require(completion.status == IBV_WC_SUCCESS, "%s %" PRIu64 " of QP %u failed: %s",
                    (completion.wr_id & kReceive) != 0 ? "receive" : "send", completion.wr_id & ~kReceive,
                    completion.qp_num, ibv_wc_status_str(completion.status));
            const auto found = by_qpn_.find(completion.qp_num);
            require(found != by_qpn_.end(), "a completion of an unknown QP %u", completion.qp_num);
            if ((completion.wr_id & kReceive) != 0) {
                received(*found->second, completion);
            } else {
                sent(*found->second, completion);
            }
        }
        return count > 0;
    }

    void received(Side& side, const ibv_wc& completion) {
        require(!side.receives.empty() && completion.wr_id == (side.receives.front().first | kReceive),
                "receive %" PRIu64 " completed out of turn", completion.wr_id & ~kReceive);
        require(!side.expected.empty(), "a message nobody has sent");
        const Side::Expected message = side.expected.front();
        const Layout layout = side.receives.front().second;
        side.expected.pop_front();
        side.receives.pop_front();
        require(completion.byte_len == message.size, "%u bytes received, %zu sent", completion.byte_len,
                message.size);
        const bool immediate = message.opcode != IBV_WR_SEND;
        require(((completion.wc_flags & IBV_WC_WITH_IMM) != 0) == immediate, "flags 0x%x",
                completion.wc_flags);
        require(!immediate || be32toh(completion.imm_data) == message.immediate, "other immediate data");
        if (message.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
            verify(buffer_, front(layout, message.size), 0, 0);
        } else {
            verify(buffer_, front(layout, message.size), message.seed, message.size);
        }
        post_receive(side);
        // The message that will get this receive may have been sent already, to wait for it. That cannot
        // happen while no more messages are under way than there are receives.
    }

    void sent(Side& side, const ibv_wc& completion) {
        while (true) {
            require(!side.posted.empty(), "send %" PRIu64 " completed, but nothing was posted",
                    completion.wr_id);
            const Side::Posted item = side.posted.front();
            side.posted.pop_front();
            require(item.id == completion.wr_id || !item.signalled,
                    "send %" PRIu64 " completed before %" PRIu64, completion.wr_id, item.id);
            require(item.id != completion.wr_id || item.signalled, "send %" PRIu64 " was unsignalled",
                    item.id);
            check(item);
            if (item.id == completion.wr_id) {
                return;
            }
        }
    }

    void check(const Side::Posted& item) {
        if (item.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || item.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
            std::uint64_t answer = 0;
            memcpy(&answer, buffer_.at(item.target->begin()), 8);
            require(answer == item.answer, "an atomic (opcode %d) answered 0x%" PRIx64 ", not 0x%" PRIx64,
                    item.opcode, answer, item.answer);
        } else if (item.target) {
            verify(buffer_, *item.target, item.seed, item.size);
        }
    }

    /// No new requests: makes sure that what is unsignalled is found out about. False when all is done.
    bool finish_tails() {
        bool busy = false;
        for (Side& side : sides_) {
            if (!side.posted.empty() && !side.posted.back().signalled) {
                Side::Posted item{side.next_id++, IBV_WR_RDMA_WRITE, true, 0, 0, 0, {}, 0};
                side.end->post(
                    SendRequest(IBV_WR_RDMA_WRITE, item.id).remote(buffer_.va(side.words), buffer_.rkey()));
                side.posted.push_back(item);
            }
            busy = busy || !side.posted.empty() || !side.expected.empty();
        }
        return busy;
    }

    void check_words() {
        for (const Side& side : sides_) {
            std::uint64_t words[2];
            memcpy(words, buffer_.at(side.peer->words), sizeof words);
            require(words[0] == side.swap_word && words[1] == side.add_word,
                    "an atomic was lost or done twice");
        }
    }

    const Device& device_;
    StressOptions options_;
    std::mt19937_64 random_;
    Owned<ibv_cq> cq_;
    std::vector<Side> sides_;
    Buffer buffer_;
    std::map<std::uint32_t, Side*> by_qpn_;
    std::uint64_t requests_ = 0;
    std::uint64_t bytes_ = 0;
    std::uint64_t messages_ = 0;
};

}  // namespace

std::string run_stress(const Device& device, const StressOptions& options) {
    return Stress(device, options).run();
}
