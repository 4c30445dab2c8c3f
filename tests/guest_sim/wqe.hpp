// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "base/bytes.hpp"
#include "guest_sim/requests.hpp"

/// Work queue entries as the drivers pack them: version 2 opcodes and atomics (rdma-core 65,
/// ionic_v2_prep_*).
namespace ernic::guest_sim {

/// Entries for up to two SGEs have them at byte 32; larger ones copy all lengths there first (SPEC32).
enum class SglFormat : std::uint8_t { Plain, Spec32 };

void encode(MutableBytes entry, std::uint16_t slot, SglFormat format, bool datagram,
            const SendRequest& request);
void encode(MutableBytes entry, std::uint16_t slot, const RegisterRequest& request);
void encode(MutableBytes entry, std::uint16_t slot, const BindRequest& request);
void encode(MutableBytes entry, std::uint16_t slot, const InvalidateRequest& request);
void encode(MutableBytes entry, std::uint16_t slot, SglFormat format, const ReceiveRequest& request);

}  // namespace ernic::guest_sim
