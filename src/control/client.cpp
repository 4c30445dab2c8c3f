// SPDX-License-Identifier: MIT
#include "control/client.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/fd_passing.hpp"
#include "control/limits.hpp"
#include "control/request.hpp"

namespace ernic::control {
namespace {

using nlohmann::json;

/// A socket's path or a capture's name need not be UTF-8, which is no reason to go without an answer.
std::string text_of(const json& value) {
    return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

void Counters::register_metrics(metrics::Registry& registry) const {
    registry.add({"control.clients", "clients", "Connections accepted on the control socket."}, clients);
    registry.add({"control.clients_refused", "clients",
                  "Connections closed at once because there were too many; high: somebody does not hang up."},
                 clients_refused);
    registry.add({"control.clients_stuck", "clients",
                  "Connections closed because the client asked and did not read the answers."},
                 clients_stuck);
    registry.add({"control.requests", "requests", "Requests received, malformed ones included."}, requests);
    registry.add({"control.requests_failed", "requests", "Requests answered with an error."},
                 requests_failed);
    registry.add({"control.malformed", "requests",
                  "Lines that were too long or no request; high: something else talks to this socket."},
                 malformed);
    registry.add({"control.stray_fds", "fds", "File descriptors that nobody had asked for and were closed."},
                 stray_fds);
}

Client::Client(UniqueFd socket, const Commands& commands, Counters& counters,
               std::function<void(Client& client)> wake)
    : socket_(std::move(socket)), commands_(commands), counters_(counters), wake_(std::move(wake)) {
    in_.reserve(kMaxLine);
}

Client::~Client() {
    if (later_) {
        later_->wake_ = nullptr;
    }
    if (fd_) {
        counters_.stray_fds.add();
    }
}

bool Client::wants_input() const {
    return !input_ended_ && !producer_ && !later_ && scanned_ == in_.size() &&
           out_.size() - sent_ < kMaxUnsent;
}

std::uint32_t Client::events() const {
    return (wants_input() ? std::uint32_t{EPOLLIN} : 0U) | (unsent() ? std::uint32_t{EPOLLOUT} : 0U);
}

void Client::hang_up() {
    deaf_ = true;
    producer_ = nullptr;
    if (later_) {
        later_->wake_ = nullptr;
        later_.reset();
    }
    out_.clear();
    sent_ = 0;
}

void Client::give_up() {
    hang_up();
    input_ended_ = true;
    in_.clear();
    scanned_ = 0;
}

Client::Progress Client::step() {
    if (out_.size() - sent_ >= kWorthSending && !flush() && out_.size() - sent_ >= kMaxUnsent) {
        return Progress::Waiting;
    }
    if (advance()) {
        return Progress::More;
    }
    const bool idle = !producer_ && !later_;
    return flush() && idle && input_ended_ ? Progress::Gone : Progress::Waiting;
}

/// One thing that can be done without waiting; false when there is none.
bool Client::advance() {
    if (later_) {
        if (!later_->result_) {
            return false;
        }
        const auto done = std::exchange(later_, nullptr);
        Result<json>& result = *done->result_;
        answer(later_id_, result ? Answer(std::move(result.value())) : Answer(result.error()), true);
        return true;
    }
    if (producer_) {
        if (!producer_(out_)) {
            producer_ = nullptr;
            end_answer();
        }
        return true;
    }
    if (const std::size_t end = in_.find('\n', scanned_); end != std::string::npos) {
        execute(end);
        return true;
    }
    scanned_ = in_.size();
    if (in_.size() >= kMaxLine) {
        refuse_long_line();
        return true;
    }
    return wants_input() && receive();
}

bool Client::receive() {
    const std::size_t size = in_.size();
    in_.resize(kMaxLine);
    alignas(cmsghdr) std::array<char, fd_control_size(kMaxFds)> control;
    iovec room{in_.data() + size, in_.size() - size};
    msghdr message{};
    message.msg_iov = &room;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    in_.resize(size + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0) {
        if (errno != EAGAIN && errno != EINTR) {
            input_ended_ = true;
            hang_up();
        }
        return false;
    }
    if (std::vector<UniqueFd> fds = received_fds(message); got > 0) {
        keep_fds(std::move(fds));
    }
    if ((message.msg_flags & MSG_CTRUNC) != 0) {
        counters_.stray_fds.add();  // closed by the kernel, at least one
    }
    if (got == 0) {
        input_ended_ = true;
        in_ += in_.empty() ? "" : "\n";  // people forget the last one
    }
    return got > 0 || !in_.empty();
}

// A read ends behind the bytes of a sendmsg() that had descriptors (net/unix/af_unix.c,
// unix_stream_read_generic), so they belong to the line that has the last byte read. There is never more than
// one line that is not complete, so one place is enough.
void Client::keep_fds(std::vector<UniqueFd> fds) {
    const std::size_t last = in_.size() - 1;
    for (UniqueFd& fd : fds) {
        if (fd_) {
            counters_.stray_fds.add();
        } else {
            fd_ = std::move(fd);
            fd_at_ = last;
        }
    }
}

/// The descriptor of the line that ends in front of in_[end].
UniqueFd Client::take_fd(std::size_t end) {
    if (fd_ && fd_at_ <= end) {
        return std::move(fd_);
    }
    fd_at_ -= fd_ ? end + 1 : 0;
    return {};
}

void Client::refuse_long_line() {
    if (!skipping_) {
        skipping_ = true;
        counters_.requests.add();
        counters_.malformed.add();
        fail(nullptr, "bad_request", fmt::format("a request has at most {} bytes", kMaxLine - 1));
    }
    in_.clear();
    scanned_ = 0;
    fd_at_ = 0;
}

void Client::execute(std::size_t end) {
    Call call;
    call.fd = take_fd(end);
    const std::string_view line(in_.data(), end);
    const bool is_rest = std::exchange(skipping_, false);
    const bool blank = line.find_first_not_of(" \t\r") == std::string_view::npos;
    if (!is_rest && !blank) {
        Request request = parse_request(line);
        counters_.requests.add();
        if (!request.problem.empty()) {
            counters_.malformed.add();
            fail(request.id, "bad_request", request.problem);
        } else {
            call.arguments = std::move(request.arguments);
            answer(request.id, commands_.run(request.command, call), commands_.known(request.command));
        }
    }
    if (call.fd) {
        counters_.stray_fds.add();
    }
    in_.erase(0, end + 1);
    scanned_ = 0;
}

void Client::answer(const json& id, Answer answer, bool known) {
    if (const auto* error = std::get_if<Error>(&answer)) {
        fail(id, known ? word_of(error->code) : "unknown_command", error->message);
        return;
    }
    if (deaf_) {
        return;
    }
    if (auto* later = std::get_if<std::shared_ptr<Later>>(&answer)) {
        later_ = std::move(*later);
        later_->wake_ = [this] { wake_(*this); };
        later_id_ = id;
        return;
    }
    begin_answer(id);
    if (auto* producer = std::get_if<Producer>(&answer)) {
        producer_ = std::move(*producer);
        return;
    }
    out_ += text_of(std::get<json>(answer));
    end_answer();
}

void Client::begin_answer(const json& id) {
    out_ += fmt::format(R"({{"id":{},"ok":true,"result":)", text_of(id));
}

void Client::end_answer() {
    out_ += "}\n";
}

void Client::fail(const json& id, std::string_view code, std::string_view message) {
    counters_.requests_failed.add();
    if (!deaf_) {
        out_ += text_of({{"id", id}, {"ok", false}, {"error", {{"code", code}, {"message", message}}}});
        out_ += '\n';
    }
}

bool Client::flush() {
    while (unsent()) {
        const ssize_t sent =
            ::send(socket_.get(), out_.data() + sent_, out_.size() - sent_, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent >= 0) {
            sent_ += static_cast<std::size_t>(sent);
            sent_total_ += static_cast<std::uint64_t>(sent);
        } else if (errno == EAGAIN) {
            break;
        } else if (errno != EINTR) {
            hang_up();
        }
    }
    if (!unsent()) {
        out_.clear();
        sent_ = 0;
        return true;
    }
    if (sent_ >= kMaxUnsent) {
        out_.erase(0, sent_);
        sent_ = 0;
    }
    return false;
}

}  // namespace ernic::control
