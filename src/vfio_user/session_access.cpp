// SPDX-License-Identifier: MIT
// The commands that reach the device's registers and the guest's memory map: the ones that come while the
// guest runs.
#include <cerrno>
#include <cstring>

#include "vfio_user/limits.hpp"
#include "vfio_user/session.hpp"

namespace ernic::vfio_user {

namespace w = wire::vfio_user;

Session::Outcome Session::check_access(const w::RegionAccess& access) const {
    if (access.region.get() >= w::kRegionCount) {
        return Rejection{Reject::Index, EINVAL};
    }
    const std::uint64_t size = region_sizes_[access.region.get()];
    if (access.count.get() > agreed_->max_data_transfer ||
        !Range::make(0, size)->contains(access.offset.get(), access.count.get())) {
        return Rejection{Reject::Range, EINVAL};
    }
    return std::nullopt;
}

void Session::read_region(const w::RegionAccess& access, MutableBytes out) {
    const std::uint32_t region = access.region.get();
    if (out.empty()) {
        return;
    }
    if (region == w::kRegionConfig) {
        function_.config_read(static_cast<std::uint32_t>(access.offset.get()), out);
    } else {
        function_.bar_read(region - w::kRegionBar0, access.offset.get(), out);
    }
}

void Session::write_region(std::uint32_t region, std::uint64_t offset, Bytes data) {
    if (data.empty()) {
        return;
    }
    if (region == w::kRegionConfig) {
        function_.config_write(static_cast<std::uint32_t>(offset), data);
    } else {
        function_.bar_write(region - w::kRegionBar0, offset, data);
    }
}

Session::Outcome Session::region_read(const Message& message) {
    const auto access = read_value<w::RegionAccess>(message.payload);
    if (!access) {
        return Rejection{Reject::ShortPayload, EINVAL};
    }
    if (message.payload.size() != sizeof(w::RegionAccess)) {
        return Rejection{Reject::PayloadSize, EINVAL};
    }
    if (const Outcome bad = check_access(*access)) {
        return bad;
    }
    const MutableBytes room =
        connection_.reply(message.header, sizeof(w::RegionAccess) + access->count.get());
    if (!room.empty()) {
        std::memcpy(room.data(), &*access, sizeof(w::RegionAccess));
        read_region(*access, room.subspan(sizeof(w::RegionAccess)));
    }
    return std::nullopt;
}

/// The doorbell path: no allocation, no logging, straight into the device.
Session::Outcome Session::region_write(const Message& message) {
    const auto access = read_value<w::RegionAccess>(message.payload);
    if (!access) {
        return Rejection{Reject::ShortPayload, EINVAL};
    }
    const Bytes data = message.payload.subspan(sizeof(w::RegionAccess));
    if (data.size() != access->count.get()) {
        return Rejection{Reject::PayloadSize, EINVAL};
    }
    if (const Outcome bad = check_access(*access)) {
        return bad;
    }
    write_region(access->region.get(), access->offset.get(), data);
    connection_.reply_value(message.header, *access);
    return std::nullopt;
}

/// Entries are executed in order. A bad entry is refused alone and the others are still executed, as if each
/// had come in a message of its own; the count in the reply says that all were looked at.
Session::Outcome Session::write_multi(const Message& message) {
    const auto head = read_value<w::WriteMulti>(message.payload);
    if (!head) {
        return Rejection{Reject::ShortPayload, EINVAL};
    }
    if (!agreed_->write_multiple) {
        return Rejection{Reject::Unsupported, ENOTSUP};
    }
    ByteReader reader(message.payload.subspan(sizeof(w::WriteMulti)));
    const std::uint64_t count = head->count.get();
    if (count > kMaxMultiWrites || reader.rest().size() != count * sizeof(w::MultiWrite)) {
        return Rejection{Reject::PayloadSize, EINVAL};
    }
    Outcome first_bad;
    while (const auto entry = reader.read<w::MultiWrite>()) {
        const w::RegionAccess access{entry->offset, entry->region, entry->count};
        Outcome bad = check_access(access);
        if (!bad && access.count.get() > entry->data.size()) {
            bad = Rejection{Reject::PayloadSize, EINVAL};
        }
        if (!bad) {
            write_region(access.region.get(), access.offset.get(),
                         Bytes(entry->data).first(access.count.get()));
        } else if (!first_bad) {
            first_bad = bad;
        }
    }
    if (!first_bad) {
        connection_.reply_value(message.header, *head);
    }
    return first_bad;
}

Session::Outcome Session::dma_map(Message& message) {
    const auto request = read_value<w::DmaMap>(message.payload);
    if (!request) {
        return Rejection{Reject::ShortPayload, EINVAL};
    }
    if (message.fds.size() > 1) {
        return Rejection{Reject::Fds, EINVAL};
    }
    if (const Outcome bad =
            dma_.map(*request, message.fds.empty() ? UniqueFd() : std::move(message.fds.front()))) {
        return bad;
    }
    connection_.reply(message.header, 0);
    return std::nullopt;
}

Session::Outcome Session::dma_unmap(const Message& message) {
    const auto request = read_value<w::DmaUnmap>(message.payload);
    if (!request) {
        return Rejection{Reject::ShortPayload, EINVAL};
    }
    if (const Outcome bad = dma_.unmap(*request)) {
        return bad;
    }
    connection_.reply_value(message.header, *request);
    return std::nullopt;
}

Session::Outcome Session::set_irqs(Message& message) {
    const auto request = read_value<w::IrqSet>(message.payload);
    if (!request) {
        return Rejection{Reject::ShortPayload, EINVAL};
    }
    if (const Outcome bad = irqs_.set(*request, message.payload.subspan(sizeof(w::IrqSet)), message.fds)) {
        return bad;
    }
    connection_.reply(message.header, 0);
    return std::nullopt;
}

}  // namespace ernic::vfio_user
