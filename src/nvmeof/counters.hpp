// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "metrics/registry.hpp"

namespace ernic::nvmeof {

/// Numbers of all targets of a process together, which are there (and zero) without one too. Those of one
/// controller or namespace are in the lists (Target::register_lists).
struct Counters {
    metrics::Counter connections;
    metrics::Counter refused_connections;
    metrics::Counter lost_connections;
    metrics::Counter controllers;
    metrics::Counter refused_connects;
    metrics::Counter expired_controllers;

    metrics::Counter fabrics_commands;
    metrics::Counter admin_commands;
    metrics::Counter reads;
    metrics::Counter writes;
    metrics::Counter flushes;
    metrics::Counter compares;
    metrics::Counter write_zeroes;
    metrics::Counter deallocates;
    metrics::Counter copies;
    metrics::Counter other_commands;
    metrics::Counter read_bytes;
    metrics::Counter written_bytes;
    metrics::Counter in_capsule_bytes;

    metrics::Counter errors;
    metrics::Counter injected_faults;
    metrics::Counter malformed_capsules;
    metrics::Counter aborted_commands;
    metrics::Counter async_events;
    metrics::Counter buffer_waits;
    metrics::Counter medium_errors;

    void register_metrics(metrics::Registry& registry) const;
};

}  // namespace ernic::nvmeof
