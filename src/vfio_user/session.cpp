// SPDX-License-Identifier: MIT
#include "vfio_user/session.hpp"

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "vfio_user/trace.hpp"
#include "wire/pci.hpp"

namespace ernic::vfio_user {

namespace w = wire::vfio_user;

Session::Session(UniqueFd socket, const Context& context)
    : function_(context.function),
      dma_(context.dma),
      irqs_(context.irqs),
      counters_(context.counters),
      limits_(context.limits),
      logger_(context.logger),
      connection_(std::move(socket), *this, context.counters, context.limits, context.logger),
      dma_reader_(context.loop, connection_),
      memory_check_(dma_reader_, context.dma.memory(), context.counters, context.limits, context.logger) {
    for (unsigned bar = 0; bar < pci::kBarCount; ++bar) {
        region_sizes_[w::kRegionBar0 + bar] = function_.bar_size(bar);
    }
    region_sizes_[w::kRegionConfig] = wire::pci::kConfigSize;
}

void Session::on_message(Message& message) {
    const Header& header = message.header;
    if (header.type() == Header::kTypeReply) {
        if (!dma_reader_.on_reply(header, message.payload)) {
            counters_.unexpected_replies.add();
        }
        return;
    }
    if (header.no_reply()) {
        counters_.posted.add();
    }
    if (const Outcome bad = dispatch(message)) {
        reject(header, *bad);
    }
}

Session::Outcome Session::dispatch(Message& message) {
    const Command command = message.header.code();
    if (message.header.type() != Header::kTypeCommand) {
        return Rejection{Reject::HeaderType, EINVAL};
    }
    if (!message.fds.empty() && command != Command::DmaMap && command != Command::DeviceSetIrqs) {
        return Rejection{Reject::Fds, EINVAL};
    }
    if (command == Command::Version) {
        return version(message);
    }
    if (!agreed_) {
        return Rejection{Reject::NotNegotiated, EINVAL};
    }
    switch (command) {
        case Command::RegionWrite:
            return region_write(message);
        case Command::RegionRead:
            return region_read(message);
        case Command::RegionWriteMulti:
            return write_multi(message);
        case Command::DmaMap:
            return dma_map(message);
        case Command::DmaUnmap:
            return dma_unmap(message);
        case Command::DeviceGetInfo:
            return device_info(message);
        case Command::DeviceGetRegionInfo:
            return region_info(message);
        case Command::DeviceGetRegionIoFds:
            return region_io_fds(message);
        case Command::DeviceGetIrqInfo:
            return irq_info(message);
        case Command::DeviceSetIrqs:
            return set_irqs(message);
        case Command::DeviceReset:
            return device_reset(message);
        case Command::DeviceFeature:
        case Command::MigDataRead:
        case Command::MigDataWrite:
            return Rejection{Reject::Unsupported, ENOTSUP};
        case Command::Version:
        case Command::DmaRead:
        case Command::DmaWrite:
            break;  // only a server sends the DMA commands
    }
    return Rejection{Reject::UnknownCommand, EINVAL};
}

void Session::reject(const Header& header, const Rejection& rejection) {
    counters_.add(rejection.reason);
    logger_.warn_limited(limits_.rejects[static_cast<std::size_t>(rejection.reason)],
                         "refused {}({}) id={} size={}: {}, {}", name(header.code()), header.command.get(),
                         header.id.get(), header.size.get(), name(rejection.reason),
                         std::strerror(rejection.error));
    connection_.reply_error(header, rejection.error);
    // A client that cannot negotiate has nothing to say that we could understand.
    if (!agreed_) {
        connection_.close_after_flush();
    }
}

Session::Outcome Session::version(const Message& message) {
    const auto wanted = agreed_ ? std::nullopt : parse_version(message.payload);
    if (!wanted) {
        return Rejection{Reject::Version, EINVAL};
    }
    agreed_ = wanted;
    const std::string text = version_text(*agreed_);
    const MutableBytes room = connection_.reply(message.header, sizeof(w::Version) + text.size() + 1);
    if (!room.empty()) {
        const w::Version ours{le16(w::kMajor), le16(w::kMinor)};
        std::memcpy(room.data(), &ours, sizeof(ours));
        std::memcpy(room.data() + sizeof(ours), text.c_str(), text.size() + 1);
    }
    logger_.info_limited(limits_.connected, "client connected: max_data_xfer_size={} write_multiple={}",
                         agreed_->max_data_transfer, agreed_->write_multiple);
    return std::nullopt;
}

Session::Outcome Session::device_info(const Message& message) {
    const auto request = read_value<w::DeviceInfo>(message.payload);
    if (!request) {
        return Rejection{Reject::ShortPayload, EINVAL};
    }
    if (request->argsz.get() < sizeof(w::DeviceInfo)) {
        return Rejection{Reject::Argsz, EINVAL};
    }
    const w::DeviceInfo info{le32(sizeof(w::DeviceInfo)), le32(w::DeviceInfo::kReset | w::DeviceInfo::kPci),
                             le32(w::kRegionCount), le32(w::kIrqCount)};
    connection_.reply_value(message.header, info);
    return std::nullopt;
}

/// No region carries the MMAP flag: a single one would make QEMU wait for an answer to every doorbell.
Session::Outcome Session::region_info(const Message& message) {
    const auto request = read_value<w::RegionInfo>(message.payload);
    if (!request) {
        return Rejection{Reject::ShortPayload, EINVAL};
    }
    if (request->argsz.get() < sizeof(w::RegionInfo)) {
        return Rejection{Reject::Argsz, EINVAL};
    }
    if (request->index.get() >= w::kRegionCount) {
        return Rejection{Reject::Index, EINVAL};
    }
    w::RegionInfo info{};
    info.argsz.set(sizeof(w::RegionInfo));
    info.index = request->index;
    info.size.set(region_sizes_[request->index.get()]);
    if (info.size.get() != 0) {
        info.flags.set(w::RegionInfo::kRead | w::RegionInfo::kWrite);
    }
    connection_.reply_value(message.header, info);
    return std::nullopt;
}

/// Answered with "no ioeventfds": doorbell values matter, and an eventfd does not carry them.
Session::Outcome Session::region_io_fds(const Message& message) {
    const auto request = read_value<w::RegionIoFds>(message.payload);
    if (!request) {
        return Rejection{Reject::ShortPayload, EINVAL};
    }
    if (request->argsz.get() < sizeof(w::RegionIoFds) || request->argsz.get() > agreed_->max_data_transfer) {
        return Rejection{Reject::Argsz, EINVAL};
    }
    if (request->flags.get() != 0 || request->count.get() != 0) {
        return Rejection{Reject::Flags, EINVAL};
    }
    if (request->index.get() >= w::kRegionCount || region_sizes_[request->index.get()] == 0) {
        return Rejection{Reject::Index, EINVAL};
    }
    const w::RegionIoFds none{le32(sizeof(w::RegionIoFds)), le32(0), request->index, le32(0)};
    connection_.reply_value(message.header, none);
    return std::nullopt;
}

Session::Outcome Session::irq_info(const Message& message) {
    const auto request = read_value<w::IrqInfo>(message.payload);
    if (!request) {
        return Rejection{Reject::ShortPayload, EINVAL};
    }
    if (request->argsz.get() < sizeof(w::IrqInfo)) {
        return Rejection{Reject::Argsz, EINVAL};
    }
    if (request->index.get() >= w::kIrqCount) {
        return Rejection{Reject::Index, EINVAL};
    }
    const auto count = irqs_.count(request->index.get());
    if (!count) {
        // Not a mistake of the client: it asks everybody, and this is how to say no.
        connection_.reply_error(message.header, EINVAL);
        return std::nullopt;
    }
    // Without NORESIZE, so that QEMU adds vectors one by one instead of re-installing all at each.
    const w::IrqInfo info{le32(sizeof(w::IrqInfo)), le32(w::IrqInfo::kEventfd), request->index, le32(*count)};
    connection_.reply_value(message.header, info);
    return std::nullopt;
}

/// DMA maps and eventfds stay: QEMU manages them separately from the device's state.
Session::Outcome Session::device_reset(const Message& message) {
    if (!message.payload.empty()) {
        return Rejection{Reject::PayloadSize, EINVAL};
    }
    counters_.resets.add();
    function_.reset();
    connection_.reply(message.header, 0);
    return std::nullopt;
}

}  // namespace ernic::vfio_user
