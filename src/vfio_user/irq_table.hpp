// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.hpp"
#include "base/fd.hpp"
#include "base/log.hpp"
#include "pci/function.hpp"
#include "vfio_user/counters.hpp"
#include "wire/vfio_user.hpp"

namespace ernic::vfio_user {

/// DEVICE_SET_IRQS: the eventfds through which interrupts reach the client. Only MSI-X vectors exist; INTX,
/// MSI, ERR and REQ have no interrupts (firing ERR would stop a QEMU guest). Owns the eventfds. Thread:
/// device.
class IrqTable {
  public:
    IrqTable(Counters& counters, log::Logger logger);

    /// Gives every vector of `function` an empty place; `function` is told when a vector becomes ready.
    void attach(pci::Function& function);

    /// Number of interrupts of an irq index, or nullopt where the index is not offered at all: for ERR QEMU
    /// wants an error, as it prints a warning to the user when told "0 interrupts". Index < kIrqCount.
    [[nodiscard]] std::optional<std::uint32_t> count(std::uint32_t index) const;

    /// Executes one SET_IRQS. `data` is what follows the fixed part. Takes the descriptors it installs out of
    /// `fds`.
    std::optional<Rejection> set(const wire::vfio_user::IrqSet& request, Bytes data,
                                 std::vector<UniqueFd>& fds);

    /// Writes the eventfd of an MSI-X vector. Fails: false when it has none or the client masked it.
    bool fire(std::uint16_t vector);

    /// The client has left: closes all eventfds.
    void clear();

  private:
    struct Vector {
        UniqueFd eventfd;
        bool masked = false;
    };

    [[nodiscard]] std::optional<Rejection> check(const wire::vfio_user::IrqSet& request, Bytes data,
                                                 const std::vector<UniqueFd>& fds) const;
    std::optional<Rejection> install(std::uint32_t start, std::uint32_t count, std::vector<UniqueFd>& fds);
    void act(const wire::vfio_user::IrqSet& request, Bytes data);
    void act_on(std::uint16_t vector, std::uint32_t action);
    [[nodiscard]] bool is_eventfd(int fd) const;

    Counters& counters_;
    log::Logger logger_;
    log::Limiter limiter_;
    pci::Function* function_ = nullptr;
    std::vector<Vector> vectors_;
    // Identity of the inode all eventfds share.
    dev_t eventfd_device_ = 0;
    ino_t eventfd_inode_ = 0;
};

}  // namespace ernic::vfio_user
