// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.hpp"
#include "base/fd.hpp"
#include "guest_sim/guest_ram.hpp"
#include "guest_sim/vfio_client.hpp"
#include "wire/ethernet.hpp"
#include "wire/ionic_device.hpp"
#include "wire/ionic_identity.hpp"

namespace ernic::guest_sim {

/// The card as the Ethernet driver brings it up: registers, device commands, AdminQ, interrupts, doorbells.
/// Everything up to the point where the RDMA driver takes over (`ionic` 7.2, ionic_probe). No Ethernet queue
/// is made: RDMA needs none.
class Card {
  public:
    /// Both must outlive the card. Leaves it ready for admin commands. Fails: GuestError.
    Card(VfioClient& client, GuestRam& ram);

    /// One command on the AdminQ; returns its completion. Fails: GuestError when none comes within 5 s.
    wire::ionic::Completion admin(const void* command);
    template <WireValue T>
    wire::ionic::Completion admin(const T& command) {
        static_assert(sizeof(T) == wire::ionic::kCommandSize);
        return admin(static_cast<const void*>(&command));
    }
    /// One command through the device command registers; returns its completion, whatever the status.
    template <WireValue T>
    wire::ionic::Completion device_command(const T& command) {
        static_assert(sizeof(T) == wire::ionic::kCommandSize);
        return device_command(static_cast<const void*>(&command));
    }

    /// Rings a doorbell: one posted 8-byte store.
    void ring(std::uint32_t dbid, std::uint8_t queue_type, std::uint64_t value);

    /// The eventfd behind an MSI-X vector, installed at first use.
    int vector_eventfd(std::uint32_t vector);

    /// Interrupt control registers of a vector. The three moments of an event queue's vector
    /// (`ionic_rdma` 7.2, ionic_create_eq, ionic_poll_eq_isr): before CREATE_EQ, after it, and at the end of
    /// every service.
    void prepare_event_vector(std::uint32_t vector);
    void unmask_vector(std::uint32_t vector);
    void return_credits(std::uint32_t vector, std::uint32_t count, bool unmask);

    [[nodiscard]] const wire::MacAddress& mac() const { return mac_; }
    [[nodiscard]] const wire::ionic::LifIdentity& lif() const { return lif_; }
    [[nodiscard]] std::uint32_t vectors() const { return vectors_; }
    [[nodiscard]] std::uint32_t doorbell_pages() const { return doorbell_pages_; }
    [[nodiscard]] VfioClient& client() { return client_; }
    [[nodiscard]] GuestRam& ram() { return ram_; }

  private:
    void enable_function();
    void identify();
    void start_lif();
    void start_admin_queue();
    void read_mac();
    wire::ionic::Completion device_command(const void* command);
    /// A device command that must succeed.
    template <WireValue T>
    wire::ionic::Completion must(const T& command, const char* what);
    template <WireValue T>
    T command_data();
    void write_register(std::uint32_t vector, std::uint32_t offset, std::uint32_t value);

    VfioClient& client_;
    GuestRam& ram_;
    std::vector<UniqueFd> eventfds_;
    wire::MacAddress mac_;
    wire::ionic::LifIdentity lif_{};
    std::uint32_t vectors_ = 0;
    std::uint32_t doorbell_pages_ = 0;
    std::uint32_t hw_index_ = 0;

    Buffer admin_ring_;
    Buffer admin_completions_;
    std::uint8_t admin_type_ = 0;
    std::uint32_t admin_index_ = 0;
    std::uint32_t admin_producer_ = 0;
};

}  // namespace ernic::guest_sim
