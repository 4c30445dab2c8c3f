// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "nvmeof/dh_exchange.hpp"
#include "nvmeof/dhchap_secret.hpp"
#include "nvmeof/work_queue.hpp"
#include "wire/nvme_auth.hpp"

namespace ernic::nvmeof {

/// The controller's side of the DH-HMAC-CHAP conversations on one queue (Base Specification 8.13.5). The host
/// sends (receive()) and fetches (next()) in turn. Thread: device, except calculate().
class DhChap {
  public:
    /// A message is never longer.
    static constexpr std::size_t kMaxMessage = 1280;

    /// `group` is the one that the host must offer.
    DhChap(DhChapSecrets::Keys keys, std::uint8_t group, std::string host_nqn, std::string subsystem_nqn)
        : keys_(std::move(keys)),
          group_(group),
          host_(std::move(host_nqn)),
          subsystem_(std::move(subsystem_nqn)) {}

    /// Has the library load what it loads lazily: a sandbox may forbid that later. Thread: any.
    static void warm_up(bool with_group);

    /// Whether the host has proved who it is.
    [[nodiscard]] bool authenticated() const { return authenticated_; }
    /// The conversation has come to a bad end, and the host has been told: there is no second try.
    [[nodiscard]] bool failed() const { return step_ == Step::Over && !authenticated_; }

    /// A message of the host. True: calculate() is due, and calculated() after it; messages that come before
    /// that are out of turn.
    [[nodiscard]] bool receive(Bytes message);
    /// What takes a long time. Thread: any; the other functions may be called meanwhile.
    void calculate();
    void calculated();
    /// Nobody needs the outcome any more: calculate() need not begin.
    void abandon() { abandoned_ = true; }
    /// Commands that wait for calculated(), after which their owner goes on with them.
    WorkQueue waiting;
    /// The message that is due to the host; empty when there is none, or it is longer than `room` and stays
    /// due.
    [[nodiscard]] Digest next(std::size_t room);

  private:
    enum class Step : std::uint8_t {
        Negotiate,
        MakingValue,
        Challenge,
        Reply,
        MakingSecret,
        Success1,
        Success2,
        Failure1,
        Over
    };
    /// What calculate() works on.
    struct Calculation {
        std::unique_ptr<DhExchange> exchange;
        Digest host_value;
        Digest secret;
    };
    /// What the host has answered.
    struct Answer {
        Digest response;
        /// Empty: we need not prove ourselves.
        Digest challenge;
        std::uint32_t sequence = 0;
    };

    void negotiate(Bytes message);
    /// True as for receive().
    [[nodiscard]] bool take_reply(Bytes message);
    void verify();
    void fail(wire::nvme::auth::Failure why);
    [[nodiscard]] Digest response(Bytes key, const Digest& challenge, std::uint32_t sequence,
                                  std::string_view role, std::string_view first,
                                  std::string_view second) const;
    [[nodiscard]] wire::nvme::auth::Header header(std::uint8_t type, std::uint8_t id) const;
    [[nodiscard]] Digest due_message() const;
    [[nodiscard]] Digest challenge_message() const;
    [[nodiscard]] Digest failure_message() const;
    [[nodiscard]] Digest success_message() const;

    DhChapSecrets::Keys keys_;
    std::uint8_t group_;
    std::string host_;
    std::string subsystem_;
    Step step_ = Step::Negotiate;
    bool authenticated_ = false;
    std::uint16_t transaction_ = 0;
    std::uint8_t hash_ = wire::nvme::auth::kSha256;
    Digest challenge_;
    std::uint32_t sequence_ = 0;
    Calculation calculation_;
    std::atomic<bool> abandoned_ = false;
    Answer answer_;
    /// Our response to the host's challenge, when it had one.
    Digest own_response_;
    wire::nvme::auth::Failure why_{};
};

}  // namespace ernic::nvmeof
