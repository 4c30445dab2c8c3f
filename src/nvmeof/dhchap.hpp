// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

#include "nvmeof/dhchap_secret.hpp"
#include "wire/nvme_auth.hpp"

namespace ernic::nvmeof {

/// The controller's side of one DH-HMAC-CHAP conversation (Base Specification 8.13.5), with the null group.
/// The host sends (receive()) and fetches (next()) in turn. Thread: device.
class DhChap {
  public:
    /// A message is never longer.
    static constexpr std::size_t kMaxMessage = 256;

    DhChap(DhChapSecrets::Keys keys, std::string host_nqn, std::string subsystem_nqn)
        : keys_(std::move(keys)), host_(std::move(host_nqn)), subsystem_(std::move(subsystem_nqn)) {}

    /// Has the library load what it loads lazily: a sandbox may forbid that later. Thread: any.
    static void warm_up();

    /// Whether the host has proved who it is.
    [[nodiscard]] bool authenticated() const { return authenticated_; }
    /// The conversation has come to a bad end, and the host has been told: there is no second try.
    [[nodiscard]] bool failed() const { return step_ == Step::Over && !authenticated_; }

    /// A message of the host.
    void receive(Bytes message);
    /// The message that is due to the host; empty when there is none.
    [[nodiscard]] Digest next();

  private:
    enum class Step : std::uint8_t { Negotiate, Challenge, Reply, Success1, Success2, Failure1, Over };

    void negotiate(Bytes message);
    void verify(Bytes message);
    void fail(wire::nvme::auth::Failure why);
    [[nodiscard]] Digest response(Bytes key, Bytes challenge, std::uint32_t sequence, std::string_view role,
                                  std::string_view first, std::string_view second) const;
    [[nodiscard]] wire::nvme::auth::Header header(std::uint8_t type, std::uint8_t id) const;
    [[nodiscard]] Digest challenge_message() const;
    [[nodiscard]] Digest success_message() const;

    DhChapSecrets::Keys keys_;
    std::string host_;
    std::string subsystem_;
    Step step_ = Step::Negotiate;
    bool authenticated_ = false;
    std::uint16_t transaction_ = 0;
    std::uint8_t hash_ = wire::nvme::auth::kSha256;
    Digest challenge_;
    std::uint32_t sequence_ = 0;
    /// Our response to the host's challenge, when it had one.
    Digest own_response_;
    wire::nvme::auth::Failure why_{};
};

}  // namespace ernic::nvmeof
