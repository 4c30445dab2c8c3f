// SPDX-License-Identifier: MIT
#include "ionic/rdma_stats.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ionic/rdma_queue_pair.hpp"
#include "metrics/report.hpp"

namespace ernic::ionic {

namespace rdma_wire = wire::ionic_rdma;
using Status = rdma_wire::AdminStatus;

namespace {

struct GlobalStat {
    const char* name;
    metrics::Counter rdma::EngineCounters::*counter;
};

/// Names as `rdma statistic show link` prints them.
constexpr GlobalStat kGlobalStats[] = {
    {"tx_rdma_ucast_pkts", &rdma::EngineCounters::tx_messages},
    {"tx_rdma_ucast_bytes", &rdma::EngineCounters::tx_bytes},
    {"rx_rdma_ucast_pkts", &rdma::EngineCounters::rx_messages},
    {"rx_rdma_ucast_bytes", &rdma::EngineCounters::rx_bytes},
    {"req_rx_pkt_seq_err", &rdma::EngineCounters::req_sequence_errors},
    {"req_rx_rnr_retry_err", &rdma::EngineCounters::req_rnr_retry_errors},
    {"req_rx_remote_acc_err", &rdma::EngineCounters::req_remote_access_errors},
    {"req_rx_remote_inv_req", &rdma::EngineCounters::req_remote_invalid_requests},
    {"req_rx_oper_err", &rdma::EngineCounters::req_remote_operation_errors},
    {"req_tx_retry_excd_err", &rdma::EngineCounters::req_retry_exceeded},
    {"req_rx_dup_response", &rdma::EngineCounters::req_duplicate_responses},
    {"req_rx_cqe_err", &rdma::EngineCounters::req_completion_errors},
    {"req_rx_cqe_flush", &rdma::EngineCounters::req_flushes},
    {"req_tx_loc_oper_err", &rdma::EngineCounters::req_local_errors},
    {"req_tx_mem_mgmt_err", &rdma::EngineCounters::req_memory_management_errors},
    {"resp_rx_dup_request", &rdma::EngineCounters::resp_duplicate_requests},
    {"resp_rx_out_of_buf", &rdma::EngineCounters::resp_out_of_buffer},
    {"resp_rx_out_of_seq", &rdma::EngineCounters::resp_out_of_sequence},
    {"resp_rx_cqe_err", &rdma::EngineCounters::resp_completion_errors},
    {"resp_rx_cqe_flush", &rdma::EngineCounters::resp_flushes},
    {"resp_rx_loc_len_err", &rdma::EngineCounters::resp_local_length_errors},
    {"resp_rx_inv_request", &rdma::EngineCounters::resp_invalid_requests},
    {"resp_tx_rmt_acc_err", &rdma::EngineCounters::resp_access_errors},
    {"resp_tx_rmt_oper_err", &rdma::EngineCounters::resp_operation_errors},
    {"resp_tx_rnr_retry_err", &rdma::EngineCounters::resp_rnr_naks},
};

constexpr std::size_t kQpStats = 2 * rdma::kOpcodeCount + 8;

/// Names of everything a QP counts, in a fixed order.
std::vector<std::string> qp_stat_names() {
    std::vector<std::string> names;
    names.reserve(kQpStats);
    for (std::size_t i = 0; i < rdma::kOpcodeCount; ++i) {
        const std::string name = rdma::name_of(static_cast<rdma::Opcode>(i));
        names.push_back(name);
        names.push_back(name + "_bytes");
    }
    for (const char* name : {"completed", "failed", "received", "received_bytes", "rnr_naks_sent",
                             "rnr_naks_received", "timeouts", "dropped"}) {
        names.emplace_back(name);
    }
    return names;
}

/// The values, in the order of their names.
std::array<std::uint64_t, kQpStats> qp_stat_values(const rdma::QpCounters& counters) {
    std::array<std::uint64_t, kQpStats> values{};
    auto next = values.begin();
    for (std::size_t i = 0; i < rdma::kOpcodeCount; ++i) {
        *next++ = counters.requests[i];
        *next++ = counters.bytes[i];
    }
    for (const std::uint64_t value :
         {counters.completed, counters.failed, counters.received, counters.received_bytes,
          counters.rnr_naks_sent, counters.rnr_naks_received, counters.timeouts, counters.dropped}) {
        *next++ = value;
    }
    return values;
}

using StatsBuffer = std::array<std::byte, rdma_wire::kStatsBufferSize>;

void put_header(StatsBuffer& buffer, std::size_t index, std::string_view name) {
    rdma_wire::StatHeader header{};
    header.type_offset.set(rdma_wire::kStatTypeBe64 << 28U |
                           static_cast<std::uint32_t>(index * sizeof(be64)));
    std::copy_n(name.begin(), std::min(name.size(), header.name.size() - 1), header.name.begin());
    std::memcpy(buffer.data() + index * sizeof(header), &header, sizeof(header));
}

void put_value(StatsBuffer& buffer, std::size_t index, std::uint64_t value) {
    const be64 raw(value);
    std::memcpy(buffer.data() + index * sizeof(raw), &raw, sizeof(raw));
}

}  // namespace

Status run_stats(RdmaObjects& objects, rdma_wire::AdminOp op, const rdma_wire::Stats& command) {
    // All-zero beyond what is put in: a header of type 0 ends the driver's list.
    StatsBuffer buffer{};
    switch (op) {
        case rdma_wire::AdminOp::StatsHeaders:
            for (std::size_t i = 0; i < std::size(kGlobalStats); ++i) {
                put_header(buffer, i, kGlobalStats[i].name);
            }
            break;
        case rdma_wire::AdminOp::StatsValues:
            for (std::size_t i = 0; i < std::size(kGlobalStats); ++i) {
                put_value(buffer, i, (objects.engine().counters().*kGlobalStats[i].counter).value());
            }
            break;
        case rdma_wire::AdminOp::QpStatsHeaders: {
            const auto names = qp_stat_names();
            for (std::size_t i = 0; i < names.size(); ++i) {
                put_header(buffer, i, names[i]);
            }
            break;
        }
        case rdma_wire::AdminOp::QpStatsValues: {
            const RdmaQueuePair* qp = objects.queue_pair(command.id_ver.get() & 0xffffffU);
            if (qp == nullptr) {
                return Status::BadIndex;
            }
            const auto values = qp_stat_values(qp->qp().counters());
            for (std::size_t i = 0; i < values.size(); ++i) {
                put_value(buffer, i, values[i]);
            }
            break;
        }
        default:
            return Status::BadCommand;
    }
    const std::size_t length = std::min<std::size_t>(command.length.get(), buffer.size());
    return objects.memory().write(mem::Iova{command.dma_addr.get()}, Bytes(buffer).first(length))
               ? Status::Ok
               : Status::BadAttribute;
}

metrics::RowReader queue_pair_rows(const RdmaObjects& objects) {
    // By number, because queue pairs come and go between the calls.
    return [&objects, names = qp_stat_names(), qpn = std::uint32_t{0}](metrics::Row& row) mutable {
        const auto& table = objects.queue_pairs();
        while (qpn < table.size() && table.at(qpn) == nullptr) {
            ++qpn;
        }
        if (qpn >= table.size()) {
            return false;
        }
        const rdma::QueuePair& qp = table.at(qpn++)->qp();
        row.add("qpn", qp.qpn());
        row.add("type", qp.identity().type == rdma::QpType::Rc ? "RC" : "UD");
        row.add("state", rdma::name_of(qp.state()));
        const auto values = qp_stat_values(qp.counters());
        for (std::size_t i = 0; i < values.size(); ++i) {
            row.add(names[i], values[i]);
        }
        return true;
    };
}

}  // namespace ernic::ionic
