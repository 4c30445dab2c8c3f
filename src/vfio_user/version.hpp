// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.hpp"
#include "vfio_user/limits.hpp"

namespace ernic::vfio_user {

/// What client and server have agreed on.
struct Negotiated {
    std::uint32_t max_data_transfer = kMaxDataTransfer;
    std::uint64_t max_dma_maps = kMaxDmaMaps;
    bool write_multiple = false;
};

/// Reads the payload of a VERSION request. Fails: nullopt when it cannot be accepted (short, other major
/// version, JSON that is broken or has wrong types or absurd values). Thread: any.
std::optional<Negotiated> parse_version(Bytes payload);

/// The JSON text of the reply, without its NUL. It is short on purpose: QEMU 11.1 refuses a VERSION reply
/// that is larger than its own 214-byte request. Thread: any. Fails: never.
std::string version_text(const Negotiated& agreed);

}  // namespace ernic::vfio_user
