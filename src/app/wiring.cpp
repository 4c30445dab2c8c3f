// SPDX-License-Identifier: MIT
#include "app/wiring.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "app/services.hpp"
#include "ionic/card.hpp"
#include "ionic/rdma_card.hpp"
#include "mesh/fabric.hpp"
#include "net/faults.hpp"
#include "net/link.hpp"
#include "net/mac_text.hpp"
#include "net/segment.hpp"
#include "net/tap.hpp"
#include "rdma/limits.hpp"
#include "vfio_user/server.hpp"

namespace ernic::app {
namespace {

static_assert(mesh::kMaxBody >= rdma::kFragment, "a fragment must fit into a frame of the mesh");

SocketOptions socket_options(const Options& options) {
    SocketOptions socket;
    socket.path = options.socket_path;
    if (options.socket_group) {
        socket.group = std::to_string(*options.socket_group);
    }
    return socket;
}

}  // namespace

nlohmann::json identity(const Options& options) {
    return {{"version", ERNIC_VERSION},
            {"pid", getpid()},
            {"socket", options.socket_path},
            {"backend", app::to_string(options.backend)},
            {"tap", options.tap},
            {"mac", net::to_string(options.mac)}};
}

/// Declared in the order of use: what is below may hold references to what is above.
///
///     VMM == socket == server <- pci::Host / pci::Function -> card -> RDMA half -> segment
///                                      card <-> guest port == bridge == TAP port <-> TAP
///                                                               == their ports <-> services
///                                    segment and mesh port <-> fabric == TCP == other servers
///     faults == segment and bridge; link -> card
struct Instance::Parts {
    Parts(EventLoop& loop, metrics::Registry& registry, const Options& options, const log::Logger& log,
          std::unique_ptr<NvmeofTargets> nvmeof, std::optional<net::TapDevice> tap_device,
          std::optional<mesh::Config> mesh_config)
        : segment(options.backend.mode, &loop.clock()),
          guest_port(segment.bridge(), "guest"),
          tap_port(segment.bridge(), "tap"),
          mesh_port(segment.bridge(), "mesh"),
          services(loop, registry, segment, options.services, std::move(nvmeof), log),
          server(loop, registry, log.named("vfio_user"), socket_options(options)),
          faults(segment, link, loop, log.named("faults")),
          card({.mac = options.mac, .profile = {}, .sink = &guest_port}, server, loop, registry, log) {
        if (options.backend.kind == BackendSpec::Kind::None) {
            segment.close();
        }
        auto rdma = std::make_unique<ionic::RdmaCard>(card.profile().rdma, options.mac, server,
                                                      card.interrupts(), loop, segment, registry, log);
        segment.set_guest(rdma->engine(), guest_port);
        card.attach_rdma(std::move(rdma));
        guest_port.connect(&card.receiver());
        card.on_receive_room([this] { guest_port.made_room(); });
        card.on_receive_drop([this] { guest_port.dropped(); });
        if (tap_device) {
            tap.emplace(std::move(*tap_device), tap_port, tap_counters, loop, log.named("tap"));
            tap->on_link([this](bool up) { link.set(net::Link::Source::Cable, up); });
        }
        if (mesh_config) {
            fabric.emplace(std::move(*mesh_config), segment, mesh_port, loop, mesh_counters,
                           log.named("mesh"));
            if (options.link_follows_mesh) {
                link.set(net::Link::Source::Mesh, false);
                fabric->on_connected([this](bool any) { link.set(net::Link::Source::Mesh, any); });
            }
        }
        link.set(net::Link::Source::Cable,
                 tap ? tap->up() : options.backend.kind != BackendSpec::Kind::None || options.services.any());
        for (const net::FaultSpec& fault : options.faults) {
            faults.add(fault);
        }
        card.set_link(link.up());
        link.on_change([this](bool up) { card.set_link(up); });
        server.attach(card);
        segment.register_metrics(registry);
        guest_port.register_metrics(registry);
        tap_port.register_metrics(registry);
        tap_counters.register_metrics(registry);
        mesh_port.register_metrics(registry);
        mesh_counters.register_metrics(registry);
        faults.register_metrics(registry);
        registry.add_section("process", [text = identity(options)] { return text; });
    }
    /// The server resets the card when it says goodbye to its client, so the card must still live.
    ~Parts() { server.close(); }
    Parts(const Parts&) = delete;
    Parts& operator=(const Parts&) = delete;

    net::Segment segment;
    net::FramePort guest_port;
    net::FramePort tap_port;
    net::FramePort mesh_port;
    Services services;
    net::TapCounters tap_counters;
    mesh::Counters mesh_counters;
    vfio_user::Server server;
    net::Link link;
    net::Faults faults;
    ionic::Card card;
    std::optional<net::Tap> tap;
    std::optional<mesh::Fabric> fabric;
};

Instance::Instance(EventLoop& loop, metrics::Registry& registry, const Options& options,
                   const log::Logger& log, std::unique_ptr<NvmeofTargets> nvmeof,
                   std::optional<net::TapDevice> tap, std::optional<mesh::Config> mesh)
    : parts_(std::make_unique<Parts>(loop, registry, options, log, std::move(nvmeof), std::move(tap),
                                     std::move(mesh))) {
    loop.set_worker([this] {
        bool more = parts_->card.step();
        more = parts_->services.step() || more;
        if (parts_->fabric) {
            parts_->fabric->step();
        }
        return more;
    });
    loop.set_poller([this] {
        const bool frames = parts_->tap && parts_->tap->poll();
        const bool messages = parts_->fabric && parts_->fabric->poll();
        return parts_->server.poll() || frames || messages;
    });
    if (options.backend.md5) {
        // OpenSSL reads its configuration file at its first digest, which must not happen in the sandbox.
        (void)net::PayloadDigest(log::Logger(log::null_sink(), "")).add({}, 0);
        parts_->segment.mover().digest_with(net::PayloadDigest(log.named("segment")));
    }
    log.info("version={} backend={} mac={}", ERNIC_VERSION, app::to_string(options.backend),
             net::to_string(options.mac));
}

Instance::~Instance() = default;

net::Faults& Instance::faults() {
    return parts_->faults;
}

net::Link& Instance::link() {
    return parts_->link;
}

void Instance::observe(net::Observer* observer) {
    parts_->segment.observe(observer);
}

const net::Bridge& Instance::bridge() const {
    return parts_->segment.bridge();
}

const mesh::Fabric* Instance::mesh() const {
    return parts_->fabric ? &*parts_->fabric : nullptr;
}

NvmeofTargets& Instance::nvmeof() {
    return parts_->services.nvmeof();
}

bool Instance::driver_attached() const {
    return parts_->card.driver_attached();
}

Status Instance::listen() {
    if (parts_->fabric) {
        if (const Status joined = parts_->fabric->start(); !joined) {
            return joined.error();
        }
    }
    return parts_->server.listen();
}

}  // namespace ernic::app
