// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>

#include "nvmeof/admin_commands.hpp"
#include "nvmeof/command_effects.hpp"
#include "nvmeof/controller.hpp"
#include "nvmeof/discovery_log.hpp"
#include "nvmeof/identify_data.hpp"
#include "nvmeof/log_window.hpp"
#include "nvmeof/queue.hpp"
#include "nvmeof/subsystem.hpp"
#include "nvmeof/target.hpp"
#include "wire/nvme_log.hpp"

namespace ernic::nvmeof {

namespace nvme = wire::nvme;
using nvme::LogPage;
using nvme::Status;

namespace {

/// More than any log page has; asking for more is a mistake.
constexpr std::uint64_t kMaxLogBytes = 1U << 20U;

/// The fields of Get Log Page.
struct Request {
    explicit Request(const Command& command)
        : page(static_cast<LogPage>(command.dword(10) & 0xffU)),
          specific(static_cast<std::uint8_t>(command.dword(10) >> 8U & 0x7fU)),
          retain((command.dword(10) & 0x8000U) != 0),
          bytes(((std::uint64_t{command.dword(11) & 0xffffU} << 16U | command.dword(10) >> 16U) + 1) * 4),
          offset(command.quad(12)) {}

    LogPage page;
    std::uint8_t specific;
    bool retain;
    std::uint64_t bytes;
    std::uint64_t offset;
};

void errors(const Controller& controller, LogWindow& log) {
    for (std::size_t i = 0; i < kErrorEntries; ++i) {
        log.add(bytes_of(controller.errors.newest(i)));
    }
}

/// Sums of what the namespaces of `subsystem` have done; only `nsid`, unless that means all.
void health(const Controller& controller, std::uint32_t nsid, LogWindow& log) {
    constexpr std::uint16_t kRoomTemperature = 300;
    constexpr std::uint64_t kUnit = 512'000;
    nvme::HealthLog data{};
    std::uint64_t read = 0;
    std::uint64_t written = 0;
    std::uint64_t reads = 0;
    std::uint64_t writes = 0;
    std::uint64_t media_errors = 0;
    for (const auto& space : controller.subsystem().namespaces()) {
        if (space == nullptr || (nsid != 0 && nsid != nvme::kEveryNamespace && nsid != space->id())) {
            continue;
        }
        read += space->counters.read_bytes.value();
        written += space->counters.written_bytes.value();
        reads += space->counters.reads.value();
        writes += space->counters.writes.value();
        media_errors += space->counters.media_errors.value();
    }
    data.temperature.set(kRoomTemperature);
    data.spare = 100;
    data.spare_threshold = 10;
    data.units_read[0].set((read + kUnit - 1) / kUnit);
    data.units_written[0].set((written + kUnit - 1) / kUnit);
    data.reads[0].set(reads);
    data.writes[0].set(writes);
    data.power_cycles[0].set(1);
    data.power_on_hours[0].set((controller.runtime().loop.clock().now() - controller.subsystem().started()) /
                               3'600'000'000'000U);
    data.media_errors[0].set(media_errors);
    data.error_entries[0].set(controller.errors.count());
    log.add(bytes_of(data));
}

void firmware(LogWindow& log) {
    nvme::FirmwareLog data{};
    data.active = 1;
    put_text(data.revisions[0], kFirmware, ' ');
    log.add(bytes_of(data));
}

void changed_namespaces(Controller& controller, LogWindow& log) {
    std::array<le32, 1024> list{};
    std::vector<std::uint32_t> ids = controller.changed_namespaces();
    if (ids.size() > list.size()) {
        ids = {nvme::kEveryNamespace};
    }
    std::sort(ids.begin(), ids.end());
    for (std::size_t i = 0; i < ids.size(); ++i) {
        list[i].set(ids[i]);
    }
    log.add(bytes_of(list));
}

/// `groups_only`: without the ids of the namespaces.
void ana(const Controller& controller, bool groups_only, LogWindow& log) {
    const Path& path = controller.path();
    const std::uint64_t changes = path.changes() + controller.subsystem().list_changes();
    nvme::AnaHeader header{};
    header.change_count.set(changes);
    header.groups.set(1);
    log.add(bytes_of(header));
    std::vector<le32> ids;
    for (const auto& space : controller.subsystem().namespaces()) {
        if (space != nullptr && !groups_only) {
            ids.emplace_back(space->id());
        }
    }
    nvme::AnaGroup group{};
    group.id.set(kAnaGroup);
    group.namespaces.set(static_cast<std::uint32_t>(ids.size()));
    group.change_count.set(changes);
    group.state = path.state();
    log.add(bytes_of(group));
    for (const le32& id : ids) {
        log.add(bytes_of(id));
    }
}

void supported_pages(bool discovery, LogWindow& log) {
    constexpr std::uint32_t kSupported = 0x3;  // with offsets
    std::array<le32, 256> list{};
    const auto add = [&list](LogPage page) { list[static_cast<std::size_t>(page)].set(kSupported); };
    add(LogPage::SupportedPages);
    add(LogPage::Errors);
    add(LogPage::Health);
    if (discovery) {
        add(LogPage::Discovery);
    } else {
        for (const LogPage page :
             {LogPage::FirmwareSlots, LogPage::ChangedNamespaces, LogPage::CommandEffects,
              LogPage::FeatureEffects, LogPage::ReservationNotices, LogPage::Ana}) {
            add(page);
        }
    }
    log.add(bytes_of(list));
}

/// False when there is no such page.
bool write_page(Command& command, const Request& request, LogWindow& log) {
    Controller& controller = command.controller();
    const bool discovery = controller.subsystem().discovery();
    switch (request.page) {
        case LogPage::SupportedPages:
            supported_pages(discovery, log);
            return true;
        case LogPage::Errors:
            errors(controller, log);
            return true;
        case LogPage::Health:
            health(controller, command.entry().nsid.get(), log);
            return true;
        case LogPage::Discovery:
            if (discovery) {
                discovery_log(command.queue().target(), log);
            }
            return discovery;
        default:
            break;
    }
    if (discovery) {
        return false;
    }
    switch (request.page) {
        case LogPage::FirmwareSlots:
            firmware(log);
            return true;
        case LogPage::ChangedNamespaces:
            changed_namespaces(controller, log);
            return true;
        case LogPage::CommandEffects:
            log.add(bytes_of(command_effects()));
            return true;
        case LogPage::ReservationNotices:
            log.add(bytes_of(controller.reservation_notice()));
            return true;
        case LogPage::Ana:
            ana(controller, (request.specific & nvme::AnaGroup::kGroupsOnly) != 0, log);
            return true;
        case LogPage::FeatureEffects:
            log.add(bytes_of(feature_effects()));
            return true;
        default:
            return false;
    }
}

}  // namespace

void get_log_page(Command& command) {
    const Request request(command);
    if (request.offset % 4 != 0 || request.bytes > kMaxLogBytes || command.data_in_capsule()) {
        return command.finish(Status::InvalidField);
    }
    const auto bytes =
        static_cast<std::size_t>(std::min<std::uint64_t>(request.bytes, command.data_length()));
    if (bytes == 0) {
        return command.finish(Status::SglLengthInvalid);
    }
    if (!command.take_buffer(bytes, get_log_page)) {
        return;
    }
    LogWindow log(command.buffer(), request.offset, bytes);
    if (!write_page(command, request, log)) {
        return command.finish(Status::InvalidLogPage);
    }
    if (request.offset > log.size()) {
        return command.finish(Status::InvalidField);
    }
    log.pad();
    Controller& controller = command.controller();
    const auto page = static_cast<std::uint8_t>(request.page);
    command.send(bytes);
    if (!request.retain) {
        if (request.page == LogPage::ChangedNamespaces) {
            controller.clear_changed_namespaces();
        }
        if (request.page == LogPage::ReservationNotices) {
            controller.drop_reservation_notice();
        }
        controller.events.log_read(page);
    }
}

}  // namespace ernic::nvmeof
