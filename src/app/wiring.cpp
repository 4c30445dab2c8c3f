// SPDX-License-Identifier: MIT
#include "app/wiring.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "ionic/card.hpp"
#include "ionic/rdma_card.hpp"
#include "net/segment.hpp"
#include "vfio_user/server.hpp"

namespace ernic::app {
namespace {

std::string to_string(const wire::MacAddress& mac) {
    const auto& b = mac.bytes;
    return fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", b[0], b[1], b[2], b[3], b[4], b[5]);
}

vfio_user::SocketOptions socket_options(const Options& options) {
    vfio_user::SocketOptions socket;
    socket.path = options.socket_path;
    if (options.socket_group) {
        socket.group = std::to_string(*options.socket_group);
    }
    return socket;
}

/// Who this process is, for the reader of a statistics file.
nlohmann::json identity(const Options& options) {
    return {{"version", ERNIC_VERSION},
            {"pid", getpid()},
            {"socket", options.socket_path},
            {"backend", app::to_string(options.backend)},
            {"mac", to_string(options.mac)}};
}

}  // namespace

/// Declared in the order of use: what is below may hold references to what is above.
///
///     VMM == socket == server <- pci::Host / pci::Function -> card -> RDMA half -> segment
struct Instance::Parts {
    Parts(EventLoop& loop, metrics::Registry& registry, const Options& options, const log::Logger& log)
        : segment(options.backend.mode),
          server(loop, registry, log.named("vfio_user"), socket_options(options)),
          card({.mac = options.mac, .profile = {}, .sink = nullptr}, server, loop, registry, log) {
        if (options.backend.kind == BackendSpec::Kind::None) {
            segment.close();
        }
        auto rdma = std::make_unique<ionic::RdmaCard>(card.profile().rdma, options.mac, server,
                                                      card.interrupts(), loop, segment, registry, log);
        card.attach_rdma(std::move(rdma));
        card.set_link(options.backend.kind != BackendSpec::Kind::None);
        server.attach(card);
        segment.register_metrics(registry);
        registry.add_section("process", [text = identity(options)] { return text; });
    }
    /// The server resets the card when it says goodbye to its client, so the card must still live.
    ~Parts() { server.close(); }
    Parts(const Parts&) = delete;
    Parts& operator=(const Parts&) = delete;

    net::Segment segment;
    vfio_user::Server server;
    ionic::Card card;
};

Instance::Instance(EventLoop& loop, metrics::Registry& registry, const Options& options,
                   const log::Logger& log)
    : parts_(std::make_unique<Parts>(loop, registry, options, log)) {
    loop.set_worker([this] { return parts_->card.step(); });
    loop.set_poller([this] { return parts_->server.poll(); });
    if (options.backend.md5) {
        // OpenSSL reads its configuration file at its first digest, which must not happen in the sandbox.
        (void)net::PayloadDigest(log::Logger(log::null_sink(), "")).add({}, 0);
        parts_->segment.mover().digest_with(net::PayloadDigest(log.named("segment")));
    }
    log.info("version={} backend={} mac={}", ERNIC_VERSION, app::to_string(options.backend),
             to_string(options.mac));
}

Instance::~Instance() = default;

Status Instance::listen() {
    return parts_->server.listen();
}

}  // namespace ernic::app
