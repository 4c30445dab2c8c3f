// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "base/bytes.hpp"
#include "mem/guest_memory.hpp"
#include "mem/ring.hpp"
#include "rdma/types.hpp"

namespace ernic::ionic {

/// Atomic entries come in two layouts (see wire::ionic_rdma::AtomicBodyV1 / V2).
enum class WqeLayout : std::uint8_t { Kernel, User };

/// Copies send entry `position` out of its ring and turns it into a work request. Everything is decoded from
/// the copy. Fails: false when the memory is gone or the entry is malformed (unknown op, too many SGEs,
/// inline data beyond the entry); `request.id` and a stand-in opcode are then still set when the header could
/// be read.
bool fetch_send(const mem::GuestMemory& memory, const mem::Ring& ring, std::uint32_t position,
                WqeLayout layout, rdma::WorkRequest& request);

/// Decodes one entry; `entry` is the whole stride. Exposed for tests and fuzzing.
bool decode_send(Bytes entry, WqeLayout layout, rdma::WorkRequest& request);

/// MR and MW rights as WQE and CREATE_MR flags spell them.
rdma::AccessRights rights_of(std::uint16_t flags);

}  // namespace ernic::ionic
