// SPDX-License-Identifier: MIT
#pragma once

#include "base/bytes.hpp"
#include "ionic/profile.hpp"
#include "wire/ethernet.hpp"
#include "wire/ionic_identity.hpp"

namespace ernic::ionic {

/// Answer of IDENTIFY.
wire::ionic::DeviceIdentity make_device_identity(const Profile& profile);

/// Answer of LIF_IDENTIFY; `rdma` says whether an RDMA device is there.
wire::ionic::LifIdentity make_lif_identity(const Profile& profile, const wire::MacAddress& mac, bool rdma);

/// Answer of Q_IDENTIFY for a driver that knows versions up to `command.version`.
/// Fails: BadQueueType, BadVersion; `identity` is then unspecified.
wire::ionic::Status make_queue_identity(const wire::ionic::QueueIdentifyCommand& command,
                                        wire::ionic::QueueIdentity& identity);

/// The version a queue of this type has, which Q_INIT must name.
std::uint8_t queue_version(wire::ionic::LogicalQueue type);

}  // namespace ernic::ionic
