// SPDX-License-Identifier: MIT
#pragma once

#include "ionic/rdma_objects.hpp"
#include "metrics/registry.hpp"
#include "wire/ionic_rdma.hpp"

namespace ernic::ionic {

/// The four statistics commands: names and offsets of all counters, and their values, globally or per QP.
/// Everything is a big-endian 64-bit number. Fails: BadAttribute for an unwritable buffer, BadIndex for an
/// unknown QP.
wire::ionic_rdma::AdminStatus run_stats(RdmaObjects& objects, wire::ionic_rdma::AdminOp op,
                                        const wire::ionic_rdma::Stats& command);

/// Per-QP counters for the statistics file, one row per queue pair. `objects` must outlive the reader.
metrics::RowReader queue_pair_rows(const RdmaObjects& objects);

}  // namespace ernic::ionic
