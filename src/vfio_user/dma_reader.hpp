// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "base/bytes.hpp"
#include "base/event_loop.hpp"
#include "mem/guest_memory.hpp"
#include "vfio_user/connection.hpp"

namespace ernic::vfio_user {

/// VFIO_USER_DMA_READ: asks the client for guest memory by message. Only for diagnosis. Nothing the client
/// waits for may depend on an answer: QEMU answers on the thread that may be waiting for us, and both would
/// time out. One request at a time. Thread: device.
class DmaReader {
  public:
    /// The bytes, valid during the call; nullopt when the client refused, answered nonsense or not in time.
    using Done = std::function<void(std::optional<Bytes>)>;

    DmaReader(EventLoop& loop, Connection& connection);

    /// Sends the request with the connection's next flush. Fails: false (size 0 or above kMaxDmaRead, a
    /// request is outstanding, or the client is going).
    bool read(mem::Iova address, std::uint32_t size, Done done);

    /// A reply has come. Returns false when it answers nothing of ours.
    bool on_reply(const Header& header, Bytes payload);

  private:
    void finish(std::optional<Bytes> data);

    EventLoop& loop_;
    Connection& connection_;
    std::uint16_t id_ = 0;
    wire::vfio_user::DmaAccess request_{};
    Done done_;  // set while a request is outstanding
    Timer timeout_;
};

}  // namespace ernic::vfio_user
