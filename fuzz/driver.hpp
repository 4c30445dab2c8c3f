// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "base/bytes.hpp"
#include "fuzz/guest_ram.hpp"
#include "pci/function.hpp"
#include "wire/ethernet.hpp"
#include "wire/ionic_device.hpp"
#include "wire/ionic_rdma.hpp"

namespace ernic::fuzz {

/// The card's MAC address, and so that of its RDMA port on the segment.
inline constexpr wire::MacAddress kCardMac{{0x02, 0x11, 0x22, 0x33, 0x44, 0x55}};

/// Where the driver keeps its rings and tables: the first pages of GuestRam's main region.
namespace page {
constexpr std::uint64_t at(std::uint64_t number) {
    return GuestRam::kMainBase + number * GuestRam::kPage;
}
inline constexpr std::uint64_t kPortInfo = at(0);
inline constexpr std::uint64_t kLifInfo = at(1);
inline constexpr std::uint64_t kAdminRing = at(2);
inline constexpr std::uint64_t kAdminCompletions = at(3);
inline constexpr std::uint64_t kNotifyRing = at(4);  // and the page behind it
inline constexpr std::uint64_t kEventRings = at(6);  // 1 KiB each
inline constexpr std::uint64_t kRdmaAdminRing = at(7);
inline constexpr std::uint64_t kRdmaAdminCompletions = at(8);
inline constexpr std::uint64_t kHeaders = at(9);
inline constexpr std::uint64_t kTables = at(10);  // and the page behind it
inline constexpr std::uint64_t kAnswers = at(12);
/// First page that the driver leaves to the target.
inline constexpr std::uint64_t kFree = 16;
inline constexpr std::uint64_t kCount = GuestRam::kMainSize / GuestRam::kPage;
}  // namespace page

/// What the stock drivers do to bring the card up, and their admin queues. Checks nothing: the guest memory
/// it works in may be anything by the time an answer comes. It works on the function directly, whatever bus
/// is in front.
class Driver {
  public:
    struct Machine {
        CpuMemory& memory;
        pci::Function& function;
        /// Lets the card work.
        std::function<void()> run;
        std::function<void(std::uint32_t offset, Bytes data)> config_write;
    };
    explicit Driver(Machine machine) : machine_(std::move(machine)) {}

    /// PCI command, device commands, admin and notify queue, features.
    void probe();
    /// Event queues 0 and 1, completion queue 0 and RDMA admin queue 0.
    void probe_rdma();
    void bring_up() {
        probe();
        probe_rdma();
    }

    void config_write16(std::uint32_t offset, std::uint16_t value);
    void write32(std::uint64_t offset, std::uint32_t value);
    void doorbell(std::uint32_t page, std::uint32_t slot, std::uint64_t value);

    /// One command by the register block; the status byte.
    std::uint8_t device_command(Bytes command);
    template <WireValue T>
    std::uint8_t device_command(const T& command) {
        static_assert(sizeof(T) == wire::ionic::kCommandSize);
        return device_command(bytes_of(command));
    }
    /// One command by the admin queue. The answer stays in the completion ring.
    void admin(Bytes command);
    template <WireValue T>
    void admin(const T& command) {
        static_assert(sizeof(T) == wire::ionic::kCommandSize);
        admin(bytes_of(command));
    }

    /// One command by RDMA admin queue 0, of one or two slots; `length` is what the header says about the
    /// body. The status of its completion. Fails: nullopt when none has come.
    std::optional<std::uint32_t> rdma_admin(std::uint8_t op, Bytes body, std::uint16_t length);
    template <WireValue T>
    std::optional<std::uint32_t> rdma_admin(wire::ionic_rdma::AdminOp op, const T& body) {
        return rdma_admin(static_cast<std::uint8_t>(op), bytes_of(body), sizeof(T));
    }

  private:
    static constexpr std::uint32_t kAdminDepthLog2 = 5;
    static constexpr std::uint32_t kRdmaAdminDepthLog2 = 6;

    Machine machine_;
    std::uint32_t admin_producer_ = 0;
    std::uint32_t rdma_producer_ = 0;
    std::uint32_t rdma_consumer_ = 0;
};

}  // namespace ernic::fuzz
