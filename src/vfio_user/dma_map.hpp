// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "base/event_loop.hpp"
#include "base/fd.hpp"
#include "base/log.hpp"
#include "mem/guest_memory.hpp"
#include "vfio_user/counters.hpp"
#include "vfio_user/file_cache.hpp"
#include "wire/vfio_user.hpp"

namespace ernic::vfio_user {

/// The client's DMA maps, and the only writer of the mem::GuestMemory the device looks addresses up in.
///
/// Order at unmap: the piece first leaves GuestMemory (whose generation changes), only then may its file be
/// unmapped, and only then is the client answered. As the device runs on this same thread, no access is under
/// way at that moment. Thread: device.
class DmaMap {
  public:
    DmaMap(EventLoop& loop, Counters& counters, log::Logger logger);

    /// DMA_MAP. `fd` may be absent: such memory exists but cannot be touched. Nothing changes on failure.
    std::optional<Rejection> map(const wire::vfio_user::DmaMap& request, UniqueFd fd);

    /// DMA_UNMAP; must name one map exactly, or all of them with the flag for it. Nothing changes on failure.
    std::optional<Rejection> unmap(const wire::vfio_user::DmaUnmap& request);

    /// The client has left: nothing is reachable and nothing stays mapped.
    void clear();

    [[nodiscard]] mem::GuestMemory& memory() { return memory_; }
    [[nodiscard]] std::size_t size() const { return entries_.size(); }
    [[nodiscard]] const FileCache& files() const { return files_; }

  private:
    struct Entry {
        Range range;
        std::uint32_t flags;
        std::uint64_t offset;
        std::shared_ptr<MappedFile> file;  // null without usable fd
    };

    [[nodiscard]] bool overlaps(const Range& range) const;
    [[nodiscard]] std::optional<Rejection> check(const wire::vfio_user::DmaMap& request, bool with_fd) const;
    void files_became_unused();

    EventLoop& loop_;
    Counters& counters_;
    log::Logger logger_;
    log::Limiter limiter_;
    FileCache files_;
    std::map<std::uint64_t, Entry> entries_;  // by first address
    mem::GuestMemory memory_;
    Timer release_timer_;
};

}  // namespace ernic::vfio_user
