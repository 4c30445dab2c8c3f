// SPDX-License-Identifier: MIT
// Clients of the control socket that send anything in any pieces, attach descriptors, do not read, and leave.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>

#include "base/fd_passing.hpp"
#include "control/limits.hpp"
#include "control/server.hpp"
#include "fuzz/input.hpp"
#include "fuzz/socket_folder.hpp"

namespace ernic::fuzz {
namespace {

using control::Answer;
using control::Call;
using nlohmann::json;

/// One client and what it knows: requests it has sent at most, answers it has seen.
class Peer {
  public:
    [[nodiscard]] bool open() const { return socket_.valid(); }
    void connect() {
        socket_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::memcpy(address.sun_path, socket_path().data(), socket_path().size());
        require(::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0,
                "the server accepts");
        requests_ = 1;  // the last line needs no line feed
        answers_ = 0;
        text_.clear();
    }
    void close() { socket_.reset(); }
    void end_input() const { ::shutdown(socket_.get(), SHUT_WR); }

    void send(Bytes data, int fd) {
        const ssize_t sent = data.empty() ? 0 : send_with_fd(socket_.get(), data, fd);
        for (ssize_t i = 0; i < sent; ++i) {
            requests_ += data[static_cast<std::size_t>(i)] == std::byte{'\n'} ? 1U : 0U;
        }
    }

    /// Reads what has come and checks it.
    void read() {
        std::array<char, 65536> buffer{};
        ssize_t got = 0;
        while ((got = ::recv(socket_.get(), buffer.data(), buffer.size(), 0)) > 0) {
            text_.append(buffer.data(), static_cast<std::size_t>(got));
        }
        std::size_t end = 0;
        while ((end = text_.find('\n')) != std::string::npos) {
            const json answer = json::parse(text_.substr(0, end), nullptr, false);
            require(answer.is_object() && answer.contains("id") && answer.contains("ok"),
                    "an answer is one object");
            require(answer.contains(answer["ok"] == json(true) ? "result" : "error"),
                    "with a result or an error");
            require(++answers_ <= requests_, "no more answers than requests");
            text_.erase(0, end + 1);
        }
    }

  private:
    UniqueFd socket_;
    std::size_t requests_ = 0;
    std::size_t answers_ = 0;
    std::string text_;
};

class Target {
  public:
    explicit Target(Input input) : input_(input) {
        commands_.add("echo", {"a"}, [this](Call& call) -> Answer {
            count();
            return call.arguments;
        });
        commands_.add("take", {}, [this](Call& call) -> Answer {
            count();
            const UniqueFd taken = std::move(call.fd);
            return json(taken.valid());
        });
        commands_.add("long", {}, [this](Call&) -> Answer {
            count();
            return control::Producer([part = 0](std::string& out) mutable {
                out += part == 0 ? "[0" : ",1";
                out += part == 40 ? std::string(20000, ' ') + "]" : std::string(8000, ' ');
                return part++ < 40;
            });
        });
        commands_.add("later", {}, [this](Call&) -> Answer {
            count();
            later_ = std::make_shared<control::Later>();
            return later_;
        });
        commands_.add("fail", {"n"}, [this](Call& call) -> Answer {
            count();
            const auto number = call.number("n", 0, 5);
            return Error{number ? Errc::Io : number.error().code, "no"};
        });
        require(server_.listen({.path = socket_path()}).ok(), "the harness can listen");
    }

    void run() {
        while (!input_.empty()) {
            operation();
        }
        for (Peer& peer : peers_) {
            peer.close();
        }
        if (later_) {
            later_->answer(json(1));
        }
        for (int i = 0; i < 3000 && server_.clients() != 0; ++i) {
            round();
        }
        require(server_.clients() == 0, "a client that left is gone");
    }

  private:
    void count() { ++calls_; }

    void round() {
        calls_ = 0;
        loop_.run_once(false);
        clock_.advance(1);
        require(calls_ <= control::kStepsPerTurn, "a round has its share and no more");
    }

    void operation() {
        Peer& peer = peers_[input_.below(4)];
        if (!peer.open()) {
            peer.connect();
        }
        switch (input_.u8() % 10U) {
            case 0:
                peer.send(input_.bytes(input_.u16() % 2048U), -1);
                break;
            case 1:
            case 2: {  // a request, with a descriptor or without
                static constexpr std::array<const char*, 8> kWords = {"echo", "take", "long",    "later",
                                                                      "fail", "ecoh", "version", ""};
                const Bytes tail = input_.bytes(input_.u8());
                std::string line = std::string(R"({"id":1,"command":")") + input_.pick(kWords) + "\"";
                line.append(reinterpret_cast<const char*>(tail.data()), tail.size());
                line += "}\n";
                peer.send(std::as_bytes(std::span(line)), input_.flag() ? STDERR_FILENO : -1);
                break;
            }
            case 3: {  // far too much of one byte
                const std::string many(input_.u16(), static_cast<char>(input_.u8()));
                peer.send(std::as_bytes(std::span(many)), -1);
                break;
            }
            case 4:
                peer.send(input_.bytes(1), STDERR_FILENO);
                break;
            case 5:
                peer.close();
                break;
            case 6:
                peer.end_input();
                break;
            case 7:
                clock_.advance(Nanoseconds{input_.u8()} * 100'000'000U);
                break;
            case 8:
                if (later_) {
                    later_->answer(json(2));
                }
                break;
            default:
                peer.read();
                break;
        }
        for (int i = input_.u8() % 4; i > 0; --i) {
            round();
        }
    }

    Input input_;
    FakeClock clock_;
    EventLoop loop_{clock_};
    metrics::Registry registry_;
    control::Commands commands_;
    control::Server server_{loop_, registry_, log::Logger(log::null_sink(), ""), commands_};
    std::shared_ptr<control::Later> later_;
    std::array<Peer, 4> peers_;
    int calls_ = 0;
};

}  // namespace
}  // namespace ernic::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const int first_free = ernic::fuzz::free_descriptor();
    {
        ernic::fuzz::Target target(ernic::fuzz::Input(data, size));
        target.run();
    }
    ernic::fuzz::require(ernic::fuzz::free_descriptor() == first_free, "no descriptor leaks");
    return 0;
}
