// SPDX-License-Identifier: MIT
#include "guest_sim/card.hpp"

#include <sys/eventfd.h>

#include <atomic>
#include <cstddef>
#include <cstring>

#include "guest_sim/error.hpp"
#include "guest_sim/wait.hpp"
#include "wire/ionic_ethernet.hpp"
#include "wire/pci.hpp"
#include "wire/vfio_user.hpp"

namespace ernic::guest_sim {
namespace {

namespace w = wire::ionic;
namespace vfio = wire::vfio_user;

constexpr std::uint32_t kRegisters = 0;
constexpr std::uint32_t kDoorbells = 2;
constexpr std::uint8_t kAdminRingLog2 = 4;
constexpr std::uint32_t kAdminRing = 1U << kAdminRingLog2;
constexpr std::uint32_t kDone = 1;

constexpr std::uint64_t command_register(std::size_t offset) {
    return w::kDeviceCommandOffset + offset;
}

/// A command that consists of its opcode and one byte.
w::Command simple(w::Opcode opcode, std::uint8_t second = 0) {
    w::Command command{};
    command.opcode = static_cast<std::uint8_t>(opcode);
    command.reserved = second;
    return command;
}

}  // namespace

Card::Card(VfioClient& client, GuestRam& ram) : client_(client), ram_(ram) {
    client_.dma_map(ram.fd(), 0, GuestRam::kBase, ram.size());
    enable_function();
    identify();
    start_lif();
    start_admin_queue();
    read_mac();
}

/// Memory decoding, bus mastering, MSI-X: what the PCI core does for a driver.
void Card::enable_function() {
    namespace pci = wire::pci;
    const auto header = client_.read_value<pci::ConfigHeader>(vfio::kRegionConfig, 0);
    require(header.vendor.get() == 0x1dd8 && header.device.get() == 0x1002, "not an ionic card");
    const le16 command(pci::kCommandMemory | pci::kCommandBusMaster);
    client_.write(vfio::kRegionConfig, offsetof(pci::ConfigHeader, command), bytes_of(command));
    std::uint8_t at = header.capabilities;
    while (at != 0) {
        const auto capability = client_.read_value<pci::MsixCapability>(vfio::kRegionConfig, at);
        if (capability.id == pci::kCapabilityMsix) {
            vectors_ = (capability.control.get() & pci::kMsixSizeMask) + 1U;
            const le16 control(static_cast<std::uint16_t>(capability.control.get() | pci::kMsixEnable));
            client_.write(vfio::kRegionConfig, at + offsetof(pci::MsixCapability, control),
                          bytes_of(control));
        }
        at = capability.next;
    }
    require(vectors_ != 0, "no MSI-X capability");
    eventfds_.resize(vectors_);
}

void Card::identify() {
    const auto info = client_.read_value<le32>(kRegisters, w::kDeviceInfoOffset);
    require(info.get() == w::kSignature, "wrong signature in BAR 0");
    must(simple(w::Opcode::Reset), "RESET");
    must(simple(w::Opcode::Identify, 2), "IDENTIFY");
    const auto device = command_data<w::DeviceIdentity>();
    doorbell_pages_ = device.doorbell_pages_per_lif.get();
    require(doorbell_pages_ >= 2, "no doorbell page for user contexts");
    w::LifIdentifyCommand lif{};
    lif.opcode = static_cast<std::uint8_t>(w::Opcode::LifIdentify);
    lif.version = 1;
    must(lif, "LIF_IDENTIFY");
    lif_ = command_data<w::LifIdentity>();
    require((lif_.capabilities.get() & w::kLifCapabilityRdma) != 0, "the LIF does not offer RDMA");
    must(simple(w::Opcode::Init), "INIT");
    must(simple(w::Opcode::PortIdentify), "PORT_IDENTIFY");
    // The driver hands the configuration it was shown back unchanged.
    const auto identity = command_data<w::PortIdentity>();
    client_.post_value(kRegisters, command_register(offsetof(w::DeviceCommandRegisters, data)),
                       identity.config);
    w::PortInitCommand port{};
    port.opcode = static_cast<std::uint8_t>(w::Opcode::PortInit);
    port.info_address.set(ram_.allocate(sizeof(w::PortInfo)).iova);
    must(port, "PORT_INIT");
}

void Card::start_lif() {
    for (const auto type : {w::LogicalQueue::Admin, w::LogicalQueue::Notify}) {
        w::QueueIdentifyCommand command{};
        command.opcode = static_cast<std::uint8_t>(w::Opcode::QueueIdentify);
        command.type = static_cast<std::uint8_t>(type);
        must(command, "Q_IDENTIFY");
    }
    w::LifInitCommand lif{};
    lif.opcode = static_cast<std::uint8_t>(w::Opcode::LifInit);
    lif.info_address.set(ram_.allocate(sizeof(w::LifInfo)).iova);
    const auto started = must(lif, "LIF_INIT");
    hw_index_ = read_value<w::LifInitCompletion>(bytes_of(started))->hw_index.get();
}

void Card::start_admin_queue() {
    admin_ring_ = ram_.allocate(kAdminRing * w::kCommandSize);
    admin_completions_ = ram_.allocate(kAdminRing * w::kCompletionSize);
    w::QueueInitCommand queue{};
    queue.opcode = static_cast<std::uint8_t>(w::Opcode::QueueInit);
    queue.type = static_cast<std::uint8_t>(w::LogicalQueue::Admin);
    queue.flags.set(w::queue_flag::kInterrupt | w::queue_flag::kEnable);
    queue.ring_size_log2 = kAdminRingLog2;
    queue.ring_base.set(admin_ring_.iova);
    queue.completion_ring_base.set(admin_completions_.iova);
    const auto answer = *read_value<w::QueueInitCompletion>(bytes_of(must(queue, "Q_INIT")));
    admin_type_ = answer.hw_type;
    admin_index_ = answer.hw_index.get();
    vector_eventfd(0);
    unmask_vector(0);
}

void Card::read_mac() {
    w::LifAttributeCommand command{};
    command.opcode = static_cast<std::uint8_t>(w::Opcode::LifGetAttribute);
    command.attribute = static_cast<std::uint8_t>(w::LifAttribute::Mac);
    const auto answer = admin(command);
    require(answer.status == 0, "LIF_GETATTR failed");
    std::memcpy(mac_.bytes.data(), answer.body.data(), mac_.bytes.size());
}

w::Completion Card::device_command(const void* command) {
    // The driver's order: command, done := 0, doorbell := 1. String copies to MMIO arrive as 4-byte stores.
    const auto* words = static_cast<const std::byte*>(command);
    for (std::size_t i = 0; i < w::kCommandSize; i += sizeof(le32)) {
        client_.post_write(kRegisters, command_register(offsetof(w::DeviceCommandRegisters, command) + i),
                           Bytes(words + i, sizeof(le32)));
    }
    client_.post_value(kRegisters, command_register(offsetof(w::DeviceCommandRegisters, done)), le32(0));
    client_.post_value(kRegisters, command_register(offsetof(w::DeviceCommandRegisters, doorbell)), le32(1));
    const bool done = wait_until([this] {
        return (client_
                    .read_value<le32>(kRegisters, command_register(offsetof(w::DeviceCommandRegisters, done)))
                    .get() &
                kDone) != 0;
    });
    require(done, "device command timed out");
    return client_.read_value<w::Completion>(
        kRegisters, command_register(offsetof(w::DeviceCommandRegisters, completion)));
}

template <WireValue T>
w::Completion Card::must(const T& command, const char* what) {
    const w::Completion completion = device_command(command);
    if (completion.status != 0) {
        throw GuestError(std::string(what) + " failed with status " + std::to_string(completion.status));
    }
    return completion;
}

template <WireValue T>
T Card::command_data() {
    static_assert(sizeof(T) == w::kCommandDataSize);
    return client_.read_value<T>(kRegisters, command_register(offsetof(w::DeviceCommandRegisters, data)));
}

w::Completion Card::admin(const void* command) {
    const std::uint32_t index = admin_producer_ % kAdminRing;
    const std::uint8_t color = admin_producer_ / kAdminRing % 2 == 0 ? w::kColor : 0;
    std::memcpy(admin_ring_.host + index * w::kCommandSize, command, w::kCommandSize);
    ++admin_producer_;
    ring(0, admin_type_, std::uint64_t{admin_index_} << 24U | admin_producer_ % kAdminRing);
    std::byte* const slot = admin_completions_.host + index * w::kCompletionSize;
    const bool done = wait_until([slot, color] {
        std::atomic_ref<std::byte> last(slot[w::kCompletionSize - 1]);
        return (std::to_integer<std::uint8_t>(last.load(std::memory_order_acquire)) & w::kColor) == color;
    });
    require(done, "admin command timed out");
    return_credits(0, 1, true);
    w::Completion completion;
    std::memcpy(&completion, slot, sizeof(completion));
    require(completion.comp_index.get() == index, "admin completion for another command");
    return completion;
}

void Card::ring(std::uint32_t dbid, std::uint8_t queue_type, std::uint64_t value) {
    const std::uint64_t page = std::uint64_t{hw_index_} * doorbell_pages_ + dbid;
    client_.post_value(kDoorbells, page * w::kDoorbellPageSize + queue_type * sizeof(le64), le64(value));
}

int Card::vector_eventfd(std::uint32_t vector) {
    UniqueFd& fd = eventfds_.at(vector);
    if (!fd.valid()) {
        fd.reset(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
        client_.set_msix(vector, fd.get());
    }
    return fd.get();
}

void Card::write_register(std::uint32_t vector, std::uint32_t offset, std::uint32_t value) {
    client_.post_value(kRegisters,
                       w::kInterruptControlOffset + vector * sizeof(w::InterruptRegisters) + offset,
                       le32(value));
}

void Card::prepare_event_vector(std::uint32_t vector) {
    write_register(vector, offsetof(w::InterruptRegisters, mask), 1);
    write_register(vector, offsetof(w::InterruptRegisters, mask_on_assert), 1);
    write_register(vector, offsetof(w::InterruptRegisters, coalesce_init), 0);
    const auto credits = client_.read_value<le32>(kRegisters, w::kInterruptControlOffset +
                                                                  vector * sizeof(w::InterruptRegisters) +
                                                                  offsetof(w::InterruptRegisters, credits));
    write_register(vector, offsetof(w::InterruptRegisters, credits),
                   (credits.get() & w::kCreditsCountMask) | w::kCreditsResetCoalesce);
}

void Card::unmask_vector(std::uint32_t vector) {
    write_register(vector, offsetof(w::InterruptRegisters, mask), 0);
}

void Card::return_credits(std::uint32_t vector, std::uint32_t count, bool unmask) {
    write_register(vector, offsetof(w::InterruptRegisters, credits),
                   count | (unmask ? w::kCreditsUnmask : 0U));
}

}  // namespace ernic::guest_sim
