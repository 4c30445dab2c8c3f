// SPDX-License-Identifier: MIT
#include "guest_sim/mesh_server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "guest_sim/error.hpp"

namespace ernic::guest_sim {
namespace {

ServerProcess::Options process_options(const MeshServer::Options& options) {
    std::array<char, 24> mac{};
    std::snprintf(mac.data(), mac.size(), "02:00:00:00:%02x:%02x", options.number >> 8U & 0xffU,
                  options.number & 0xffU);
    return {.arguments = {"--backend", options.backend + ",name=node" + std::to_string(options.number),
                          "--mac", mac.data()},
            .cpu = std::nullopt,
            .network_namespace = options.network_namespace,
            .control = true,
            .wait = options.wait};
}

std::uint64_t status_kib(std::ifstream& status, const std::string& name) {
    std::string line;
    status.clear();
    status.seekg(0);
    while (std::getline(status, line)) {
        if (line.rfind(name, 0) == 0) {
            return std::stoull(line.substr(name.size()));
        }
    }
    throw GuestError("no " + name + " in the status of a process");
}

}  // namespace

MeshServer::MeshServer(const Options& options) : process_(process_options(options)) {
}

std::string MeshServer::ask(std::string_view command, std::string_view arguments) const {
    const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = process_.control_path();
    require(path.size() < sizeof(address.sun_path), "socket path too long");
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    const timeval patience{20, 0};
    (void)::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
        throw_errno("connect to the control socket");
    }
    const std::string line =
        R"({"command":")" + std::string(command) + R"(","arguments":)" + std::string(arguments) + "}\n";
    require(::send(socket.get(), line.data(), line.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(line.size()),
            "a request to the control socket");
    std::string answer;
    std::array<char, 65536> piece{};
    while (answer.empty() || answer.back() != '\n') {
        const ssize_t got = ::recv(socket.get(), piece.data(), piece.size(), 0);
        require(got > 0, "no answer from the control socket");
        answer.append(piece.data(), static_cast<std::size_t>(got));
    }
    require(answer.find(R"("ok":true)") != std::string::npos, answer.c_str());
    return answer;
}

std::uint64_t MeshServer::statistic(std::string_view name) const {
    const std::string full = "mesh." + std::string(name);
    const std::string answer = ask("stats", R"({"match":")" + full + R"("})");
    const std::string key = "\"" + std::string(name) + "\":";
    const std::size_t at = answer.find(key);
    require(at != std::string::npos, ("no number " + full).c_str());
    return std::stoull(answer.substr(at + key.size(), 20));
}

std::vector<std::uint32_t> MeshServer::peer_numbers() const {
    const std::string answer = ask("peers");
    const std::string key = R"("number":)";
    std::vector<std::uint32_t> numbers;
    for (std::size_t at = answer.find(key); at != std::string::npos; at = answer.find(key, at + 1)) {
        numbers.push_back(static_cast<std::uint32_t>(std::stoul(answer.substr(at + key.size(), 10))));
    }
    return numbers;
}

Footprint MeshServer::footprint() const {
    const std::string process = "/proc/" + std::to_string(process_.pid());
    std::ifstream status(process + "/status");
    const auto fds = std::filesystem::directory_iterator(process + "/fd");
    return {status_kib(status, "VmRSS:"), status_kib(status, "RssAnon:"),
            static_cast<std::uint64_t>(std::distance(begin(fds), end(fds)))};
}

std::uint16_t manager_port() {
    // Linux gives those from 32768 on (net.ipv4.ip_local_port_range) to clients.
    constexpr std::uint32_t kFirst = 20000;
    constexpr std::uint32_t kCount = 10000;
    static std::uint32_t next = static_cast<std::uint32_t>(::getpid()) * 13;
    for (std::uint32_t tried = 0; tried < kCount; ++tried) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        const auto port = static_cast<std::uint16_t>(kFirst + next++ % kCount);
        address.sin_port = htons(port);
        const UniqueFd probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        if (::bind(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
            return port;
        }
    }
    throw GuestError("no port is free");
}

}  // namespace ernic::guest_sim
