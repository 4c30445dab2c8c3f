// SPDX-License-Identifier: MIT
#include "guest_sim/nvme_host.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "guest_sim/error.hpp"

namespace ernic::guest_sim {
namespace {

using namespace wire::ib_cm;
using wire::nvme::CompletionEntry;
using wire::nvme::SglDescriptor;
using wire::nvme::SubmissionEntry;

constexpr std::size_t kNetworkHeader = 40;
constexpr std::size_t kDatagramPlace = 512;
constexpr std::uint64_t kDatagrams = 32;
constexpr std::uint16_t kAdminEntries = 32;
/// CC: enabled, entries of 64 and 16 bytes.
constexpr std::uint32_t kEnable = 0x460001;
/// One of so many commands is signalled, so that completions of sends cost the bench next to nothing.
constexpr std::uint32_t kSignalEvery = 16;
constexpr std::uint64_t kSendId = UINT64_MAX;
constexpr std::uint32_t kPsn = 0xfffff0;

}  // namespace

SubmissionEntry io_command(wire::nvme::IoOpcode opcode, std::uint16_t id, std::uint64_t lba,
                           std::uint32_t blocks, const SglDescriptor& data) {
    SubmissionEntry entry{};
    entry.opcode = static_cast<std::uint8_t>(opcode);
    entry.flags = SubmissionEntry::kPsdtSgl;
    entry.command_id.set(id);
    entry.nsid.set(1);
    entry.data = data;
    entry.dwords[0].set(static_cast<std::uint32_t>(lba));
    entry.dwords[1].set(static_cast<std::uint32_t>(lba >> 32U));
    entry.dwords[2].set(blocks - 1);
    return entry;
}

NvmeQueue::NvmeQueue(Guest& guest, CqPtr cq, QpPtr qp, std::uint16_t entries, std::uint32_t in_capsule)
    : entries_(entries),
      in_capsule_(in_capsule),
      cq_(std::move(cq)),
      qp_(std::move(qp)),
      capsules_(guest.register_memory(entries * capsule_bytes())),
      responses_(guest.register_memory((entries + std::size_t{1}) * sizeof(CompletionEntry))) {
    for (std::uint64_t i = 0; i <= entries; ++i) {
        post_receive(i);
    }
}

void NvmeQueue::post_receive(std::uint64_t number) {
    qp_->post_receive({.wr_id = number,
                       .sges = {responses_.sge(number * sizeof(CompletionEntry), sizeof(CompletionEntry))}});
}

void NvmeQueue::stage(const SubmissionEntry& command, Bytes in_capsule) {
    const std::size_t at = sent_++ % entries_ * capsule_bytes();
    capsules_.memory.set(command, at);
    std::copy(in_capsule.begin(), in_capsule.end(), capsules_.memory.host + at + sizeof command);
    unsignalled_ = (unsignalled_ + 1) % kSignalEvery;
    qp_->stage(SendRequest{.wr_id = kSendId,
                           .op = Op::Send,
                           .sges = {capsules_.sge(at, sizeof command + in_capsule.size())},
                           .signalled = unsignalled_ == 0});
}

void NvmeQueue::ring() {
    qp_->ring_send();
}

std::size_t NvmeQueue::poll(std::span<CompletionEntry> out) {
    std::array<WorkCompletion, 16> completions;
    const std::size_t wanted = std::min(out.size(), completions.size());
    const std::size_t got = cq_->poll(std::span(completions).first(wanted));
    std::size_t count = 0;
    for (std::size_t i = 0; i < got; ++i) {
        const WorkCompletion& completion = completions[i];
        require(completion.status == Status::Ok, "the queue has failed");
        if (!completion.receive) {
            continue;
        }
        require(completion.length == sizeof(CompletionEntry), "a response of another size");
        out[count++] = responses_.memory.get<CompletionEntry>(completion.wr_id * sizeof(CompletionEntry));
        post_receive(completion.wr_id);
    }
    return count;
}

CompletionEntry NvmeQueue::run(SubmissionEntry command, Bytes in_capsule) {
    stage(command, in_capsule);
    ring();
    std::array<CompletionEntry, 1> completion{};
    wait_until([&] { return poll(completion) == 1; });
    require(completion[0].command_id == command.command_id, "the response of another command");
    return completion[0];
}

NvmeHost::NvmeHost(Guest& guest, Target target)
    : guest_(guest),
      target_(std::move(target)),
      cq_(guest.create_cq({.entries = 640, .dbid = 0})),
      gsi_(guest.create_datagram_qp(*cq_, kManagementQkey,
                                    {.dbid = 0,
                                     .max_send = 128,
                                     .max_receive = 512,
                                     .privileged = true,
                                     .remote_privileged = false,
                                     .qpn = kManagementQpn})),
      ah_(guest.create_ah({.destination = target_.mac, .source = guest.card().mac()})),
      out_(guest.allocate(kMadSize)),
      in_(guest.allocate(kDatagrams * kDatagramPlace)),
      connect_data_(guest.register_memory(sizeof(wire::nvme::ConnectData))) {
    for (std::uint64_t i = 0; i < kDatagrams; ++i) {
        gsi_->post_receive({.wr_id = i, .sges = {{in_.iova + i * kDatagramPlace, kDatagramPlace, 0}}});
    }
}

void NvmeHost::send(Attribute attribute, Bytes body) {
    out_.set(make_header(attribute));
    std::copy(body.begin(), body.end(), out_.host + sizeof(MadHeader));
    gsi_->post_send({.wr_id = kSendId,
                     .sges = {{out_.iova, kMadSize, 0}},
                     .ah = ah_,
                     .remote_qpn = kManagementQpn,
                     .remote_qkey = kManagementQkey});
}

Buffer NvmeHost::wait_datagram() {
    while (true) {
        const WorkCompletion completion = cq_->wait();
        require(completion.status == Status::Ok, "a management datagram failed");
        if (completion.receive) {
            const Buffer place = in_.part(completion.wr_id * kDatagramPlace, kDatagramPlace);
            gsi_->post_receive({.wr_id = completion.wr_id, .sges = {{place.iova, kDatagramPlace, 0}}});
            return place.part(kNetworkHeader, kMadSize);
        }
    }
}

std::unique_ptr<NvmeQueue> NvmeHost::connect_transport(std::uint16_t queue_id, std::uint16_t entries,
                                                       std::uint32_t in_capsule) {
    rejected_.reset();
    auto cq = guest_.create_cq({.entries = 4U * entries + 64, .dbid = 0});
    // A kernel's queue pair, which alone may register fast regions.
    auto qp = guest_.create_qp(
        *cq, {.dbid = 0, .max_send = 2U * entries + 32, .max_receive = entries + 1U, .privileged = true});

    Request request{};
    request.local_id.set(next_id_++);
    request.service_id.set(kServicePrefixTcp | target_.port);
    request.ca_guid.set(1);
    request.qpn_resources.set(qp->qpn() << 8U | 16U);
    request.psn_retry.set(kPsn << 8U | 18U << 3U | 7U);
    request.mtu_rnr_retry = 5U << 4U | 7U;
    request.cm_retries = 15U << 4U;
    request.primary.acknowledge_timeout = 17U << 3U;
    RdmaCmHeader header{};
    header.ip_version = 0x40;
    const be32 address(target_.ipv4);
    std::memcpy(header.destination.data() + 12, &address, sizeof address);
    wire::nvme_rdma::ConnectRequest wish{};
    wish.queue_id.set(queue_id);
    wish.host_receive_entries.set(entries);
    wish.host_send_entries.set(static_cast<std::uint16_t>(entries - 1));
    std::memcpy(request.private_data.data(), &header, sizeof header);
    std::memcpy(request.private_data.data() + sizeof header, &wish, sizeof wish);
    send(Attribute::Request, bytes_of(request));

    const Buffer answer = wait_datagram();
    const auto kind = static_cast<Attribute>(answer.get<MadHeader>().attribute_id.get());
    if (kind == Attribute::Reject) {
        rejected_ = answer.get<Reject>(sizeof(MadHeader));
        return nullptr;
    }
    require(kind == Attribute::Reply, "neither REP nor REJ");
    const auto reply = answer.get<Reply>(sizeof(MadHeader));
    qp->modify({.state = QpState::Init,
                .access = wire::ionic_rdma::kQpRemoteWrite | wire::ionic_rdma::kQpRemoteRead});
    qp->modify({.state = QpState::Rtr,
                .destination_qpn = reply.qpn.get() >> 8U,
                .address = Address{.destination = target_.mac, .source = guest_.card().mac()},
                .mtu_log2 = std::uint8_t{12},
                .rq_psn = kPsn,
                .min_rnr_timer = std::uint8_t{0},
                .max_dest_rd_atomic = 16U});
    qp->modify({.state = QpState::Rts,
                .sq_psn = reply.psn.get() >> 8U,
                .timeout = std::uint8_t{17},
                .retry_count = std::uint8_t{7},
                .rnr_retry = std::uint8_t{7},
                .max_rd_atomic = 1U});
    ReadyToUse ready{};
    ready.local_id = request.local_id;
    ready.remote_id = reply.local_id;
    send(Attribute::ReadyToUse, bytes_of(ready));
    return std::make_unique<NvmeQueue>(guest_, std::move(cq), std::move(qp), entries, in_capsule);
}

void NvmeHost::connect_command(NvmeQueue& queue, std::uint16_t queue_id) {
    wire::nvme::ConnectData data{};
    data.controller_id.set(controller_);
    std::memcpy(data.subsystem_nqn.data(), target_.nqn.data(), target_.nqn.size());
    std::memcpy(data.host_nqn.data(), "guest-sim", 9);
    connect_data_.memory.set(data);
    SubmissionEntry entry{};
    entry.opcode = static_cast<std::uint8_t>(wire::nvme::AdminOpcode::Fabrics);
    entry.flags = SubmissionEntry::kPsdtSgl;
    entry.nsid.set(static_cast<std::uint32_t>(wire::nvme::FabricsType::Connect));
    entry.data = keyed(connect_data_, 0, sizeof data);
    entry.dwords[0].set(std::uint32_t{queue_id} << 16U);
    entry.dwords[1].set(queue.entries() - 1U);
    const CompletionEntry answer = queue.run(entry);
    require(answer.status.get() >> 1U == 0, "Connect failed");
    controller_ = static_cast<std::uint16_t>(answer.result.get());
}

std::unique_ptr<NvmeQueue> NvmeHost::connect_admin() {
    controller_ = wire::nvme::ConnectData::kAnyController;
    auto queue = connect_transport(0, kAdminEntries);
    require(queue != nullptr, "the admin queue was rejected");
    connect_command(*queue, 0);
    SubmissionEntry enable{};
    enable.opcode = static_cast<std::uint8_t>(wire::nvme::AdminOpcode::Fabrics);
    enable.flags = SubmissionEntry::kPsdtSgl;
    enable.nsid.set(static_cast<std::uint32_t>(wire::nvme::FabricsType::PropertySet));
    enable.dwords[1].set(wire::nvme::property::kConfiguration);
    enable.dwords[2].set(kEnable);
    require(queue->run(enable).status.get() >> 1U == 0, "the controller was not enabled");
    return queue;
}

std::unique_ptr<NvmeQueue> NvmeHost::connect_io(std::uint16_t queue_id, std::uint16_t entries,
                                                std::uint32_t in_capsule) {
    auto queue = connect_transport(queue_id, entries, in_capsule);
    require(queue != nullptr, "an I/O queue was rejected");
    connect_command(*queue, queue_id);
    return queue;
}

}  // namespace ernic::guest_sim
