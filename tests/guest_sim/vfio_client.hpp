// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.hpp"
#include "base/fd.hpp"
#include "wire/vfio_user.hpp"

namespace ernic::guest_sim {

/// The VMM's side of the vfio-user socket: what QEMU's vfio-user-pci sends for a guest. Blocking; one request
/// at a time, except for posted writes, which get no reply.
class VfioClient {
  public:
    /// Negotiates the version. Fails: GuestError, as everything here.
    explicit VfioClient(UniqueFd socket);

    void dma_map(int fd, std::uint64_t offset, std::uint64_t iova, std::uint64_t size);
    void dma_unmap(std::uint64_t iova, std::uint64_t size);

    void read(std::uint32_t region, std::uint64_t offset, MutableBytes into);
    /// Waits until the device has executed the write.
    void write(std::uint32_t region, std::uint64_t offset, Bytes data);
    /// The device executes it later; the order among all accesses is kept.
    void post_write(std::uint32_t region, std::uint64_t offset, Bytes data);

    template <WireValue T>
    T read_value(std::uint32_t region, std::uint64_t offset) {
        T value;
        read(region, offset, mutable_bytes_of(value));
        return value;
    }
    template <WireValue T>
    void post_value(std::uint32_t region, std::uint64_t offset, const T& value) {
        post_write(region, offset, bytes_of(value));
    }

    [[nodiscard]] std::uint64_t region_size(std::uint32_t region);
    /// Installs `eventfd` for an MSI-X vector.
    void set_msix(std::uint32_t vector, int eventfd);
    void disable_msix();
    void reset_device();

    [[nodiscard]] int fd() const { return socket_.get(); }

  private:
    using Command = wire::vfio_user::Command;
    /// Sends one request and returns the payload of its reply.
    Bytes call(Command command, std::span<const Bytes> payload, int fd = -1);
    void send(Command command, std::uint32_t flags, std::span<const Bytes> payload, int fd);
    void receive_exactly(MutableBytes into);

    UniqueFd socket_;
    std::uint16_t next_id_ = 1;
    std::vector<std::byte> reply_;
};

}  // namespace ernic::guest_sim
