// SPDX-License-Identifier: MIT
#include "nvmeof/controller.hpp"

#include <algorithm>
#include <utility>

#include "nvmeof/command.hpp"
#include "nvmeof/queue.hpp"
#include "nvmeof/subsystem.hpp"

namespace ernic::nvmeof {

namespace nvme = wire::nvme;
namespace property = wire::nvme::property;

namespace {

/// CAP: queue entries, contiguous queues, 7.5 s to become ready, the NVM command set and others, 4 KiB pages.
constexpr std::uint64_t kCapabilities = (kMaxEntries - 1U) | std::uint64_t{1} << 16U |
                                        std::uint64_t{15} << 24U | std::uint64_t{1} << 37U |
                                        std::uint64_t{1} << 43U;
/// Reservation notifications kept for a host that does not read them.
constexpr std::size_t kReservationNotices = 128;
/// NSIDs that the Changed Namespace List holds.
constexpr std::size_t kChangedNamespaces = 1024;

bool acceptable(std::uint32_t configuration) {
    const auto field = [configuration](unsigned shift, unsigned bits) {
        return configuration >> shift & ((1U << bits) - 1U);
    };
    const std::uint32_t command_set = field(property::kCommandSetShift, 3);
    return field(property::kSubmissionSizeShift, 4) == 6 && field(property::kCompletionSizeShift, 4) == 4 &&
           field(property::kPageSizeShift, 4) == 0 && field(property::kArbitrationShift, 3) == 0 &&
           (command_set == 0 || command_set == 6);
}

}  // namespace

Controller::Controller(Runtime& runtime, Subsystem& subsystem, const Path& path, std::uint16_t id,
                       HostIdentity host, std::uint32_t keep_alive)
    : runtime_(runtime),
      subsystem_(subsystem),
      path_(path),
      id_(id),
      host_(std::move(host)),
      granted_queues_(subsystem.max_io_queues()),
      keep_alive_(keep_alive),
      timer_(runtime.loop, [this] { check_keep_alive(); }) {
    runtime_.counters.controllers.add();
}

Controller::~Controller() = default;

std::optional<std::uint64_t> Controller::property(std::uint32_t offset, bool wide) const {
    if (wide) {
        return offset == property::kCapabilities ? std::optional(kCapabilities) : std::nullopt;
    }
    switch (offset) {
        case property::kVersion:
            return kVersion;
        case property::kConfiguration:
            return configuration_;
        case property::kControllerStatus:
            return status_;
        case property::kSubsystemReset:
        case property::kReadyTimeouts:
            return 0;
        default:
            return std::nullopt;
    }
}

bool Controller::set_property(std::uint32_t offset, bool wide, std::uint64_t value) {
    if (wide || offset != property::kConfiguration) {
        return false;
    }
    configure(static_cast<std::uint32_t>(value));
    return true;
}

void Controller::configure(std::uint32_t value) {
    const std::uint32_t before = std::exchange(configuration_, value);
    const bool enabled = (value & property::kEnable) != 0;
    const bool was_enabled = (before & property::kEnable) != 0;
    if (enabled && !was_enabled) {
        enable(value);
    } else if (!enabled && was_enabled) {
        reset();
    }
    const std::uint32_t shutdown = value >> property::kShutdownShift & 3U;
    const std::uint32_t earlier = before >> property::kShutdownShift & 3U;
    if (shutdown != 0 && earlier == 0) {
        shut_down();
    } else if (shutdown == 0 && earlier != 0) {
        status_ &= ~property::kShutdownMask;
    }
}

void Controller::enable(std::uint32_t value) {
    if (!acceptable(value)) {
        status_ |= property::kFatal;
        return;
    }
    status_ = property::kReady;
    ready_ = true;
    arm_keep_alive();
}

void Controller::reset() {
    ready_ = false;
    status_ = 0;
    timer_.cancel();
    events.abort_all();
    events = AsyncEvents();
    features = Features();
    granted_queues_ = subsystem_.max_io_queues();
    changed_.clear();
    notices_.clear();
    reservation_masks.clear();
}

void Controller::shut_down() {
    // Hosts flush what they want to keep before, and a file's data is the kernel's once it is written.
    timer_.cancel();
    status_ |= property::kShutdownComplete;
}

void Controller::set_keep_alive(std::uint32_t milliseconds) {
    const std::uint64_t units = (std::uint64_t{milliseconds} + kKeepAliveUnit - 1) / kKeepAliveUnit;
    keep_alive_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(units * kKeepAliveUnit, UINT32_MAX));
    arm_keep_alive();
}

void Controller::arm_keep_alive() {
    silent_ = false;
    warned_ = false;
    if (keep_alive_ == 0 || !ready_) {
        timer_.cancel();
        return;
    }
    // Looked at twice in a period, so that commands need only set a flag: a silent host's controller ends
    // after one to one and a half periods.
    const Nanoseconds half = (Nanoseconds{keep_alive_} + kKeepAliveUnit) * 500'000U;
    silent_ = true;
    timer_.arm(runtime_.loop.clock().now() + half);
}

void Controller::check_keep_alive() {
    if (silent_ && warned_) {
        runtime_.counters.expired_controllers.add();
        runtime_.log.warn("{}: host {} has been silent for {} ms, controller {} ends", subsystem_.nqn(),
                          host_.nqn, keep_alive_, id_);
        ready_ = false;
        status_ |= property::kFatal;
        disconnect();
        return;
    }
    const bool silent = silent_;
    arm_keep_alive();
    warned_ = silent;
}

bool Controller::has_io_queues() const {
    return std::any_of(queues_.begin() + 1, queues_.end(),
                       [](const Queue* queue) { return queue != nullptr; });
}

void Controller::attach(Queue& queue) {
    queues_[queue.id()] = &queue;
}

void Controller::detach(Queue& queue) {
    queues_[queue.id()] = nullptr;
    for (Command& command : queue.commands()) {
        events.forget(command);
    }
    if (queue.id() == 0) {
        ready_ = false;
        timer_.cancel();
        disconnect();
        subsystem_.remove(*this);
    }
}

void Controller::disconnect() {
    for (Queue* queue : queues_) {
        if (queue != nullptr) {
            queue->close();
        }
    }
}

std::uint16_t Controller::note_error(const Command& command, std::uint16_t status) {
    nvme::ErrorEntry entry{};
    entry.queue_id.set(command.queue().id());
    entry.command_id.set(command.id());
    entry.status.set(static_cast<std::uint16_t>(status << 1U));
    entry.parameter.set(0xffff);
    entry.transport = nvme::ErrorEntry::kTransportRdma;
    if (command.queue().id() != 0) {
        entry.lba.set(command.quad(10));
        entry.nsid.set(command.entry().nsid.get());
    }
    errors.add(entry);
    return nvme::kMore;
}

void Controller::reservation_changed(std::uint32_t nsid, std::uint8_t type) {
    const auto mask = reservation_masks.find(nsid);
    if (notices_.size() == kReservationNotices ||
        (mask != reservation_masks.end() && (mask->second >> type & 1U) != 0)) {
        return;
    }
    nvme::ReservationNotice notice{};
    notice.count.set(++notice_count_);
    notice.type = type;
    notice.nsid.set(nsid);
    notices_.push_back(notice);
    events.raise(AsyncEvents::Kind::Reservation);
}

nvme::ReservationNotice Controller::reservation_notice() const {
    if (notices_.empty()) {
        return {};
    }
    nvme::ReservationNotice notice = notices_.front();
    notice.more = static_cast<std::uint8_t>(notices_.size() - 1);
    return notice;
}

void Controller::drop_reservation_notice() {
    if (!notices_.empty()) {
        notices_.pop_front();
    }
}

void Controller::namespace_changed(std::uint32_t nsid) {
    if (changed_.size() > kChangedNamespaces ||
        std::find(changed_.begin(), changed_.end(), nsid) != changed_.end()) {
        return;
    }
    changed_.push_back(nsid);
    events.raise(AsyncEvents::Kind::Namespaces);
}

}  // namespace ernic::nvmeof
