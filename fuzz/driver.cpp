// SPDX-License-Identifier: MIT
#include "fuzz/driver.hpp"

#include <array>

#include "ionic/profile.hpp"
#include "pci/config_space.hpp"
#include "wire/ionic_ethernet.hpp"
#include "wire/ionic_identity.hpp"
#include "wire/pci.hpp"

namespace ernic::fuzz {

namespace w = wire::ionic;
namespace rw = wire::ionic_rdma;

namespace {

constexpr std::uint64_t kCommandOffset = w::kDeviceCommandOffset + 8;
constexpr std::uint64_t kDataOffset = w::kDeviceCommandOffset + 0x88;
constexpr std::uint32_t kVectorMask = 4;
constexpr std::uint16_t kMemoryAndMaster = 0x0006;
/// Everything Linux asks for.
constexpr std::uint64_t kWantedFeatures = 0x1ffbf;

template <WireValue T>
T command(w::Opcode opcode) {
    T made{};
    made.opcode = static_cast<std::uint8_t>(opcode);
    return made;
}

w::QueueInitCommand queue_init(w::LogicalQueue type, std::uint8_t size_log2, std::uint64_t ring,
                               std::uint64_t completions) {
    auto init = command<w::QueueInitCommand>(w::Opcode::QueueInit);
    init.type = static_cast<std::uint8_t>(type);
    init.flags.set(w::queue_flag::kInterrupt | w::queue_flag::kEnable);
    init.ring_size_log2 = size_log2;
    init.ring_base.set(ring);
    init.completion_ring_base.set(completions);
    return init;
}

}  // namespace

void Driver::config_write16(std::uint32_t offset, std::uint16_t value) {
    const le16 raw(value);
    machine_.config_write(offset, bytes_of(raw));
}

void Driver::write32(std::uint64_t offset, std::uint32_t value) {
    const le32 raw(value);
    machine_.function.bar_write(0, offset, bytes_of(raw));
}

void Driver::doorbell(std::uint32_t page, std::uint32_t slot, std::uint64_t value) {
    const le64 raw(value);
    machine_.function.bar_write(2, std::uint64_t{page} * w::kDoorbellPageSize + slot * w::kDoorbellSize,
                                bytes_of(raw));
}

std::uint8_t Driver::device_command(Bytes raw) {
    machine_.function.bar_write(0, kCommandOffset, raw);
    write32(w::kDeviceCommandOffset + 4, 0);
    write32(w::kDeviceCommandOffset, 1);
    std::uint8_t status = 0;
    machine_.function.bar_read(0, w::kDeviceCommandOffset + 0x48, mutable_bytes_of(status));
    return status;
}

void Driver::probe() {
    device_command(command<w::Command>(w::Opcode::Reset));
    admin_producer_ = 0;
    config_write16(4, kMemoryAndMaster);
    config_write16(pci::ConfigSpace::kMsix + 2, wire::pci::kMsixEnable);
    device_command(command<w::Command>(w::Opcode::Identify));
    device_command(command<w::Command>(w::Opcode::Init));
    device_command(command<w::Command>(w::Opcode::PortIdentify));
    w::PortIdentity port{};
    machine_.function.bar_read(0, kDataOffset, mutable_bytes_of(port));
    machine_.function.bar_write(0, kDataOffset, bytes_of(port.config));
    auto port_init = command<w::PortInitCommand>(w::Opcode::PortInit);
    port_init.info_address.set(page::kPortInfo);
    device_command(port_init);
    device_command(command<w::Command>(w::Opcode::LifIdentify));
    auto lif_init = command<w::LifInitCommand>(w::Opcode::LifInit);
    lif_init.info_address.set(page::kLifInfo);
    device_command(lif_init);
    device_command(
        queue_init(w::LogicalQueue::Admin, kAdminDepthLog2, page::kAdminRing, page::kAdminCompletions));
    write32(w::kInterruptControlOffset + kVectorMask, 0);
    admin(queue_init(w::LogicalQueue::Notify, 6, page::kNotifyRing, 0));
    auto features = command<w::LifAttributeCommand>(w::Opcode::LifSetAttribute);
    features.attribute = static_cast<std::uint8_t>(w::LifAttribute::Features);
    const le64 wanted(kWantedFeatures);
    std::memcpy(features.value.data(), &wanted, sizeof wanted);
    admin(features);
}

void Driver::probe_rdma() {
    rdma_producer_ = 0;
    rdma_consumer_ = 0;
    admin(command<w::Command>(w::Opcode::RdmaResetLif));
    // Old completions would look like new ones.
    const std::array<std::byte, GuestRam::kPage> zeros{};
    machine_.memory.store(page::kRdmaAdminCompletions, zeros);
    const auto queue = [this](w::Opcode opcode, std::uint32_t id, std::uint32_t cid, std::uint8_t depth_log2,
                              std::uint8_t stride_log2, std::uint64_t ring) {
        auto made = command<w::RdmaQueueCommand>(opcode);
        made.qid_ver.set(id);
        made.cid.set(cid);
        made.depth_log2 = depth_log2;
        made.stride_log2 = stride_log2;
        made.dma_addr.set(ring);
        admin(made);
    };
    queue(w::Opcode::RdmaCreateEventQueue, 0, 1, 8, 2, page::kEventRings);
    queue(w::Opcode::RdmaCreateEventQueue, 1, 2, 8, 2, page::kEventRings + 1024);
    queue(w::Opcode::RdmaCreateCompletionQueue, 0, 0, kRdmaAdminDepthLog2, 5, page::kRdmaAdminCompletions);
    queue(w::Opcode::RdmaCreateAdminQueue, 0, 0, kRdmaAdminDepthLog2, 6, page::kRdmaAdminRing);
}

void Driver::admin(Bytes raw) {
    const std::uint32_t slot = admin_producer_++ & ((1U << kAdminDepthLog2) - 1);
    machine_.memory.store(page::kAdminRing + std::uint64_t{slot} * w::kCommandSize, raw);
    doorbell(0, static_cast<std::uint32_t>(ionic::QueueType::Admin),
             w::Doorbell::make(0, 0, static_cast<std::uint16_t>(admin_producer_)).value());
    machine_.run();
}

std::optional<std::uint32_t> Driver::rdma_admin(std::uint8_t op, Bytes body, std::uint16_t length) {
    constexpr std::uint32_t kMask = (1U << kRdmaAdminDepthLog2) - 1;
    constexpr std::size_t kSlot = rw::kAdminSlotSize;
    std::array<std::byte, 2 * kSlot> slots{};
    const rw::AdminHeader header{op, 0, le16(length)};
    std::memcpy(slots.data(), &header, sizeof header);
    std::memcpy(slots.data() + sizeof header, body.data(),
                std::min(body.size(), slots.size() - sizeof header));
    const std::uint32_t used = length <= rw::kMaxAdminBody && sizeof header + length > kSlot ? 2 : 1;
    for (std::uint32_t i = 0; i < used; ++i) {
        machine_.memory.store(page::kRdmaAdminRing + std::uint64_t{(rdma_producer_ + i) & kMask} * kSlot,
                              Bytes(slots).subspan(i * kSlot, kSlot));
    }
    rdma_producer_ += used;
    doorbell(0, static_cast<std::uint32_t>(ionic::QueueType::RdmaAdmin),
             rw::Doorbell::make(0, 0, static_cast<std::uint16_t>(rdma_producer_ & kMask)).value());
    machine_.run();
    const auto cqe = machine_.memory.get<rw::AdminCqe>(
        page::kRdmaAdminCompletions + std::uint64_t{rdma_consumer_ & kMask} * sizeof(rw::AdminCqe));
    const std::uint32_t color = (rdma_consumer_ >> kRdmaAdminDepthLog2 & 1U) == 0 ? 1 : 0;
    if ((cqe.qid_type_flags.get() & rw::kCqeColor) != color) {
        return std::nullopt;
    }
    ++rdma_consumer_;
    doorbell(
        0, static_cast<std::uint32_t>(ionic::QueueType::RdmaCompletion),
        rw::Doorbell::make(0, rw::kRingConsumer, static_cast<std::uint16_t>(rdma_consumer_ & kMask)).value());
    return cqe.status_length.get();
}

}  // namespace ernic::fuzz
