// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "fuzz/guest_ram.hpp"
#include "fuzz/input.hpp"
#include "fuzz/verbs.hpp"

namespace ernic::fuzz {

/// Where programs keep their payload, and how regions are numbered: region `i` has key index `i`, tag 1 at
/// first. Region kTableRegion begins at kVirtual and lies on scattered pages, all others use bus addresses.
inline constexpr std::uint64_t kDataPage = page::kFree + 40;
inline constexpr std::uint32_t kDataPages = 40;
inline constexpr std::uint64_t kData = page::at(kDataPage);
inline constexpr std::uint64_t kDataSize = kDataPages * GuestRam::kPage;
inline constexpr std::uint32_t kRegions = 8;
inline constexpr std::uint32_t kTableRegion = 6;
inline constexpr std::uint64_t kVirtual = 0x7f00'0000'0000;
inline constexpr std::uint32_t kQkey = 0x11;

constexpr std::uint32_t key(std::uint32_t region, std::uint8_t tag = 1) {
    return region << 8U | tag;
}

/// Makes work queue entries out of an input: mostly such as a program would post, never quite.
class RequestSource {
  public:
    /// `wild`: addresses may be anything. Otherwise a forbidden one is `trap`, which must never be reached.
    RequestSource(Input& input, bool wild, std::uint64_t trap) : input_(input), wild_(wild), trap_(trap) {}

    /// A send entry with id 0. Tells the op byte and whether a completion is asked for.
    Entry send(bool datagram, std::uint8_t& op, bool& signalled);
    Entry receive();

  private:
    /// Inside a region, at its edges, or nonsense.
    std::uint64_t address(std::uint32_t region);
    std::uint32_t length();
    std::uint32_t some_key();
    void add_body(Entry& entry, wire::ionic_rdma::SendOp op, bool is_inline);
    void add_remote(Entry& entry, wire::ionic_rdma::SendOp op, bool is_inline);
    void add_registration(Entry& entry);
    void add_bind(Entry& entry);
    /// SGEs or inline data; the message's length.
    std::uint32_t add_payload(Entry& entry, bool is_inline);
    void disfigure(Entry& entry);

    Input& input_;
    bool wild_;
    std::uint64_t trap_;
};

}  // namespace ernic::fuzz
