// SPDX-License-Identifier: MIT
#include "ionic/card.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "ionic/limits.hpp"
#include "wire/pci.hpp"

namespace ernic::ionic {
namespace {

constexpr unsigned kRegisterBar = 0;
constexpr unsigned kDoorbellBar = 2;
constexpr std::uint64_t kRegisterBarSize = 0x10000;
/// What Linux gives an Ethernet interface; the driver tells the card only of changes.
constexpr std::uint32_t kDefaultMtu = 1500;
/// Above the window that belongs to the card's own registers. The table itself is kept by the VMM (see
/// pci::Msix).
constexpr std::uint32_t kMsixTableOffset = 0x8000;
constexpr std::uint32_t kMsixPbaOffset = 0xa000;

/// Calls `use(offset in block, part)` with the part of an access that falls into [start, end).
template <typename Span, typename Use>
void part_in(std::uint64_t offset, Span access, std::uint64_t start, std::uint64_t end, Use use) {
    const std::uint64_t from = std::max(offset, start);
    const std::uint64_t to = std::min(offset + access.size(), end);
    if (from < to) {
        use(static_cast<std::uint32_t>(from - start), access.subspan(from - offset, to - from));
    }
}

}  // namespace

Card::Options Card::complete(Options options) {
    std::string& serial = options.profile.serial_number;
    if (serial.empty()) {
        serial = "ERN";  // with the address it fits the 16 characters of a module's serial number
        for (const std::uint8_t byte : options.mac.bytes) {
            serial += fmt::format("{:02X}", byte);
        }
    }
    return options;
}

pci::ConfigParameters Card::config_parameters(const Options& options) {
    const Profile& profile = options.profile;
    pci::ConfigParameters parameters;
    parameters.vendor = profile.vendor_id;
    parameters.device = profile.device_id;
    parameters.subsystem_vendor = profile.subsystem_vendor_id;
    parameters.subsystem = profile.subsystem_id;
    parameters.revision = profile.asic_rev;
    parameters.bars = {};
    parameters.bars[kRegisterBar].size = kRegisterBarSize;
    parameters.bars[kDoorbellBar].size =
        std::uint64_t{profile.doorbell_pages} * wire::ionic::kDoorbellPageSize;
    parameters.msix.vectors = profile.interrupts;
    parameters.msix.bar = kRegisterBar;
    parameters.msix.table_offset = kMsixTableOffset;
    parameters.msix.pba_offset = kMsixPbaOffset;
    parameters.link_speed = static_cast<pci::LinkSpeed>(profile.pcie_generation);
    parameters.link_width = profile.pcie_width;
    for (const std::uint8_t byte : options.mac.bytes) {
        parameters.serial_number = parameters.serial_number << 8U | byte;
    }
    return parameters;
}

Card::Card(const Options& options, pci::Host& host, EventLoop& loop, metrics::Registry& registry,
           const log::Logger& log)
    : options_(complete(options)),
      host_(host),
      loop_(loop),
      log_(log.named("ionic")),
      config_(config_parameters(options_)),
      msix_(host, options_.profile.interrupts),
      interrupts_(msix_, options_.profile.interrupts),
      port_(options_.profile, host.memory(), stats_),
      lif_(options_.profile, options_.mac, host.memory(), interrupts_, stats_,
           options_.sink != nullptr ? *options_.sink : null_sink_),
      receiver_(lif_),
      admin_commands_(lif_, log_),
      device_commands_(options_.profile, lif_, port_, admin_commands_,
                       {.reset_card = [this] { reset_device(); },
                        .reset_lif = [this] { reset_lif(); },
                        .has_rdma = [this] { return rdma_ != nullptr; }},
                       log_),
      registers_(options_.profile, loop.clock(), device_commands_),
      doorbells_(lif_, options_.profile.doorbell_pages),
      stats_timer_(loop, [this] { refresh_stats(); }) {
    connect();
    register_in(registry);
}

void Card::connect() {
    config_.on_command([this](std::uint16_t command) {
        const bool master = (command & wire::pci::kCommandBusMaster) != 0;
        host_.memory().set_enabled(master);
        msix_.set_bus_master(master);
    });
    config_.on_msix_control([this](std::uint16_t control) { msix_.set_control(control); });
    config_.on_flr([this] {
        // The driver replays its settings after FLR, but not the MTU (ionic 7.2, ionic_restart_lif).
        const std::uint32_t mtu = mtu_;
        reset();
        set_mtu(mtu);
    });
    lif_.on_mtu([this](std::uint32_t mtu) { set_mtu(mtu); });
    port_.on_link_change([this](const LinkState& link) {
        log_.debug("link {} speed={}", link.up ? "up" : "down", link.speed);
        lif_.set_link(link);
    });
    interrupts_.on_event_unmask([this](std::uint16_t vector) {
        if (rdma_) {
            rdma_->vector_unmasked(vector);
        }
    });
    stats_.on_change([this] { arm_stats_refresh(); });
}

void Card::attach_rdma(std::unique_ptr<RdmaDevice> rdma) {
    rdma_ = std::move(rdma);
    admin_commands_.attach_rdma(rdma_.get());
    doorbells_.attach_rdma(rdma_.get());
}

bool Card::step() {
    const bool more = lif_.step(admin_commands_);
    return (rdma_ && rdma_->step()) || more;
}

void Card::bar_read(unsigned bar, std::uint64_t offset, MutableBytes out) {
    std::fill(out.begin(), out.end(), std::byte{0});
    if (bar != kRegisterBar) {
        return;  // doorbells are write-only
    }
    const std::uint64_t control_end =
        wire::ionic::kInterruptControlOffset + interrupts_.count() * sizeof(wire::ionic::InterruptRegisters);
    part_in(offset, out, 0, wire::ionic::kInterruptStatusOffset,
            [&](std::uint32_t at, MutableBytes part) { registers_.read(at, part); });
    part_in(offset, out, wire::ionic::kInterruptControlOffset, control_end,
            [&](std::uint32_t at, MutableBytes part) { interrupts_.read(at, part); });
    part_in(offset, out, kMsixPbaOffset, kRegisterBarSize,
            [&](std::uint32_t at, MutableBytes part) { msix_.read_pba(at, part); });
}

void Card::bar_write(unsigned bar, std::uint64_t offset, Bytes data) {
    if (bar == kDoorbellBar) {
        doorbells_.store(offset, data);
        if (!memory_checked_) {
            check_memory();
        }
        return;
    }
    if (bar != kRegisterBar) {
        return;
    }
    const std::uint64_t control_end =
        wire::ionic::kInterruptControlOffset + interrupts_.count() * sizeof(wire::ionic::InterruptRegisters);
    part_in(offset, data, 0, wire::ionic::kInterruptStatusOffset,
            [&](std::uint32_t at, Bytes part) { registers_.write(at, part); });
    part_in(offset, data, wire::ionic::kInterruptControlOffset, control_end,
            [&](std::uint32_t at, Bytes part) { interrupts_.write(at, part); });
}

void Card::reset() {
    log_.debug("function reset");
    reset_device();
    registers_.reset();
    // Tells the callbacks, so bus mastering and MSI-X are off afterwards.
    config_.reset();
    host_.memory().set_enabled(false);
    msix_.reset();
    set_mtu(kDefaultMtu);
    memory_checked_ = false;
}

void Card::set_mtu(std::uint32_t mtu) {
    mtu_ = mtu;
    if (rdma_) {
        rdma_->set_mtu(mtu);
    }
}

void Card::check_memory() {
    // The driver has certainly written its first admin command by now; the host compares what it and we see
    // there.
    if (const auto ring = lif_.admin_ring(); ring && !memory_checked_) {
        memory_checked_ = true;
        host_.verify_shared_memory(*ring);
    }
}

void Card::reset_device() {
    reset_lif();
    port_.reset();
}

void Card::reset_lif() {
    if (rdma_) {
        rdma_->reset();
    }
    lif_.reset();
    admin_commands_.addresses_changed();
    interrupts_.reset();
    stats_timer_.cancel();
    stats_.take_dirty();
}

void Card::arm_stats_refresh() {
    // Armed by a change and not re-armed without one: an idle card causes no wake-up.
    stats_timer_.arm(loop_.clock().now() + kStatsRefresh);
}

void Card::refresh_stats() {
    if (stats_.take_dirty()) {
        lif_.publish_stats();
        port_.publish_stats();
    }
}

void Card::register_in(metrics::Registry& registry) const {
    admin_commands_.register_in(registry);
    device_commands_.register_in(registry);
    doorbells_.register_in(registry);
    msix_.register_in(registry, "ionic.msix");
    receiver_.register_in(registry);
    stats_.register_in(registry);
}

}  // namespace ernic::ionic
