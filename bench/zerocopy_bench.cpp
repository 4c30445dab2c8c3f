// SPDX-License-Identifier: MIT
#include <arpa/inet.h>
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "guest_sim/error.hpp"
#include "guest_sim/network_namespaces.hpp"
#include "support/cpu.hpp"
#include "support/samples.hpp"
#include "support/tcp_pair.hpp"

/// A TCP stream written with and without MSG_ZEROCOPY, on loopback and between two network namespaces that
/// are joined by veth: whether the mesh should use it (docs/performance.md).
namespace ernic::bench {
namespace {

constexpr std::size_t kBuffer = std::size_t{64} << 20U;
constexpr int kRounds = 7;
/// Sends whose pages the kernel may hold at once.
constexpr std::uint32_t kMostHeld = 32;

/// Enters a network namespace, for a socket that shall live there, and leaves it at the end of the scope.
class Inside {
  public:
    explicit Inside(const std::string& name) : home_(::open("/proc/thread-self/ns/net", O_RDONLY)) {
        const UniqueFd there(::open(("/run/netns/" + name).c_str(), O_RDONLY));
        guest_sim::require(there && ::setns(there.get(), CLONE_NEWNET) == 0, "a network namespace");
    }
    ~Inside() { (void)::setns(home_.get(), CLONE_NEWNET); }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

  private:
    UniqueFd home_;
};

TcpPair veth_pair(const guest_sim::NetworkNamespaces& hosts) {
    UniqueFd listener;
    sockaddr_in address{};
    {
        const Inside host(hosts.name(0));
        listener = listening(inet_addr(guest_sim::NetworkNamespaces::address(0).c_str()), address);
    }
    const Inside host(hosts.name(1));
    return connected(listener, address);
}

/// A sender that may let the kernel read its pages later, and waits then until it has.
class Sender {
  public:
    Sender(int socket, bool zero_copy) : socket_(socket), flags_(zero_copy ? MSG_ZEROCOPY : 0) {
        const int on = zero_copy ? 1 : 0;
        guest_sim::require(::setsockopt(socket_, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on) == 0,
                           "SO_ZEROCOPY");
    }

    void send(Bytes bytes) {
        while (!bytes.empty()) {
            const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), flags_ | MSG_NOSIGNAL);
            guest_sim::require(sent > 0, "send");
            bytes = bytes.subspan(static_cast<std::size_t>(sent));
            held_ += flags_ != 0 ? 1 : 0;
        }
        while (held_ > kMostHeld) {
            hear();
        }
    }
    void finish() {
        while (held_ != 0) {
            hear();
        }
    }
    /// Sends of which the kernel says that it has copied them after all.
    [[nodiscard]] std::uint64_t copied() const { return copied_; }

  private:
    void hear() {
        pollfd waiting{.fd = socket_, .events = 0, .revents = 0};
        (void)::poll(&waiting, 1, -1);
        alignas(cmsghdr) std::array<char, 256> control;
        msghdr message{};
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        if (::recvmsg(socket_, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) {
            return;
        }
        const cmsghdr* const first = CMSG_FIRSTHDR(&message);
        guest_sim::require(first != nullptr, "a notification");
        sock_extended_err told{};
        std::memcpy(&told, CMSG_DATA(first), sizeof told);
        const std::uint32_t count = told.ee_data - told.ee_info + 1;
        held_ -= count;
        copied_ += (told.ee_code & SO_EE_CODE_ZEROCOPY_COPIED) != 0 ? count : 0;
    }

    int socket_;
    int flags_;
    std::uint32_t held_ = 0;
    std::uint64_t copied_ = 0;
};

double stream(const TcpPair& pair, Bytes from, MutableBytes to, std::size_t size, bool zero_copy,
              double& copied) {
    const auto begin = Clock::now();
    std::thread sending([&] {
        const OnCpu where(client_cpu());
        Sender sender(pair.client.get(), zero_copy);
        for (std::size_t at = 0; at < from.size(); at += size) {
            sender.send(from.subspan(at, size));
        }
        sender.finish();
        copied = static_cast<double>(sender.copied()) / static_cast<double>(from.size() / size);
    });
    {
        const OnCpu where(server_cpu());
        for (std::size_t at = 0; at < to.size(); at += size) {
            guest_sim::require(
                ::recv(pair.server.get(), &to[at], size, MSG_WAITALL) == static_cast<ssize_t>(size),
                "receive");
        }
    }
    sending.join();
    return seconds_since(begin);
}

void zerocopy(benchmark::State& state, bool veth) {
    std::unique_ptr<guest_sim::NetworkNamespaces> hosts;
    if (veth && !guest_sim::NetworkNamespaces::possible()) {
        state.SkipWithError("network namespaces need root");
        return;
    }
    if (veth) {
        hosts = std::make_unique<guest_sim::NetworkNamespaces>(2);
    }
    const auto size = static_cast<std::size_t>(state.range(0));
    const TcpPair plain = veth ? veth_pair(*hosts) : loopback_pair();
    const TcpPair zero = veth ? veth_pair(*hosts) : loopback_pair();
    const std::vector<std::byte> from(kBuffer, std::byte{1});
    std::vector<std::byte> to(kBuffer, std::byte{2});
    for (auto _ : state) {
        Samples with;
        Samples without;
        double copied = 0;
        for (int round = 0; round < kRounds; ++round) {
            without.add(stream(plain, from, to, size, false, copied));
            with.add(stream(zero, from, to, size, true, copied));
        }
        state.SetIterationTime(with.median());
        state.counters["measured"] = static_cast<double>(kBuffer) / 1e9 / with.median();
        state.counters["floor"] = static_cast<double>(kBuffer) / 1e9 / without.median();
        state.counters["ratio"] = without.median() / with.median();
        state.counters["copied"] = copied;
    }
}

void zerocopy_loopback(benchmark::State& state) {
    zerocopy(state, false);
}
void zerocopy_veth(benchmark::State& state) {
    zerocopy(state, true);
}
BENCHMARK(zerocopy_loopback)->Arg(262144)->Arg(1 << 20)->UseManualTime()->Iterations(1);
BENCHMARK(zerocopy_veth)->Arg(262144)->Arg(1 << 20)->UseManualTime()->Iterations(1);

}  // namespace
}  // namespace ernic::bench
