// SPDX-License-Identifier: MIT
#include "order_line.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdarg>
#include <cstring>

#include "check.hpp"

namespace {

constexpr std::uint16_t kTcpPort = 18600;
constexpr const char* kKinds[] = {"send", "send-imm", "write", "write-imm",
                                  "read", "datagram", "add",   "swap"};

}  // namespace

std::string Order::text() const {
    char text[160];
    snprintf(text, sizeof text, "%s size %zu at %zu pieces %zu seed %" PRIu64, kKinds[static_cast<int>(op)],
             size, at, pieces, seed);
    return text;
}

Order Order::read(const std::string& text) {
    Order order{};
    char kind[16];
    require(sscanf(text.c_str(), "%15s size %zu at %zu pieces %zu seed %" SCNu64, kind, &order.size,
                   &order.at, &order.pieces, &order.seed) == 5,
            "'%s' is no order", text.c_str());
    for (std::size_t i = 0; i < std::size(kKinds); ++i) {
        if (strcmp(kind, kKinds[i]) == 0) {
            order.op = static_cast<Kind>(i);
            return order;
        }
    }
    fail("'%s' is no kind of order", kind);
}

Op Order::transfer() const {
    constexpr Op ops[] = {Op::Send, Op::SendImm, Op::Write, Op::WriteImm, Op::Read};
    return ops[static_cast<int>(op)];
}

OrderLine::OrderLine(const std::string& host) : listened_(host == "listen") {
    socket_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(kTcpPort);
    auto* const raw = reinterpret_cast<sockaddr*>(&address);
    const int on = 1;
    if (listened_) {
        const int listener = socket_;
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        require(bind(listener, raw, sizeof address) == 0 && listen(listener, 1) == 0, "cannot listen: %s",
                strerror(errno));
        socket_ = accept(listener, nullptr, nullptr);
        close(listener);
    } else {
        require(inet_pton(AF_INET, host.c_str(), &address.sin_addr) == 1, "'%s' is no IPv4 address",
                host.c_str());
        require(connect(socket_, raw, sizeof address) == 0, "cannot connect to %s: %s", host.c_str(),
                strerror(errno));
    }
    require(socket_ >= 0, "no connection: %s", strerror(errno));
    setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    in_ = fdopen(socket_, "r");
    require(in_ != nullptr, "fdopen: %s", strerror(errno));
}

OrderLine::~OrderLine() {
    if (in_ != nullptr) {
        fclose(in_);
    }
}

void OrderLine::say(const char* format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text - 1, format, arguments);
    va_end(arguments);
    const std::string line = std::string(text) + "\n";
    require(send(socket_, line.data(), line.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(line.size()),
            "the other end is gone");
}

std::string OrderLine::hear() {
    char text[512];
    require(fgets(text, sizeof text, in_) != nullptr, "the other end is gone");
    text[strcspn(text, "\n")] = '\0';
    return text;
}

void OrderLine::expect(const char* line) {
    const std::string heard = hear();
    require(heard == line, "the other end says '%s', not '%s'", heard.c_str(), line);
}
