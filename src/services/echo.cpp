// SPDX-License-Identifier: MIT
#include "services/echo.hpp"

#include <algorithm>
#include <utility>

namespace ernic::services {
namespace {

constexpr std::uint16_t kEchoPort = 7;
constexpr std::uint16_t kDiscardPort = 9;
constexpr std::uint16_t kSourcePort = 19;
/// A datagram from a service's port may itself be an answer; two echo services would play ball with it for
/// ever.
constexpr std::uint16_t kFirstClientPort = 1024;

}  // namespace

const std::vector<std::byte>& chargen_pattern() {
    static const std::vector<std::byte> pattern = [] {
        constexpr unsigned kPrintable = 95;
        constexpr unsigned kLine = 72;
        std::vector<std::byte> bytes;
        for (unsigned line = 0; line < kPrintable; ++line) {
            for (unsigned column = 0; column < kLine; ++column) {
                bytes.push_back(static_cast<std::byte>(' ' + (line + column) % kPrintable));
            }
            bytes.push_back(std::byte{'\r'});
            bytes.push_back(std::byte{'\n'});
        }
        return bytes;
    }();
    return pattern;
}

void EchoCounters::register_metrics(metrics::Registry& registry) const {
    registry.add({"echo.connections", "connections", "TCP connections to an echo service"}, connections);
    registry.add({"echo.stream_bytes", "bytes", "bytes it has echoed, discarded or made on them"},
                 stream_bytes);
    registry.add({"echo.datagrams", "datagrams", "UDP datagrams echoed or discarded"}, datagrams);
    registry.add({"echo.refused_datagrams", "datagrams",
                  "UDP datagrams not echoed: from a port below 1024, or there was no way back"},
                 refused_datagrams);
}

/// One connection; ends itself.
class Echo::Session : public net::stack::TcpHandler {
  public:
    Session(Echo& echo, std::unique_ptr<net::stack::TcpConnection> connection)
        : echo_(echo), connection_(std::move(connection)) {
        connection_->set_handler(this);
    }
    void end_of_stream() override { end(); }
    void closed() override { end(); }

  protected:
    [[nodiscard]] net::stack::TcpConnection& connection() { return *connection_; }
    void count(std::size_t bytes) { echo_.counters_.stream_bytes.add(bytes); }
    /// Destroys this.
    void end() {
        echo_.sessions_.remove_if([this](const auto& session) { return session.get() == this; });
    }

  private:
    Echo& echo_;
    std::unique_ptr<net::stack::TcpConnection> connection_;
};

class Echo::EchoSession final : public Session {
  public:
    using Session::Session;
    std::size_t received(Bytes data) override {
        const std::size_t written = connection().write(data);
        count(written);
        return written;
    }
    void writable() override { connection().resume(); }
};

class Echo::DiscardSession final : public Session {
  public:
    using Session::Session;
    std::size_t received(Bytes data) override {
        count(data.size());
        return data.size();
    }
};

class Echo::SourceSession final : public Session {
  public:
    SourceSession(Echo& echo, std::unique_ptr<net::stack::TcpConnection> connection)
        : Session(echo, std::move(connection)) {
        writable();
    }
    std::size_t received(Bytes data) override { return data.size(); }
    void writable() override {
        while (true) {
            const Bytes rest = Bytes(chargen_pattern()).subspan(position_);
            const std::size_t written = connection().write(rest);
            position_ = (position_ + written) % chargen_pattern().size();
            count(written);
            if (written < rest.size()) {
                return;
            }
        }
    }
    /// Who has only ended his own half still reads; who is gone answers with a reset.
    void end_of_stream() override {}

  private:
    std::size_t position_ = 0;
};

template <typename Kind>
void Echo::accept(std::unique_ptr<net::stack::TcpConnection> connection) {
    counters_.connections.add();
    sessions_.push_back(std::make_unique<Kind>(*this, std::move(connection)));
}

void Echo::answer(const net::stack::Datagram& datagram) {
    if (datagram.from.port < kFirstClientPort || !udp_echo_.send(datagram.to, datagram.from, datagram.data)) {
        counters_.refused_datagrams.add();
    } else {
        counters_.datagrams.add();
    }
}

Echo::Echo(net::stack::Stack& stack, net::FramePort& port, const net::stack::HostConfig& config,
           EchoCounters& counters)
    : counters_(counters),
      host_(stack, port, config),
      udp_echo_(host_, kEchoPort, [this](const auto& datagram) { answer(datagram); }),
      udp_discard_(host_, kDiscardPort, [this](const auto&) { counters_.datagrams.add(); }),
      tcp_echo_(host_, kEchoPort, [this](auto connection) { accept<EchoSession>(std::move(connection)); }),
      tcp_discard_(host_, kDiscardPort,
                   [this](auto connection) { accept<DiscardSession>(std::move(connection)); }),
      tcp_source_(host_, kSourcePort,
                  [this](auto connection) { accept<SourceSession>(std::move(connection)); }) {
}

Echo::~Echo() = default;

}  // namespace ernic::services
