// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "device.hpp"

/// Work request ids with this bit belong to receives: a failed completion tells nothing else about its queue.
constexpr std::uint64_t kReceive = std::uint64_t{1} << 63U;

/// One send work request with room for its SGEs.
struct SendRequest {
    SendRequest(ibv_wr_opcode opcode, std::uint64_t id);

    SendRequest& local(const std::vector<ibv_sge>& pieces);
    SendRequest& remote(std::uint64_t va, std::uint32_t rkey);
    SendRequest& flags(unsigned more);
    SendRequest& unsignalled();
    SendRequest& immediate(std::uint32_t value);
    SendRequest& invalidate(std::uint32_t rkey);
    SendRequest& compare_swap(std::uint64_t va, std::uint32_t rkey, std::uint64_t compare,
                              std::uint64_t swap);
    SendRequest& fetch_add(std::uint64_t va, std::uint32_t rkey, std::uint64_t add);
    SendRequest& datagram(ibv_ah* address, std::uint32_t qpn, std::uint32_t qkey);
    SendRequest& bind(ibv_mw* window, std::uint32_t new_rkey, ibv_mr* region, std::uint64_t va,
                      std::uint64_t length, unsigned access);

    ibv_send_wr request{};
    std::vector<ibv_sge> pieces;
};

struct EndpointOptions {
    ibv_qp_type type = IBV_QPT_RC;
    ibv_pd* pd = nullptr;  ///< null: the device's own
    ibv_cq* cq = nullptr;  ///< null: an own one
    std::uint32_t send_depth = 64;
    std::uint32_t receive_depth = 64;
    std::uint32_t sges = 8;
    std::uint32_t inline_bytes = 0;
    bool signal_all = false;
    bool extended = false;  ///< for ibv_wr_*(); Skip when the library has no such queue pairs
    bool events = false;    ///< wait for completions by events instead of polling
    int access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    int gid_index = -1;             ///< negative: the device's choice
    std::optional<ibv_gid> remote;  ///< where the other end is, if not on the same device
    std::size_t mtu = 0;            ///< 0: the port's
    // Generous, because an emulated guest may be held up for long.
    std::uint8_t timeout = 17;  ///< 4.096 us << 17 = 0.54 s
    std::uint8_t retries = 7;
    std::uint8_t rnr_retries = 7;
    std::uint8_t rnr_timer = 1;          ///< 0.01 ms
    std::uint32_t first_psn = 0xfffff0;  ///< so that numbers wrap early
};

/// A queue pair with its completion queue, and ways to wait that never wait for ever.
class Endpoint {
  public:
    Endpoint(const Device& device, const EndpointOptions& options);

    /// RC: to RTS, with `qpn` at the other end.
    void connect(std::uint32_t qpn);
    /// UD: to RTS.
    void start(std::uint32_t qkey);
    void to_init(std::uint32_t qkey = 0);
    void to_rtr(std::uint32_t qpn);
    void to_rts();
    void to_state(ibv_qp_state state);
    [[nodiscard]] ibv_qp_state query_state() const;

    void post(SendRequest request);
    /// All with one call; ids and flags are as given.
    void post(std::vector<SendRequest> requests);
    /// The errno value with which the library refuses it, or 0.
    int try_post(SendRequest request);
    /// Adds kReceive to the id.
    void receive(std::uint64_t id, const std::vector<ibv_sge>& pieces = {});

    /// The next completion of the send (or receive) queue, whatever its status.
    ibv_wc wait_send();
    ibv_wc wait_receive();
    /// The same, which must be a success.
    ibv_wc finish_send(std::uint64_t id, ibv_wc_opcode opcode);
    ibv_wc finish_receive(std::uint64_t id, std::size_t bytes, ibv_wc_opcode opcode = IBV_WC_RECV);
    /// The same, which must have this status.
    void fail_send(std::uint64_t id, ibv_wc_status status);
    void fail_receive(std::uint64_t id, ibv_wc_status status);
    /// Nothing may complete for `milliseconds`.
    void expect_silence(int milliseconds);

    /// One look at the completion queue.
    std::optional<ibv_wc> poll();
    /// Sleeps until the completion channel has an event; false after `milliseconds`.
    bool wait_event(int milliseconds);
    void arm(bool solicited_only);

    [[nodiscard]] std::uint32_t qpn() const { return qp_->qp_num; }
    [[nodiscard]] ibv_qp* qp() const { return qp_.get(); }
    [[nodiscard]] const ibv_qp_cap& cap() const { return cap_; }
    [[nodiscard]] const Device& device() const { return device_; }
    [[nodiscard]] std::uint64_t next_id() { return ++last_id_; }

    /// How long wait_*() wait.
    static int patience_ms;

  private:
    ibv_wc wait(bool receive);
    std::optional<ibv_wc> next_completion();
    void take_event();
    void modify(ibv_qp_attr& attributes, int mask, const char* what);

    const Device& device_;
    EndpointOptions options_;
    int gid_index_;
    Owned<ibv_comp_channel> channel_;
    Owned<ibv_cq> own_cq_;
    ibv_cq* cq_;
    Owned<ibv_qp> qp_;
    ibv_qp_cap cap_{};
    std::deque<ibv_wc> early_;  ///< completions of the queue nobody waits for yet
    std::uint64_t last_id_ = 0;
};

/// Two connected RC endpoints of the same device.
struct Pair {
    Pair(const Device& device, const EndpointOptions& options) : Pair(device, options, options) {}
    Pair(const Device& device, const EndpointOptions& first, const EndpointOptions& second);
    void connect();
    Endpoint a;
    Endpoint b;
};

/// A memory window; `Skip` when the device has none of this type.
class Window {
  public:
    Window(const Device& device, ibv_mw_type type, ibv_pd* pd = nullptr);
    /// Binds (type 1: or re-binds, or with length 0 unbinds) on `by` and waits for the completion, which must
    /// have `status`.
    void bind(Endpoint& by, const Buffer& buffer, std::size_t offset, std::size_t length, unsigned access,
              ibv_wc_status status = IBV_WC_SUCCESS);
    [[nodiscard]] std::uint32_t rkey() const { return window_->rkey; }

  private:
    Owned<ibv_mw> window_;
};
