// SPDX-License-Identifier: MIT
#include "vfio_user/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace ernic::vfio_user {
namespace {

namespace w = wire::vfio_user;

/// The decisive fields of the commands one looks for when debugging.
std::string details(const w::Header& header, Bytes payload) {
    switch (header.code()) {
        case w::Command::RegionRead:
        case w::Command::RegionWrite: {
            const auto access = read_value<w::RegionAccess>(payload);
            if (!access) {
                return {};
            }
            std::string text = fmt::format(" region={} offset={:#x} count={}", access->region.get(),
                                           access->offset.get(), access->count.get());
            const Bytes data = payload.subspan(sizeof(w::RegionAccess));
            if (!data.empty() && data.size() <= sizeof(le64)) {
                le64 value(0);
                std::copy(data.begin(), data.end(), mutable_bytes_of(value).begin());
                text += fmt::format(" value={:#x}", value.get());
            }
            return text;
        }
        case w::Command::DmaMap: {
            const auto map = read_value<w::DmaMap>(payload);
            return map ? fmt::format(" iova={:#x} length={:#x} access={} offset={:#x}", map->iova.get(),
                                     map->size.get(), map->flags.get(), map->offset.get())
                       : std::string();
        }
        case w::Command::DmaUnmap: {
            const auto unmap = read_value<w::DmaUnmap>(payload);
            return unmap ? fmt::format(" iova={:#x} length={:#x} mode={}", unmap->iova.get(),
                                       unmap->size.get(), unmap->flags.get())
                         : std::string();
        }
        case w::Command::DeviceSetIrqs: {
            const auto set = read_value<w::IrqSet>(payload);
            return set ? fmt::format(" index={} action={:#x} start={} count={}", set->index.get(),
                                     set->flags.get(), set->start.get(), set->count.get())
                       : std::string();
        }
        case w::Command::DeviceGetRegionInfo:
        case w::Command::DeviceGetIrqInfo: {
            const auto info = read_value<w::IrqInfo>(payload);  // both begin with argsz, flags, index
            return info ? fmt::format(" index={}", info->index.get()) : std::string();
        }
        case w::Command::DmaRead:
        case w::Command::DmaWrite: {
            const auto access = read_value<w::DmaAccess>(payload);
            return access ? fmt::format(" address={:#x} count={}", access->address.get(), access->count.get())
                          : std::string();
        }
        default:
            return {};
    }
}

}  // namespace

std::string_view name(w::Command command) {
    switch (command) {
        case w::Command::Version:
            return "VERSION";
        case w::Command::DmaMap:
            return "DMA_MAP";
        case w::Command::DmaUnmap:
            return "DMA_UNMAP";
        case w::Command::DeviceGetInfo:
            return "DEVICE_GET_INFO";
        case w::Command::DeviceGetRegionInfo:
            return "DEVICE_GET_REGION_INFO";
        case w::Command::DeviceGetRegionIoFds:
            return "DEVICE_GET_REGION_IO_FDS";
        case w::Command::DeviceGetIrqInfo:
            return "DEVICE_GET_IRQ_INFO";
        case w::Command::DeviceSetIrqs:
            return "DEVICE_SET_IRQS";
        case w::Command::RegionRead:
            return "REGION_READ";
        case w::Command::RegionWrite:
            return "REGION_WRITE";
        case w::Command::DmaRead:
            return "DMA_READ";
        case w::Command::DmaWrite:
            return "DMA_WRITE";
        case w::Command::DeviceReset:
            return "DEVICE_RESET";
        case w::Command::RegionWriteMulti:
            return "REGION_WRITE_MULTI";
        case w::Command::DeviceFeature:
            return "DEVICE_FEATURE";
        case w::Command::MigDataRead:
            return "MIG_DATA_READ";
        case w::Command::MigDataWrite:
            return "MIG_DATA_WRITE";
    }
    return "?";
}

void trace(const log::Logger& logger, Direction direction, const w::Header& header, Bytes payload,
           std::size_t fds) {
    logger.debug("{} id={} {}({}) size={} flags={:#x} fds={}{}{}",
                 direction == Direction::Received ? "recv" : "send", header.id.get(), name(header.code()),
                 header.command.get(), header.size.get(), header.flags.get(), fds, details(header, payload),
                 header.failed() ? fmt::format(" errno={}", header.error.get()) : "");
}

}  // namespace ernic::vfio_user
