// SPDX-License-Identifier: MIT
#include "endpoint.hpp"

#include <arpa/inet.h>
#include <poll.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstring>
#include <utility>

#include "check.hpp"

namespace {

std::int64_t now_ms() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

/// Spinning takes a processor from the device (or its emulator), so only the first looks are spent on it.
void pause_between_looks(unsigned looks) {
    if (looks < 50) {
        sched_yield();
    } else {
        usleep(50);
    }
}

std::uint8_t mtu_code(std::size_t bytes) {
    std::uint8_t code = IBV_MTU_256;
    while ((std::size_t{128} << code) < bytes) {
        ++code;
    }
    return code;
}

}  // namespace

int Endpoint::patience_ms = 20000;

SendRequest::SendRequest(ibv_wr_opcode opcode, std::uint64_t id) {
    request.opcode = opcode;
    request.wr_id = id;
    request.send_flags = IBV_SEND_SIGNALED;
}

SendRequest& SendRequest::local(const std::vector<ibv_sge>& from) {
    pieces = from;
    return *this;
}

SendRequest& SendRequest::remote(std::uint64_t va, std::uint32_t rkey) {
    request.wr.rdma.remote_addr = va;
    request.wr.rdma.rkey = rkey;
    return *this;
}

SendRequest& SendRequest::flags(unsigned more) {
    request.send_flags |= more;
    return *this;
}

SendRequest& SendRequest::unsignalled() {
    request.send_flags &= ~static_cast<unsigned>(IBV_SEND_SIGNALED);
    return *this;
}

SendRequest& SendRequest::immediate(std::uint32_t value) {
    request.imm_data = htonl(value);
    return *this;
}

SendRequest& SendRequest::invalidate(std::uint32_t rkey) {
    request.invalidate_rkey = rkey;
    return *this;
}

SendRequest& SendRequest::compare_swap(std::uint64_t va, std::uint32_t rkey, std::uint64_t compare,
                                       std::uint64_t swap) {
    request.wr.atomic.remote_addr = va;
    request.wr.atomic.rkey = rkey;
    request.wr.atomic.compare_add = compare;
    request.wr.atomic.swap = swap;
    return *this;
}

SendRequest& SendRequest::fetch_add(std::uint64_t va, std::uint32_t rkey, std::uint64_t add) {
    return compare_swap(va, rkey, add, 0);
}

SendRequest& SendRequest::datagram(ibv_ah* address, std::uint32_t qpn, std::uint32_t qkey) {
    request.wr.ud.ah = address;
    request.wr.ud.remote_qpn = qpn;
    request.wr.ud.remote_qkey = qkey;
    return *this;
}

SendRequest& SendRequest::bind(ibv_mw* window, std::uint32_t new_rkey, ibv_mr* region, std::uint64_t va,
                               std::uint64_t length, unsigned access) {
    request.bind_mw.mw = window;
    request.bind_mw.rkey = new_rkey;
    request.bind_mw.bind_info = {region, va, length, access};
    return *this;
}

Endpoint::Endpoint(const Device& device, const EndpointOptions& options)
    : device_(device),
      options_(options),
      gid_index_(options.gid_index < 0 ? device.gid_index() : options.gid_index),
      cq_(options.cq) {
    if (options.events) {
        channel_.reset(ibv_create_comp_channel(device.context()));
        require(channel_ != nullptr, "ibv_create_comp_channel: %s", strerror(errno));
    }
    if (cq_ == nullptr) {
        const auto entries = static_cast<int>(options.send_depth + options.receive_depth);
        own_cq_.reset(ibv_create_cq(device.context(), entries, nullptr, channel_.get(), 0));
        require(own_cq_ != nullptr, "ibv_create_cq: %s", strerror(errno));
        cq_ = own_cq_.get();
    }
    ibv_qp_init_attr_ex attributes{};
    attributes.send_cq = attributes.recv_cq = cq_;
    attributes.qp_type = options.type;
    attributes.sq_sig_all = options.signal_all ? 1 : 0;
    attributes.cap = {options.send_depth, options.receive_depth, options.sges, options.sges,
                      options.inline_bytes};
    attributes.comp_mask = IBV_QP_INIT_ATTR_PD;
    attributes.pd = options.pd != nullptr ? options.pd : device.pd();
    if (options.extended) {
        attributes.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        attributes.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
                                    IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                                    IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                                    IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
    }
    qp_.reset(ibv_create_qp_ex(device.context(), &attributes));
    if (qp_ == nullptr && options.extended && (errno == EOPNOTSUPP || errno == EINVAL)) {
        skip("no queue pairs for ibv_wr_*(): %s", strerror(errno));
    }
    require(qp_ != nullptr, "ibv_create_qp_ex: %s", strerror(errno));
    cap_ = attributes.cap;
}

void Endpoint::modify(ibv_qp_attr& attributes, int mask, const char* what) {
    require_ok(ibv_modify_qp(qp(), &attributes, mask), what);
}

void Endpoint::to_init(std::uint32_t qkey) {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = kPort;
    attributes.qp_access_flags = static_cast<unsigned>(options_.access);
    attributes.qkey = qkey;
    modify(attributes,
           IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
               (options_.type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS),
           "ibv_modify_qp to INIT");
}

void Endpoint::to_rtr(std::uint32_t qpn) {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_RTR;
    attributes.path_mtu = static_cast<ibv_mtu>(mtu_code(options_.mtu != 0 ? options_.mtu : device_.mtu()));
    attributes.dest_qp_num = qpn;
    attributes.rq_psn = options_.first_psn;
    attributes.max_dest_rd_atomic =
        static_cast<std::uint8_t>(std::min(16, device_.attributes().max_qp_rd_atom));
    attributes.min_rnr_timer = options_.rnr_timer;
    attributes.ah_attr.is_global = 1;
    attributes.ah_attr.grh.dgid = options_.remote ? *options_.remote : device_.gid(gid_index_);
    attributes.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(gid_index_);
    attributes.ah_attr.grh.hop_limit = 64;
    attributes.ah_attr.port_num = kPort;
    modify(attributes,
           options_.type == IBV_QPT_UD ? IBV_QP_STATE
                                       : IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
           "ibv_modify_qp to RTR");
}

void Endpoint::to_rts() {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_RTS;
    attributes.timeout = options_.timeout;
    attributes.retry_cnt = options_.retries;
    attributes.rnr_retry = options_.rnr_retries;
    attributes.sq_psn = options_.first_psn;
    attributes.max_rd_atomic =
        static_cast<std::uint8_t>(std::min(16, device_.attributes().max_qp_init_rd_atom));
    modify(attributes,
           options_.type == IBV_QPT_UD ? IBV_QP_STATE | IBV_QP_SQ_PSN
                                       : IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                             IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
           "ibv_modify_qp to RTS");
}

void Endpoint::connect(std::uint32_t qpn) {
    to_init();
    to_rtr(qpn);
    to_rts();
}

void Endpoint::start(std::uint32_t qkey) {
    to_init(qkey);
    to_rtr(0);
    to_rts();
}

void Endpoint::to_state(ibv_qp_state state) {
    ibv_qp_attr attributes{};
    attributes.qp_state = state;
    modify(attributes, IBV_QP_STATE, "ibv_modify_qp");
}

ibv_qp_state Endpoint::query_state() const {
    ibv_qp_attr attributes{};
    ibv_qp_init_attr initial{};
    require_ok(ibv_query_qp(qp(), &attributes, IBV_QP_STATE, &initial), "ibv_query_qp");
    return attributes.qp_state;
}

int Endpoint::try_post(SendRequest request) {
    request.request.sg_list = request.pieces.data();
    request.request.num_sge = static_cast<int>(request.pieces.size());
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(qp(), &request.request, &bad);
}

void Endpoint::post(SendRequest request) {
    require_ok(try_post(std::move(request)), "ibv_post_send");
}

void Endpoint::post(std::vector<SendRequest> requests) {
    for (std::size_t i = 0; i < requests.size(); ++i) {
        requests[i].request.sg_list = requests[i].pieces.data();
        requests[i].request.num_sge = static_cast<int>(requests[i].pieces.size());
        requests[i].request.next = i + 1 < requests.size() ? &requests[i + 1].request : nullptr;
    }
    ibv_send_wr* bad = nullptr;
    require_ok(ibv_post_send(qp(), &requests.front().request, &bad), "ibv_post_send of several");
}

void Endpoint::receive(std::uint64_t id, const std::vector<ibv_sge>& pieces) {
    std::vector<ibv_sge> list = pieces;
    ibv_recv_wr request{};
    request.wr_id = id | kReceive;
    request.sg_list = list.data();
    request.num_sge = static_cast<int>(list.size());
    ibv_recv_wr* bad = nullptr;
    require_ok(ibv_post_recv(qp(), &request, &bad), "ibv_post_recv");
}

std::optional<ibv_wc> Endpoint::poll() {
    ibv_wc completion{};
    const int count = ibv_poll_cq(cq_, 1, &completion);
    require(count >= 0, "ibv_poll_cq failed with %d", count);
    return count == 0 ? std::nullopt : std::optional(completion);
}

void Endpoint::arm(bool solicited_only) {
    require_ok(ibv_req_notify_cq(cq_, solicited_only ? 1 : 0), "ibv_req_notify_cq");
}

void Endpoint::take_event() {
    ibv_cq* which = nullptr;
    void* context = nullptr;
    require_ok(ibv_get_cq_event(channel_.get(), &which, &context), "ibv_get_cq_event");
    ibv_ack_cq_events(which, 1);
    require(which == cq_, "an event of an unknown completion queue");
}

bool Endpoint::wait_event(int milliseconds) {
    pollfd waiting{channel_->fd, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, milliseconds);
    if (ready > 0) {
        take_event();
    }
    return ready > 0;
}

/// Nothing when none comes within the patience of the program.
std::optional<ibv_wc> Endpoint::next_completion() {
    const std::int64_t deadline = now_ms() + patience_ms;
    for (unsigned looks = 0; now_ms() < deadline; ++looks) {
        if (auto completion = poll()) {
            return completion;
        }
        if (channel_ == nullptr) {
            pause_between_looks(looks);
            continue;
        }
        // The second look is for what came before the queue was armed (and some providers only arm in it).
        arm(false);
        if (auto completion = poll()) {
            return completion;
        }
        if (!wait_event(patience_ms)) {
            require(!poll(), "there is a completion but there was no event for it");
            return std::nullopt;
        }
    }
    return std::nullopt;
}

ibv_wc Endpoint::wait(bool receive) {
    const auto wanted = [receive](const ibv_wc& completion) {
        return ((completion.wr_id & kReceive) != 0) == receive;
    };
    const auto found = std::find_if(early_.begin(), early_.end(), wanted);
    if (found != early_.end()) {
        const ibv_wc completion = *found;
        early_.erase(found);
        return completion;
    }
    while (auto completion = next_completion()) {
        require(completion->qp_num == qpn(), "a completion names QP %u, not %u", completion->qp_num, qpn());
        if (wanted(*completion)) {
            return *completion;
        }
        early_.push_back(*completion);
    }
    fail("no %s completed within %d ms", receive ? "receive" : "send", patience_ms);
}

ibv_wc Endpoint::wait_send() {
    return wait(false);
}
ibv_wc Endpoint::wait_receive() {
    return wait(true);
}

namespace {

void check(const ibv_wc& completion, std::uint64_t id, ibv_wc_status status) {
    const bool receive = (id & kReceive) != 0;
    require(completion.wr_id == id, "%s %" PRIu64 " completed (%s) where %" PRIu64 " should have",
            receive ? "receive" : "send", completion.wr_id & ~kReceive, ibv_wc_status_str(completion.status),
            id & ~kReceive);
    require(completion.status == status, "%s %" PRIu64 " ended as '%s' (vendor code %u), not as '%s'",
            receive ? "receive" : "send", id & ~kReceive, ibv_wc_status_str(completion.status),
            completion.vendor_err, ibv_wc_status_str(status));
}

}  // namespace

ibv_wc Endpoint::finish_send(std::uint64_t id, ibv_wc_opcode opcode) {
    const ibv_wc completion = wait_send();
    check(completion, id, IBV_WC_SUCCESS);
    require(completion.opcode == opcode, "a send completed with opcode %d, not %d", completion.opcode,
            opcode);
    return completion;
}

ibv_wc Endpoint::finish_receive(std::uint64_t id, std::size_t bytes, ibv_wc_opcode opcode) {
    const ibv_wc completion = wait_receive();
    check(completion, id | kReceive, IBV_WC_SUCCESS);
    require(completion.opcode == opcode, "a receive completed with opcode %d, not %d", completion.opcode,
            opcode);
    require(completion.byte_len == bytes, "a receive completed with %u bytes, not %zu", completion.byte_len,
            bytes);
    return completion;
}

void Endpoint::fail_send(std::uint64_t id, ibv_wc_status status) {
    check(wait_send(), id, status);
}
void Endpoint::fail_receive(std::uint64_t id, ibv_wc_status status) {
    check(wait_receive(), id | kReceive, status);
}

void Endpoint::expect_silence(int milliseconds) {
    const std::int64_t deadline = now_ms() + milliseconds;
    require(early_.empty(), "an unexpected completion of request %" PRIu64,
            early_.empty() ? 0 : early_[0].wr_id & ~kReceive);
    do {
        if (const auto completion = poll()) {
            fail("unexpected completion of %s %" PRIu64 " (%s)",
                 (completion->wr_id & kReceive) != 0 ? "receive" : "send", completion->wr_id & ~kReceive,
                 ibv_wc_status_str(completion->status));
        }
        usleep(1000);
    } while (now_ms() < deadline);
}

Pair::Pair(const Device& device, const EndpointOptions& first, const EndpointOptions& second)
    : a(device, first), b(device, second) {
    connect();
}

void Pair::connect() {
    a.to_init();
    b.to_init();
    a.to_rtr(b.qpn());
    b.to_rtr(a.qpn());
    a.to_rts();
    b.to_rts();
}

Window::Window(const Device& device, ibv_mw_type type, ibv_pd* pd)
    : window_(ibv_alloc_mw(pd != nullptr ? pd : device.pd(), type)) {
    if (window_ == nullptr) {
        skip("no memory windows of type %d: %s", type == IBV_MW_TYPE_1 ? 1 : 2, strerror(errno));
    }
}

void Window::bind(Endpoint& by, const Buffer& buffer, std::size_t offset, std::size_t length, unsigned access,
                  ibv_wc_status status) {
    const std::uint64_t id = by.next_id();
    if (window_->type == IBV_MW_TYPE_1) {
        ibv_mw_bind request{};
        request.wr_id = id;
        request.send_flags = IBV_SEND_SIGNALED;
        request.bind_info = {buffer.mr(), buffer.va(offset), length, access};
        require_ok(ibv_bind_mw(by.qp(), window_.get(), &request), "ibv_bind_mw");
    } else {
        const std::uint32_t rkey = ibv_inc_rkey(window_->rkey);
        by.post(SendRequest(IBV_WR_BIND_MW, id)
                    .bind(window_.get(), rkey, buffer.mr(), buffer.va(offset), length, access));
        window_->rkey = rkey;
    }
    if (status == IBV_WC_SUCCESS) {
        by.finish_send(id, IBV_WC_BIND_MW);
    } else {
        by.fail_send(id, status);
    }
}
