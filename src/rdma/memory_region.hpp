// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/slot_table.hpp"
#include "mem/guest_memory.hpp"
#include "mem/ring.hpp"
#include "mem/table_copy.hpp"
#include "mem/table_pool.hpp"
#include "rdma/types.hpp"

namespace ernic::rdma {

/// A memory region or memory window as the key table knows it.
struct MemoryRegion {
    enum class Kind : std::uint8_t { User, FastRegister, WindowType1, WindowType2 };

    Kind kind = Kind::User;
    /// False while a fast-register region or a window is not bound to memory.
    bool valid = false;
    std::uint8_t tag = 0;
    std::uint32_t pd = 0;
    AccessRights rights;
    std::uint64_t va = 0;
    std::uint64_t length = 0;
    /// Regions: added to (address - va) to get the offset into `pages`.
    std::uint64_t page_offset = 0;
    mem::PageList pages;
    /// Windows: index of the region they are bound to, and that region's identity at the time.
    std::uint32_t parent = 0;
    std::uint64_t parent_serial = 0;
    /// Type 2 windows belong to the QP that bound them.
    std::uint32_t qpn = 0;
    /// Differs for every creation or registration, so that a window notices a replaced parent.
    std::uint64_t serial = 0;

    [[nodiscard]] bool is_window() const { return kind == Kind::WindowType1 || kind == Kind::WindowType2; }
};

/// What an access through a key wants to do.
enum class Use : std::uint8_t { LocalRead, LocalWrite, RemoteRead, RemoteWrite, RemoteAtomic };

/// Why an access was refused.
enum class KeyVerdict : std::uint8_t { Ok, BadKey, WrongPd, OutOfRange, NoRight, NotMapped };

/// The key table: key = index << 8 | tag, O(1) lookup, every access checked for key, PD, range and rights,
/// and only then turned into host bytes. Thread: device.
class MemoryTable {
  public:
    /// `count` keys (index 0 is reserved); page tables, those of rings included, may together hold at most
    /// `page_entries` entries.
    MemoryTable(mem::GuestMemory& memory, std::uint32_t count, std::uint64_t page_entries);

    /// Creates the region or window of `key`. Fails: false for a bad index, an index in use, or no room for
    /// its pages.
    bool create(std::uint32_t key, MemoryRegion region);
    /// Whether create() would do it for a region with `entries` page table entries.
    [[nodiscard]] bool can_create(std::uint32_t key, std::size_t entries) const;
    /// Looks up by index only: tags change after creation. Destroying what does not exist is not an error.
    void destroy(std::uint32_t key);
    /// Forgets all keys and reservations.
    void clear();

    /// Where the tables of regions and rings come from.
    mem::TablePool& tables() { return tables_; }
    /// Gives back a little of the host memory of what has been destroyed or forgotten; true while there is
    /// more.
    bool give_back();

    /// Sets entries aside for the page table of a ring, so that rings cannot take more host memory than was
    /// advertised. Fails: false when there are not enough left.
    [[nodiscard]] bool reserve(std::size_t entries);
    /// Gives back what was reserved.
    void release(std::size_t entries) { page_entries_used_ -= entries; }

    /// Who uses a key: the PD and number of its QP, and whether key 0 (plain bus addresses) is allowed.
    struct User {
        std::uint32_t pd;
        std::uint32_t qpn;
        bool privileged;
    };

    /// Appends the host bytes of [va, va + length) as seen through `key`.
    KeyVerdict append(const User& user, std::uint32_t key, std::uint64_t va, std::uint64_t length, Use use,
                      mem::SpanList& out) const;

    /// Only the checks of append(), for a whole message before its first byte is moved.
    [[nodiscard]] KeyVerdict check(const User& user, std::uint32_t key, std::uint64_t va,
                                   std::uint64_t length, Use use) const;

    /// REG_MR: gives a fast-register region its memory, rights and new tag. A long page table is copied in
    /// pieces, one table of all users at a time. Nullopt: there is more to copy, or another one's turn has to
    /// end first; call again with the same request, or abandon() it. `copied`: the entries this call copied.
    std::optional<CompletionStatus> register_pages(const User& user, const WorkRequest& request,
                                                   std::uint32_t& copied);
    /// The queue pair does not go on with a registration, if it had begun one.
    void abandon(std::uint32_t qpn);
    /// LOCAL_INV (local) or SEND_INV (remote): the key stops being valid.
    CompletionStatus invalidate(const User& user, std::uint32_t key);
    /// BIND_MW.
    CompletionStatus bind_window(const User& user, const WorkRequest& request);

    [[nodiscard]] std::uint64_t page_entries_used() const { return page_entries_used_; }
    [[nodiscard]] std::uint32_t count() const { return regions_.count(); }

  private:
    [[nodiscard]] MemoryRegion* at(std::uint32_t key) const;
    [[nodiscard]] KeyVerdict find(const User& user, std::uint32_t key, std::uint64_t va, std::uint64_t length,
                                  Use use, const MemoryRegion*& region) const;

    /// A page table that is being copied, and the queue pair it is for.
    struct Incoming {
        std::uint32_t qpn;
        mem::TableCopy table;
    };

    mem::GuestMemory& memory_;
    mem::TablePool tables_;
    SlotTable<MemoryRegion> regions_;
    std::optional<Incoming> incoming_;
    std::uint64_t page_entries_limit_;
    std::uint64_t page_entries_used_ = 0;
    std::uint64_t next_serial_ = 1;
};

}  // namespace ernic::rdma
