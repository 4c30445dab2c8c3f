// SPDX-License-Identifier: MIT
#include "control/server.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "base/fd_passing.hpp"
#include "control/limits.hpp"
#include "metrics/report.hpp"

namespace ernic::control {
namespace {

using nlohmann::json;
using testing::HasSubstr;

/// The other end, non-blocking.
class Peer {
  public:
    explicit Peer(const std::string& path)
        : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::memcpy(address.sun_path, path.data(), path.size());
        EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    }
    /// Bytes that fitted into the socket.
    std::size_t send(std::string_view text, int fd = -1) const {
        const ssize_t sent = send_with_fd(socket_.get(), std::as_bytes(std::span(text)), fd);
        return sent < 0 ? 0 : static_cast<std::size_t>(sent);
    }
    /// What has come; "" also when nothing has. `closed()` tells whether more can come.
    std::string read() {
        std::string text;
        std::array<char, 65536> buffer{};
        ssize_t got = 0;
        while ((got = ::recv(socket_.get(), buffer.data(), buffer.size(), 0)) > 0) {
            text.append(buffer.data(), static_cast<std::size_t>(got));
        }
        closed_ = closed_ || got == 0 || errno != EAGAIN;
        return text;
    }
    [[nodiscard]] bool closed() const { return closed_; }
    [[nodiscard]] int fd() const { return socket_.get(); }
    void close() { socket_.reset(); }

  private:
    UniqueFd socket_;
    bool closed_ = false;
};

class ControlServer : public testing::Test {
  protected:
    ControlServer() {
        std::string pattern = (std::filesystem::temp_directory_path() / "ernic-control-XXXXXX").string();
        folder_ = ::mkdtemp(pattern.data());
        path_ = folder_ + "/socket";
        commands_.add("echo", {"text", "count"}, [this](Call& call) -> Answer {
            ++calls_;
            fd_ = std::move(call.fd);
            return call.arguments;
        });
        commands_.add("plain", {}, [this](Call&) -> Answer {
            ++calls_;
            return json{{"done", true}};
        });
        commands_.add("long", {}, [this](Call&) -> Answer {
            return Producer([this, part = 0](std::string& out) mutable {
                ++parts_;
                out += part == 0 ? "\"" : "";
                out += std::string(8192, 'x');
                out += ++part == 1000 ? "\"" : "";
                return part != 1000;
            });
        });
        commands_.add("later", {}, [this](Call&) -> Answer {
            later_ = std::make_shared<Later>();
            return later_;
        });
        commands_.add("fail", {}, [](Call&) -> Answer { return Error{Errc::NoSpace, "full"}; });
        EXPECT_TRUE(server_.listen({.path = path_}));
    }
    ~ControlServer() override { std::filesystem::remove_all(folder_); }

    void round() {
        loop_.run_once(false);
        clock_.advance(1);
    }
    void run(int rounds = 20) {
        for (int i = 0; i < rounds; ++i) {
            round();
        }
    }
    /// The answers to `text`, one per line.
    std::vector<json> ask(Peer& peer, std::string_view text, int fd = -1) {
        EXPECT_EQ(peer.send(text, fd), text.size());
        run();
        return lines(peer.read());
    }
    static std::vector<json> lines(const std::string& text) {
        std::vector<json> found;
        std::size_t begin = 0;
        for (std::size_t end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
            found.push_back(json::parse(text.substr(begin, end - begin)));
        }
        EXPECT_EQ(begin, text.size()) << "every answer ends with a line feed";
        return found;
    }
    std::uint64_t number(std::string_view name) const {
        return metrics::value_of(registry_, "control." + std::string(name)).value();
    }
    static int open_descriptors() {
        const auto all = std::filesystem::directory_iterator("/proc/self/fd");
        return static_cast<int>(std::distance(begin(all), end(all)));
    }

    std::string folder_;
    std::string path_;
    int calls_ = 0;
    int parts_ = 0;
    UniqueFd fd_;
    std::shared_ptr<Later> later_;
    FakeClock clock_;
    EventLoop loop_{clock_};
    metrics::Registry registry_;
    Commands commands_;
    Server server_{loop_, registry_, log::Logger(log::null_sink(), ""), commands_};
};

TEST_F(ControlServer, AnswersARequestWithItsId) {
    Peer peer(path_);
    EXPECT_EQ(ask(peer, R"({"id":7,"command":"echo","arguments":{"text":"hi"}})"
                        "\n"),
              (std::vector<json>{{{"id", 7}, {"ok", true}, {"result", {{"text", "hi"}}}}}));
    EXPECT_EQ(ask(peer, R"({"id":"a","command":"fail"})"
                        "\n"),
              (std::vector<json>{
                  {{"id", "a"}, {"ok", false}, {"error", {{"code", "no_space"}, {"message", "full"}}}}}));
    EXPECT_EQ(ask(peer, "{\"command\":\"plain\"}\r\n\n  \n").size(), 1U) << "blank lines are no requests";
}

TEST_F(ControlServer, RequestsMayComeTogetherOrInPieces) {
    Peer peer(path_);
    std::string text;
    for (int i = 0; i < 50; ++i) {
        text += R"({"id":)" + std::to_string(i) + R"(,"command":"plain"})" + "\n";
    }
    const auto together = ask(peer, text);
    ASSERT_EQ(together.size(), 50U);
    EXPECT_EQ(together[49]["id"], 49);
    for (const char letter : std::string("{\"id\":1,\"command\":\"plain\"}\n")) {
        EXPECT_EQ(peer.send(std::string_view(&letter, 1)), 1U);
        run(2);
    }
    EXPECT_EQ(lines(peer.read()).size(), 1U);
}

TEST_F(ControlServer, TheLastLineNeedsNoLineFeedWhenTheClientIsDone) {
    Peer peer(path_);
    peer.send(R"({"id":1,"command":"plain"})");
    ::shutdown(peer.fd(), SHUT_WR);
    run();
    EXPECT_EQ(lines(peer.read()).size(), 1U);
    EXPECT_TRUE(peer.closed());
    EXPECT_EQ(server_.clients(), 0U);
}

TEST_F(ControlServer, WhatIsNoRequestIsAnsweredAndCounted) {
    Peer peer(path_);
    const std::vector<std::string> bad = {
        "hello",
        "{",
        "[]",
        "1",
        "null",
        R"({"command":5})",
        R"({"id":1})",
        R"({"command":"plain","arguments":[]})",
        R"({"command":"plain","argument":{}})",
        R"({"id":1.5,"command":"plain"})",
        R"({"id":{},"command":"plain"})",
        R"({"id":")" + std::string(kMaxId + 1, 'x') + R"(","command":"plain"})",
        "{\"command\":\"\xff\xfe\"}",
        std::string("{\"command\":\"pl\0ain\"}", 20),
        std::string(3, '\0'),
        R"({"command":"plain","arguments":{"text":1e999}})",
        R"({"command":"plain"} {"command":"plain"})",
        R"({"command":"plain","arguments":)" + std::string(5000, '['),
        R"({"command":"plain","arguments":{"text":)" + std::string(20, '[') + std::string(20, ']') + "}}",
        R"({"command":"plain","arguments":{"text":[0)" +
            [] {
                std::string many;
                for (std::size_t i = 0; i < kMaxValues; ++i) {
                    many += ",0";
                }
                return many;
            }() +
            "]}}"};
    for (const std::string& line : bad) {
        const auto answers = ask(peer, line + "\n");
        ASSERT_EQ(answers.size(), 1U) << line;
        EXPECT_EQ(answers[0]["ok"], false) << line;
        EXPECT_EQ(answers[0]["error"]["code"], "bad_request") << line;
    }
    EXPECT_EQ(calls_, 0);
    EXPECT_EQ(number("malformed"), bad.size());
    EXPECT_EQ(number("requests_failed"), bad.size());
    EXPECT_EQ(ask(peer, "{\"command\":\"plain\"}\n")[0]["ok"], true) << "and nothing has happened";
}

TEST_F(ControlServer, UnknownWordsAreAnsweredWithTheNearestOnes) {
    Peer peer(path_);
    const auto command = ask(peer, "{\"command\":\"plian\"}\n")[0]["error"];
    EXPECT_EQ(command["code"], "unknown_command");
    EXPECT_THAT(command["message"].get<std::string>(), HasSubstr("did you mean 'plain'?"));
    const auto argument = ask(peer, R"({"command":"echo","arguments":{"tex":1}})"
                                    "\n")[0]["error"];
    EXPECT_EQ(argument["code"], "invalid_argument");
    EXPECT_THAT(argument["message"].get<std::string>(), HasSubstr("did you mean 'text'?"));
    EXPECT_THAT((ask(peer, R"({"command":"plain","arguments":{"x":1}})"
                           "\n")[0]["error"]["message"]
                     .get<std::string>()),
                HasSubstr("takes no arguments"));
    EXPECT_EQ(calls_, 0);
}

TEST_F(ControlServer, ALineThatIsTooLongIsThrownAwayAndTheNextOneIsRead) {
    Peer peer(path_);
    for (const std::size_t size : {kMaxLine, kMaxLine + 1, 5 * kMaxLine + 100}) {
        const auto answers = ask(peer, std::string(size, 'x') + "\n{\"id\":2,\"command\":\"plain\"}\n");
        ASSERT_EQ(answers.size(), 2U) << size;
        EXPECT_EQ(answers[0]["error"]["code"], "bad_request");
        EXPECT_EQ(answers[1]["id"], 2);
    }
    const std::string front = R"({"command":"echo","arguments":{"text":")";
    const std::string longest = front + std::string(kMaxLine - 1 - front.size() - 3, 'x') + "\"}}";
    EXPECT_EQ(ask(peer, longest + "\n").size(), 1U);
    EXPECT_EQ(calls_, 4);
}

TEST_F(ControlServer, ALongResultIsMadeAsTheClientReadsIt) {
    Peer peer(path_);
    peer.send("{\"id\":1,\"command\":\"long\"}\n{\"id\":2,\"command\":\"plain\"}\n");
    run(200);
    const int before = parts_;
    EXPECT_LT(before, 100) << "the client has not read";
    run(200);
    EXPECT_EQ(parts_, before);
    std::string text;
    for (int i = 0; i < 1000 && text.size() < 8192000; ++i) {
        text += peer.read();
        run(2);
    }
    text += peer.read();
    const auto answers = lines(text);
    ASSERT_EQ(answers.size(), 2U);
    EXPECT_EQ(answers[0]["result"].get_ref<const std::string&>().size(), 8192000U);
    EXPECT_EQ(answers[1]["id"], 2);
}

TEST_F(ControlServer, AClientThatDoesNotReadIsDroppedAfterAWhile) {
    Peer idle(path_);
    Peer peer(path_);
    peer.send("{\"command\":\"long\"}\n");
    run(200);
    EXPECT_EQ(server_.clients(), 2U);
    clock_.advance(kPatience - 1000);
    run();
    EXPECT_EQ(server_.clients(), 2U);
    clock_.advance(1000);
    run();
    EXPECT_EQ(server_.clients(), 1U);
    EXPECT_EQ(number("clients_stuck"), 1U);
    EXPECT_EQ(ask(idle, "{\"command\":\"plain\"}\n").size(), 1U) << "one that has nothing to read may stay";
}

TEST_F(ControlServer, AFloodGetsAFewStepsOfEachRound) {
    Peer peer(path_);
    std::string text;
    while (text.size() < kMaxLine - 100) {
        text += "{\"command\":\"plain\"}\n";
    }
    int worst = 0;
    for (int i = 0; i < 50; ++i) {
        peer.send(text);
        const int before = calls_;
        round();
        worst = std::max(worst, calls_ - before);
        (void)peer.read();
    }
    EXPECT_GT(calls_, 1000);
    EXPECT_LE(worst, kStepsPerTurn);
}

TEST_F(ControlServer, EverybodyGetsATurnBesideAFlood) {
    Peer loud(path_);
    Peer quiet(path_);
    run();
    std::string text;
    while (text.size() < kMaxLine - 100) {
        text += "{\"command\":\"plain\"}\n";
    }
    loud.send(text);
    quiet.send("{\"id\":1,\"command\":\"plain\"}\n");
    round();
    EXPECT_EQ(lines(quiet.read()).size(), 1U);
}

TEST_F(ControlServer, ALaterAnswerKeepsTheOrder) {
    Peer peer(path_);
    EXPECT_TRUE(ask(peer, "{\"id\":1,\"command\":\"later\"}\n{\"id\":2,\"command\":\"plain\"}\n").empty());
    later_->answer(json{{"x", 1}});
    run();
    const auto answers = lines(peer.read());
    ASSERT_EQ(answers.size(), 2U);
    EXPECT_EQ(answers[0], (json{{"id", 1}, {"ok", true}, {"result", {{"x", 1}}}}));
    EXPECT_EQ(answers[1]["id"], 2);
    EXPECT_TRUE(ask(peer, "{\"id\":3,\"command\":\"later\"}\n").empty());
    later_->answer(Error{Errc::Io, "disk"});
    run();
    EXPECT_EQ(lines(peer.read())[0]["error"]["code"], "io");
}

TEST_F(ControlServer, AClientMayLeaveAtAnyTime) {
    for (const char* text : {"", "{\"comm", "{\"command\":\"later\"}\n", "{\"command\":\"long\"}\n",
                             "{\"command\":\"plain\"}\n", "{\"command\":\"plain\"}"}) {
        Peer peer(path_);
        peer.send(text);
        run(1);
        peer.close();
        run();
        EXPECT_EQ(server_.clients(), 0U) << text;
    }
    later_->answer(json());  // nobody waits any more
    EXPECT_EQ(calls_, 2) << "what was asked for is done, whoever listens";
}

TEST_F(ControlServer, ADescriptorReachesTheCommandItCameWith) {
    const UniqueFd file(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    Peer peer(path_);
    peer.send("{\"command\":\"plain\"}\n");
    EXPECT_EQ(ask(peer, "{\"command\":\"echo\"}\n", file.get()).size(), 2U);
    EXPECT_TRUE(fd_.valid());
    EXPECT_EQ(number("stray_fds"), 0U);
    EXPECT_EQ(ask(peer, "{\"command\":\"echo\"}\n").size(), 1U);
    EXPECT_FALSE(fd_.valid()) << "the next one has none";
}

TEST_F(ControlServer, DescriptorsNobodyWantsAreClosedAndCounted) {
    const UniqueFd file(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    const int before = open_descriptors();
    {
        Peer peer(path_);
        ask(peer, "{\"command\":\"plain\"}\n", file.get());
        EXPECT_EQ(number("stray_fds"), 1U);
        ask(peer, "garbage\n", file.get());
        EXPECT_EQ(number("stray_fds"), 2U);
        for (int i = 0; i < 10; ++i) {  // with one byte of a line each
            ask(peer, "x", file.get());
        }
        ask(peer, std::string(2 * kMaxLine, 'x') + "\n", file.get());
        ask(peer, "{\"command\"", file.get());
        peer.close();
        run();
    }
    EXPECT_EQ(number("stray_fds"), 14U);
    EXPECT_EQ(open_descriptors(), before);
}

TEST_F(ControlServer, MoreDescriptorsThanThereIsRoomForAreClosed) {
    const UniqueFd file(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    const int before = open_descriptors();
    Peer peer(path_);
    constexpr std::size_t kMany = 64;
    alignas(cmsghdr) std::array<char, fd_control_size(kMany)> control{};
    const std::array<int, kMany> fds = [&] {
        std::array<int, kMany> same{};
        same.fill(file.get());
        return same;
    }();
    std::string line = "{\"command\":\"echo\"}\n";
    iovec data{line.data(), line.size()};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof(fds));
    std::memcpy(CMSG_DATA(part), fds.data(), sizeof(fds));
    ASSERT_EQ(::sendmsg(peer.fd(), &message, 0), static_cast<ssize_t>(line.size()));
    run();
    EXPECT_EQ(lines(peer.read()).size(), 1U);
    EXPECT_GT(number("stray_fds"), 0U);
    fd_.reset();
    peer.close();
    run();
    EXPECT_EQ(open_descriptors(), before);
}

TEST_F(ControlServer, ThereIsALimitOfClientsAndTheNextOneIsTold) {
    std::vector<Peer> peers;
    for (std::size_t i = 0; i < kMaxClients; ++i) {
        peers.emplace_back(path_);
    }
    run();
    Peer extra(path_);
    run();
    const auto answers = lines(extra.read());
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_EQ(answers[0]["error"]["code"], "busy");
    EXPECT_TRUE(extra.closed());
    EXPECT_EQ(number("clients_refused"), 1U);
    peers.pop_back();
    run();
    Peer next(path_);
    EXPECT_EQ(ask(next, "{\"command\":\"plain\"}\n").size(), 1U);
}

TEST_F(ControlServer, ThoseWhoHaveLeftTakeNobodysPlace) {
    for (std::size_t i = 0; i < kMaxClients; ++i) {
        Peer peer(path_);
        peer.send("{\"command\":\"plain\"}\n");
    }
    Peer peer(path_);  // all of them are seen in one round
    EXPECT_EQ(ask(peer, "{\"command\":\"plain\"}\n")[0]["ok"], true);
    EXPECT_EQ(calls_, static_cast<int>(kMaxClients) + 1);
    EXPECT_EQ(number("clients_refused"), 0U);
}

TEST(ControlCall, ArgumentsHaveTheirKinds) {
    Call call;
    call.arguments = json::parse(R"({"text": "x", "number": 5, "negative": -1, "half": 0.5})");
    call.arguments["long"] = std::string(kMaxText + 1, 'x');
    EXPECT_EQ(call.text("text").value(), "x");
    EXPECT_EQ(call.text("none").value(), std::nullopt);
    EXPECT_FALSE(call.text("number").ok());
    EXPECT_EQ(call.text("long").error().code, Errc::OutOfRange);
    EXPECT_EQ(call.number("number", 5, 5).value(), 5U);
    EXPECT_EQ(call.number("number", 6, 9).error().code, Errc::OutOfRange);
    EXPECT_EQ(call.number("negative", 0, 9).error().code, Errc::OutOfRange);
    EXPECT_EQ(call.number("half", 0, 9).error().code, Errc::InvalidArgument);
    EXPECT_EQ(call.number("text", 0, 9).error().code, Errc::InvalidArgument);
    EXPECT_EQ(call.number("none", 0, 9).value(), std::nullopt);
}

}  // namespace
}  // namespace ernic::control
