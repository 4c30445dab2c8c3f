// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "guest_sim/guest.hpp"
#include "wire/ib_cm.hpp"
#include "wire/nvme.hpp"
#include "wire/nvme_rdma.hpp"

namespace ernic::guest_sim {

/// One queue of a controller as nvme-rdma (Linux 7.2) uses it: capsules by SEND, responses into receives that
/// are posted again before the command counts as done.
class NvmeQueue {
  public:
    /// `qp` is connected. `entries` commands may be under way.
    NvmeQueue(Guest& guest, CqPtr cq, QpPtr qp, std::uint16_t entries, std::uint32_t in_capsule);

    /// Stages a command, whose id must not be under way; ring() sends all that are staged.
    void stage(const wire::nvme::SubmissionEntry& command, Bytes in_capsule = {});
    void ring();
    /// Responses that have come; at most 16 at once.
    std::size_t poll(std::span<wire::nvme::CompletionEntry> out);
    /// Runs one command. Fails: GuestError when nothing comes.
    wire::nvme::CompletionEntry run(wire::nvme::SubmissionEntry command, Bytes in_capsule = {});

    [[nodiscard]] std::uint16_t entries() const { return entries_; }
    QueuePair& qp() { return *qp_; }

  private:
    [[nodiscard]] std::size_t capsule_bytes() const {
        return sizeof(wire::nvme::SubmissionEntry) + in_capsule_;
    }
    void post_receive(std::uint64_t number);

    std::uint16_t entries_;
    std::uint32_t in_capsule_;
    CqPtr cq_;
    QpPtr qp_;
    Region capsules_;
    Region responses_;
    std::uint64_t sent_ = 0;
    std::uint32_t unsignalled_ = 0;
};

/// A host of NVMe over Fabrics targets: QP 1 and what is sent over it. Fails: GuestError.
class NvmeHost {
  public:
    struct Target {
        wire::MacAddress mac;
        std::uint32_t ipv4 = 0xc0a8c801;  ///< 192.168.200.1
        std::uint16_t port = 4420;
        std::string nqn = "nvmet-test";
    };
    NvmeHost(Guest& guest, Target target);

    /// Connects a queue pair and sends no command over it.
    std::unique_ptr<NvmeQueue> connect_transport(std::uint16_t queue_id, std::uint16_t entries,
                                                 std::uint32_t in_capsule = 0);
    /// Admin queue with Connect and CC.EN; later ones join its controller.
    std::unique_ptr<NvmeQueue> connect_admin();
    std::unique_ptr<NvmeQueue> connect_io(std::uint16_t queue_id, std::uint16_t entries,
                                          std::uint32_t in_capsule);

    /// Where later requests go.
    void set_port(std::uint16_t port) { target_.port = port; }
    /// What the target rejected the last connect_transport() with.
    [[nodiscard]] const std::optional<wire::ib_cm::Reject>& rejected() const { return rejected_; }

  private:
    void send(wire::ib_cm::Attribute attribute, Bytes body);
    Buffer wait_datagram();
    void connect_command(NvmeQueue& queue, std::uint16_t queue_id);

    Guest& guest_;
    Target target_;
    CqPtr cq_;
    QpPtr gsi_;
    std::uint32_t ah_;
    Buffer out_;
    Buffer in_;
    Region connect_data_;
    std::uint32_t next_id_ = 100;
    std::uint16_t controller_ = wire::nvme::ConnectData::kAnyController;
    std::optional<wire::ib_cm::Reject> rejected_;
};

/// A keyed descriptor of `size` bytes of a region.
[[nodiscard]] inline wire::nvme::SglDescriptor keyed(const Region& region, std::uint64_t offset,
                                                     std::uint32_t size, bool invalidate = false) {
    return wire::nvme::SglDescriptor::keyed(region.va + offset, size, region.key, invalidate);
}
/// Read or Write of `blocks` blocks.
[[nodiscard]] wire::nvme::SubmissionEntry io_command(wire::nvme::IoOpcode opcode, std::uint16_t id,
                                                     std::uint64_t lba, std::uint32_t blocks,
                                                     const wire::nvme::SglDescriptor& data);

}  // namespace ernic::guest_sim
