// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.hpp"
#include "mem/guest_memory.hpp"
#include "mem/ring.hpp"
#include "rdma/types.hpp"

namespace ernic::ionic {

/// Copies receive entry `position` out of its ring and decodes the copy. Receive rings are never written.
/// Fails: false when the memory is gone or the entry is malformed.
bool fetch_receive(const mem::GuestMemory& memory, const mem::Ring& ring, std::uint32_t position,
                   rdma::ReceiveRequest& request);

/// Decodes one receive entry. Exposed for tests and fuzzing.
bool decode_receive(Bytes entry, rdma::ReceiveRequest& request);

/// Decodes `count` SGEs of a send or receive entry; `flags` says where they start (plain, SPEC32, SPEC16).
/// Fails: false for more than rdma::kMaxSges or SGEs beyond the entry.
bool decode_sges(Bytes entry, std::uint16_t flags, std::uint8_t count,
                 std::array<rdma::Sge, rdma::kMaxSges>& sges);

}  // namespace ernic::ionic
