// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/event_loop.hpp"
#include "base/fd.hpp"
#include "control/commands.hpp"
#include "metrics/registry.hpp"

namespace ernic::control {

/// Numbers of the control socket, kept for all clients together.
struct Counters {
    metrics::Counter clients;
    metrics::Counter clients_refused;
    metrics::Counter clients_stuck;
    metrics::Counter requests;
    metrics::Counter requests_failed;
    metrics::Counter malformed;
    metrics::Counter stray_fds;

    void register_metrics(metrics::Registry& registry) const;
};

/// One connection: lines in, lines out, one request after the other.
///
///     socket -> | lines not yet carried out | -> command -> | answer, unsent part | -> socket
///                         kMaxLine                                kMaxUnsent
///
/// Nothing is read while a request waits, and nothing is carried out while much is unsent, so a client costs
/// bounded memory whatever it does. Thread: device. Owns: the socket, descriptors that came, an unfinished
/// answer.
class Client {
  public:
    /// `wake` is called when step() may go on though nothing has happened on the socket. All references must
    /// outlive the client.
    Client(UniqueFd socket, const Commands& commands, Counters& counters,
           std::function<void(Client& client)> wake);
    ~Client();
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    enum class Progress : std::uint8_t {
        More,     ///< call again soon
        Waiting,  ///< for the socket (see events()) or for wake()
        Gone,     ///< nothing is left to do for this client
    };
    /// One piece of work of some tens of microseconds.
    Progress step();
    /// Sends what is ready. False when the socket is full.
    bool flush();

    /// What the socket has to be watched for.
    [[nodiscard]] std::uint32_t events() const;
    /// The other side has closed both directions: what it has asked for is still done, but nobody listens.
    void hang_up();
    [[nodiscard]] bool hung_up() const { return deaf_; }
    /// Nothing more is done for this client.
    void give_up();

    [[nodiscard]] int fd() const { return socket_.get(); }
    /// Bytes sent so far, to see whether the client reads.
    [[nodiscard]] std::uint64_t sent() const { return sent_total_; }
    [[nodiscard]] bool unsent() const { return sent_ < out_.size(); }

  private:
    bool advance();
    bool receive();
    void keep_fds(std::vector<UniqueFd> fds);
    [[nodiscard]] bool wants_input() const;
    /// Carries out the line that ends in front of in_[end].
    void execute(std::size_t end);
    void refuse_long_line();
    UniqueFd take_fd(std::size_t end);
    void answer(const nlohmann::json& id, Answer answer, bool known);
    void begin_answer(const nlohmann::json& id);
    void end_answer();
    void fail(const nlohmann::json& id, std::string_view code, std::string_view message);

    UniqueFd socket_;
    const Commands& commands_;
    Counters& counters_;
    std::function<void(Client& client)> wake_;

    std::string in_;
    /// Bytes of in_ already looked at for a line feed.
    std::size_t scanned_ = 0;
    /// The rest of a line that is too long is thrown away.
    bool skipping_ = false;
    /// The descriptor that came with the line that has in_[fd_at_].
    UniqueFd fd_;
    std::size_t fd_at_ = 0;

    std::string out_;
    std::size_t sent_ = 0;
    std::uint64_t sent_total_ = 0;
    Producer producer_;
    std::shared_ptr<Later> later_;
    nlohmann::json later_id_;

    bool input_ended_ = false;
    bool deaf_ = false;
};

}  // namespace ernic::control
