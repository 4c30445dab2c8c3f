// SPDX-License-Identifier: MIT
#include "vfio_user/dma_map.hpp"

#include <cerrno>
#include <utility>

#include "vfio_user/limits.hpp"

namespace ernic::vfio_user {
namespace {

namespace w = wire::vfio_user;

constexpr std::uint64_t kPage = 4096;

Rejection rejection(Errc code) {
    switch (code) {
        case Errc::NoSpace:
            return {Reject::Limit, ENOSPC};
        case Errc::PermissionDenied:
            return {Reject::File, EACCES};
        case Errc::Io:
            return {Reject::File, ENOMEM};
        default:
            return {Reject::File, EINVAL};
    }
}

}  // namespace

DmaMap::DmaMap(EventLoop& loop, Counters& counters, log::Logger logger)
    : loop_(loop),
      counters_(counters),
      logger_(std::move(logger)),
      release_timer_(loop, [this] { files_.release_unused(0); }) {
}

std::optional<Rejection> DmaMap::check(const w::DmaMap& request, bool with_fd) const {
    const std::uint32_t flags = request.flags.get();
    constexpr std::uint32_t kNeedFd = w::DmaMap::kMustMmap | w::DmaMap::kMustFileIo;
    if (request.argsz.get() < sizeof(w::DmaMap)) {
        return Rejection{Reject::Argsz, EINVAL};
    }
    // File I/O instead of a mapping is not something this server does, so "must use it" cannot be honoured.
    if ((flags & ~(w::DmaMap::kRead | w::DmaMap::kWrite | kNeedFd)) != 0 ||
        ((flags & kNeedFd) != 0 && !with_fd) || (flags & w::DmaMap::kMustFileIo) != 0) {
        return Rejection{Reject::Flags, EINVAL};
    }
    const auto range = Range::make(request.iova.get(), request.size.get());
    if (!range || range->empty()) {
        return Rejection{Reject::Range, EINVAL};
    }
    if (with_fd &&
        (request.offset.get() % kPage != 0 || !Range::make(request.offset.get(), request.size.get()))) {
        return Rejection{Reject::Range, EINVAL};
    }
    return std::nullopt;
}

bool DmaMap::overlaps(const Range& range) const {
    auto next = entries_.lower_bound(range.start());
    if (next != entries_.end() && next->second.range.overlaps(range)) {
        return true;
    }
    return next != entries_.begin() && std::prev(next)->second.range.overlaps(range);
}

std::optional<Rejection> DmaMap::map(const w::DmaMap& request, UniqueFd fd) {
    if (const auto bad = check(request, fd.valid())) {
        return bad;
    }
    Entry entry{*Range::make(request.iova.get(), request.size.get()), request.flags.get(),
                request.offset.get(), nullptr};
    const bool readable = (entry.flags & w::DmaMap::kRead) != 0;
    const bool writable = (entry.flags & w::DmaMap::kWrite) != 0;
    const auto existing = entries_.find(entry.range.start());
    const bool may_be_repeated = existing != entries_.end() && existing->second.range == entry.range &&
                                 existing->second.flags == entry.flags &&
                                 existing->second.offset == entry.offset;
    if (!may_be_repeated && overlaps(entry.range)) {
        return Rejection{Reject::Overlap, EEXIST};
    }
    if (!may_be_repeated && entries_.size() >= kMaxDmaMaps) {
        return Rejection{Reject::Limit, ENOSPC};
    }
    if (fd.valid()) {
        auto file = files_.map(fd.get(), entry.offset, entry.range.length(), writable);
        if (file.ok()) {
            entry.file = std::move(*file);
        } else {
            logger_.warn_limited(limiter_, "DMA map at {:#x}, {:#x} bytes: {}", entry.range.start(),
                                 entry.range.length(), file.error().message);
            // Another device's memory, say: the VM may do without our reaching it.
            if (file.error().code != Errc::Unsupported || (entry.flags & w::DmaMap::kMustMmap) != 0) {
                return rejection(file.error().code);
            }
        }
    }
    if (may_be_repeated) {
        return existing->second.file == entry.file ? std::nullopt
                                                   : std::optional(Rejection{Reject::Overlap, EEXIST});
    }
    std::byte* host = entry.file ? entry.file->at(entry.offset) : nullptr;
    memory_.insert({entry.range, host, readable, writable});
    counters_.dma_maps.add();
    if (host == nullptr) {
        counters_.dma_unreachable.add();
    }
    entries_.emplace(entry.range.start(), std::move(entry));
    return std::nullopt;
}

std::optional<Rejection> DmaMap::unmap(const w::DmaUnmap& request) {
    const std::uint32_t flags = request.flags.get();
    if (request.argsz.get() < sizeof(w::DmaUnmap) || request.argsz.get() > kMaxDataTransfer) {
        return Rejection{Reject::Argsz, EINVAL};
    }
    if (flags != 0 && flags != w::DmaUnmap::kAll) {
        return Rejection{Reject::Flags,
                         EINVAL};  // dirty page bitmaps are for migration, which we do not offer
    }
    if (flags == w::DmaUnmap::kAll) {
        if (request.iova.get() != 0 || request.size.get() != 0) {
            return Rejection{Reject::Range, EINVAL};
        }
        memory_.publish({});
        counters_.dma_unmaps.add(entries_.size());
        entries_.clear();
        files_became_unused();
        return std::nullopt;
    }
    const auto found = entries_.find(request.iova.get());
    if (found == entries_.end() || found->second.range.length() != request.size.get()) {
        return Rejection{Reject::NotMapped, ENOENT};
    }
    memory_.erase(found->first);
    entries_.erase(found);
    counters_.dma_unmaps.add();
    files_became_unused();
    return std::nullopt;
}

void DmaMap::files_became_unused() {
    files_.release_unused(kMaxUnusedFiles);
    if (files_.unused() != 0) {
        release_timer_.arm(loop_.clock().now() + kUnusedFileGrace);
    }
}

void DmaMap::clear() {
    memory_.publish({});
    entries_.clear();
    files_.release_unused(0);
    release_timer_.cancel();
}

}  // namespace ernic::vfio_user
