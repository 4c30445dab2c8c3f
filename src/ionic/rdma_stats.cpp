// SPDX-License-Identifier: MIT
#include "ionic/rdma_stats.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ionic/rdma_queue_pair.hpp"

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

/// Name and value of everything a QP counts, in a fixed order.
struct QpStat {
    std::string name;
    std::uint64_t value;
};

std::vector<QpStat> qp_stats(const rdma::QpCounters& counters) {
    std::vector<QpStat> stats;
    for (std::size_t i = 0; i < rdma::kOpcodeCount; ++i) {
        const std::string name = rdma::name_of(static_cast<rdma::Opcode>(i));
        stats.push_back({name, counters.requests[i]});
        stats.push_back({name + "_bytes", counters.bytes[i]});
    }
    stats.push_back({"completed", counters.completed});
    stats.push_back({"failed", counters.failed});
    stats.push_back({"received", counters.received});
    stats.push_back({"received_bytes", counters.received_bytes});
    stats.push_back({"rnr_naks_sent", counters.rnr_naks_sent});
    stats.push_back({"rnr_naks_received", counters.rnr_naks_received});
    stats.push_back({"timeouts", counters.timeouts});
    stats.push_back({"dropped", counters.dropped});
    return stats;
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
            const auto stats = qp_stats({});
            for (std::size_t i = 0; i < stats.size(); ++i) {
                put_header(buffer, i, stats[i].name);
            }
            break;
        }
        case rdma_wire::AdminOp::QpStatsValues: {
            const RdmaQueuePair* qp = objects.queue_pair(command.id_ver.get() & 0xffffffU);
            if (qp == nullptr) {
                return Status::BadIndex;
            }
            const auto stats = qp_stats(qp->qp().counters());
            for (std::size_t i = 0; i < stats.size(); ++i) {
                put_value(buffer, i, stats[i].value);
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

nlohmann::json queue_pairs_json(const RdmaObjects& objects) {
    nlohmann::json list = nlohmann::json::array();
    for (const auto& owner : objects.queue_pairs()) {
        if (!owner) {
            continue;
        }
        const rdma::QueuePair& qp = owner->qp();
        nlohmann::json entry;
        entry["qpn"] = qp.qpn();
        entry["type"] = qp.identity().type == rdma::QpType::Rc ? "RC" : "UD";
        entry["state"] = rdma::name_of(qp.state());
        for (const QpStat& stat : qp_stats(qp.counters())) {
            entry[stat.name] = stat.value;
        }
        list.push_back(std::move(entry));
    }
    return list;
}

}  // namespace ernic::ionic
