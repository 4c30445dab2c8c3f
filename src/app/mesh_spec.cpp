// SPDX-License-Identifier: MIT
#include "app/mesh_spec.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "app/option_values.hpp"
#include "app/spec_items.hpp"
#include "base/number.hpp"
#include "base/suggest.hpp"
#include "mesh/limits.hpp"
#include "mesh/protocol.hpp"

namespace ernic::app {
namespace {

constexpr std::array<std::string_view, 2> kRoles = {"manager", "worker"};
constexpr std::array<std::string_view, 6> kKeys = {"key",  "heartbeat", "dead-after",
                                                   "bind", "name",      "io-threads"};
constexpr std::size_t kLongestHost = 253;
constexpr Nanoseconds kMillisecond = 1'000'000;

/// Host and port of `HOST:PORT` or `[ADDRESS]:PORT`. Fails: nullopt.
std::optional<std::pair<std::string, std::uint16_t>> split_host(std::string_view text) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) {
        return std::nullopt;
    }
    const auto port = parse_integer<std::uint16_t>(text.substr(colon + 1));
    std::string_view host = text.substr(0, colon);
    if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
        host = host.substr(1, host.size() - 2);
        const auto address = net::IpAddress::parse(host);
        if (!address || address->is_v4()) {
            return std::nullopt;
        }
    } else if (host.find_first_of(":[]") != std::string_view::npos) {
        return std::nullopt;
    }
    if (!port || *port == 0 || host.empty() || host.size() > kLongestHost) {
        return std::nullopt;
    }
    return std::pair(std::string(host), *port);
}

Result<Nanoseconds> milliseconds(const SpecItem& item, unsigned long most) {
    const auto value = parse_number("tcp", item.key, item.value, mesh::kLeastHeartbeat, most);
    if (!value) {
        return value.error();
    }
    return Nanoseconds{value.value()} * kMillisecond;
}

std::optional<Error> apply(const SpecItem& item, MeshSpec& spec) {
    if (item.key == "key") {
        spec.key_file = item.value;
    } else if (item.key == "bind") {
        if (!net::IpAddress::parse(item.value)) {
            return invalid(
                fmt::format("tcp option 'bind={}' is no IP address: write for example "
                            "'bind=192.168.1.10' or 'bind=0.0.0.0'",
                            item.value));
        }
        spec.bind = item.value;
    } else if (item.key == "name") {
        if (!mesh::good_name(item.value)) {
            return invalid(
                fmt::format("tcp option 'name' must have 1 to {} printable characters", mesh::kMaxName));
        }
        spec.name = item.value;
    } else if (item.key == "io-threads") {
        if (item.value != "0") {
            return invalid(
                fmt::format("tcp option 'io-threads={}': only 0 is possible, the device thread does the "
                            "mesh's work too (docs/mesh.md says why)",
                            item.value));
        }
    } else {
        const bool heartbeat = item.key == "heartbeat";
        auto time = milliseconds(item, heartbeat ? mesh::kMostHeartbeat : mesh::kMostDeadAfter);
        if (!time) {
            return time.error();
        }
        (heartbeat ? spec.heartbeat : spec.dead_after) = time.value();
    }
    return std::nullopt;
}

bool loopback_name(const std::string& host) {
    if (const auto address = net::IpAddress::parse(host)) {
        return mesh::Endpoint{*address, 0}.loopback();
    }
    return host == "localhost";
}

/// A mesh that others than this host can reach wants a key. Fails: the sentence.
std::optional<Error> check_key(const MeshSpec& spec, const std::string& host) {
    if (!spec.key_file.empty() || host.empty() || loopback_name(host)) {
        return std::nullopt;
    }
    return invalid(
        fmt::format("a mesh beyond this host ('{}') needs a key: add key=FILE, the same on every "
                    "node ('openssl rand -hex 32' makes one)",
                    host));
}

/// As check_key(), for what can be told without asking a name server.
std::optional<Error> check_literals(const MeshSpec& spec) {
    if (auto problem = check_key(spec, spec.bind)) {
        return problem;
    }
    const bool literal = net::IpAddress::parse(spec.host).has_value();
    return literal ? check_key(spec, spec.host) : std::nullopt;
}

std::string default_name() {
    constexpr std::size_t kKept = 40;  // the rest is for the number
    std::string name = host_name().substr(0, kKept);
    std::erase_if(name, [](char letter) { return !mesh::good_name(std::string_view(&letter, 1)); });
    return fmt::format("{}-{}", name.empty() ? "node" : name, ::getpid());
}

/// Where this node listens. Fails: one sentence.
Result<mesh::Endpoint> listen_address(const MeshSpec& spec, const mesh::Endpoint& manager) {
    const auto port = spec.is_manager ? spec.port : std::uint16_t{0};
    const auto loopback = net::IpAddress::v4(0x7f000001);
    if (!spec.bind.empty()) {
        return mesh::Endpoint{*net::IpAddress::parse(spec.bind), port};
    }
    if (spec.is_manager) {
        return mesh::Endpoint{spec.host.empty() ? loopback : *net::IpAddress::parse(spec.host), port};
    }
    if (manager.loopback()) {
        return mesh::Endpoint{manager.address.is_v4() ? loopback : manager.address, port};
    }
    auto source = mesh::source_towards(manager);
    if (!source) {
        return source.error();
    }
    return mesh::Endpoint{source.value(), port};
}

}  // namespace

Result<MeshSpec> parse_mesh(std::string_view text) {
    const std::size_t comma = text.find(',');
    const std::string_view where = text.substr(0, comma);
    const std::size_t colon = where.find(':');
    const std::string_view role = where.substr(0, colon);
    if (std::find(kRoles.begin(), kRoles.end(), role) == kRoles.end()) {
        return invalid(unknown_word("tcp role", role, kRoles));
    }
    MeshSpec spec;
    spec.is_manager = role == "manager";
    const std::string_view rest =
        colon == std::string_view::npos ? std::string_view() : where.substr(colon + 1);
    const auto host = split_host(rest);
    const bool listens = host && host->first == "listen";
    if (!host || (spec.is_manager && !listens && !net::IpAddress::parse(host->first))) {
        return invalid(fmt::format(
            "backend 'tcp:{}' does not say where: write {}", where,
            spec.is_manager ? "'tcp:manager:listen:PORT' or 'tcp:manager:ADDRESS:PORT', IPv6 in brackets"
                            : "'tcp:worker:HOST:PORT', IPv6 in brackets"));
    }
    spec.host = spec.is_manager && listens ? "" : host->first;
    spec.port = host->second;
    if (comma != std::string_view::npos) {
        const auto items = parse_items("tcp", text.substr(comma + 1), kKeys, {});
        if (!items) {
            return items.error();
        }
        for (const SpecItem& item : items.value()) {
            if (auto problem = apply(item, spec)) {
                return *problem;
            }
        }
    }
    if (spec.dead_after < 2 * spec.heartbeat) {
        return invalid(
            fmt::format("tcp option 'dead-after={}' is too short for heartbeats every {} ms: at "
                        "least twice as long",
                        spec.dead_after / kMillisecond, spec.heartbeat / kMillisecond));
    }
    if (auto problem = check_literals(spec)) {
        return *problem;
    }
    return spec;
}

std::string to_string(const MeshSpec& spec) {
    std::string text = spec.is_manager ? "manager:" : "worker:";
    const bool brackets = spec.host.find(':') != std::string::npos;
    text += brackets ? fmt::format("[{}]", spec.host) : spec.host.empty() ? "listen" : spec.host;
    text += fmt::format(":{}", spec.port);
    const auto add = [&text](const char* key, const std::string& value) {
        if (!value.empty()) {
            text += fmt::format(",{}={}", key, value);
        }
    };
    const MeshSpec usual;
    add("key", spec.key_file);
    add("heartbeat", spec.heartbeat == usual.heartbeat ? "" : std::to_string(spec.heartbeat / kMillisecond));
    add("dead-after",
        spec.dead_after == usual.dead_after ? "" : std::to_string(spec.dead_after / kMillisecond));
    add("bind", spec.bind);
    add("name", spec.name);
    return text;
}

Result<mesh::Config> prepare_mesh(const MeshSpec& spec) {
    mesh::Config config;
    config.is_manager = spec.is_manager;
    config.heartbeat = spec.heartbeat;
    config.dead_after = spec.dead_after;
    config.name = spec.name.empty() ? default_name() : spec.name;
    if (!spec.is_manager) {
        auto manager = mesh::resolve(spec.host, spec.port);
        if (!manager) {
            return manager.error();
        }
        config.manager = manager.value();
        if (auto problem = check_key(spec, config.manager.address.to_string())) {
            return *problem;
        }
    }
    auto listen = listen_address(spec, config.manager);
    if (!listen) {
        return listen.error();
    }
    config.listen = listen.value();
    if (!spec.key_file.empty()) {
        auto key = mesh::Key::load(spec.key_file);
        if (!key) {
            return key.error();
        }
        config.key = std::move(key.value());
    }
    mesh::warm_up();
    return config;
}

}  // namespace ernic::app
