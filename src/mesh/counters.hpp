// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include "metrics/registry.hpp"

namespace ernic::mesh {

/// Numbers of the mesh, which are there (and zero) without one too. Thread: device.
struct Counters {
    metrics::Counter frames_sent;
    metrics::Counter bytes_sent;
    metrics::Counter frames_received;
    metrics::Counter bytes_received;
    metrics::Counter streamed;
    metrics::Counter staged;
    metrics::Counter blocked;
    metrics::Counter messages_dropped;
    metrics::Counter ethernet_dropped;
    metrics::Counter ethernet_flooded;
    metrics::Counter foreign_source;
    metrics::Counter foreign_destination;
    metrics::Counter macs_refused;
    metrics::Counter connects;
    metrics::Counter disconnects;
    metrics::Counter dead;
    metrics::Counter protocol_errors;
    metrics::Counter wrong_version;
    metrics::Counter wrong_key;
    metrics::Counter forged;
    metrics::Counter silent;
    metrics::Counter strangers_evicted;
    metrics::Counter accept_pauses;
    metrics::Counter dials_failed;
    metrics::Counter refused_nodes;
    metrics::Counter congested;
    /// Of now: other nodes that are known, and those with a connection.
    std::size_t peers_known = 0;
    std::size_t peers_connected = 0;

    void register_metrics(metrics::Registry& registry) const;
};

}  // namespace ernic::mesh
