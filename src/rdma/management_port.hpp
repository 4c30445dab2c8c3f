// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include "base/bytes.hpp"
#include "net/route.hpp"
#include "rdma/endpoint.hpp"
#include "rdma/service_queue.hpp"
#include "wire/ib_cm.hpp"

namespace ernic::rdma {

/// QP 1 of an endpoint: sends and takes management datagrams. Bounded: what comes while all buffers are full
/// is lost, as is what is sent while too many wait. Thread: device.
class ManagementPort final : private ServiceQueue::User {
  public:
    /// Datagrams that may wait, each way. The endpoint needs so many address handles.
    static constexpr std::uint32_t kDatagrams = 128;

    /// `endpoint` must outlive this.
    explicit ManagementPort(Endpoint& endpoint);

    using Datagram = std::array<std::byte, wire::ib_cm::kMadSize>;

    /// Sends a copy along `route`. Fails: false when too many wait.
    bool send(const net::Route& route, const Datagram& datagram);

    /// Hands some of the datagrams that have arrived to `handle(route, datagram)`, where `route` is the way
    /// back: each may mean a new connection, which costs. What is not as long as a management datagram, or
    /// not from a QP 1, is left out.
    template <typename Handle>
    void receive(Handle&& handle) {
        // A handler's answers are sent later, so nothing arrives meanwhile.
        constexpr std::ptrdiff_t kAtOnce = 8;
        const auto end = arrived_.begin() + std::min(kAtOnce, std::ssize(arrived_));
        for (auto arrival = arrived_.begin(); arrival != end; ++arrival) {
            if (arrival->usable) {
                handle(arrival->back, datagrams_[arrival->buffer].bytes);
            }
            queue_.post_receive(arrival->buffer);
        }
        arrived_.erase(arrived_.begin(), end);
    }
    [[nodiscard]] bool has_arrivals() const { return !arrived_.empty(); }

  private:
    struct Buffer {
        std::array<std::byte, 40> network_header;
        Datagram bytes;
    };
    struct Arrival {
        std::uint32_t buffer;
        bool usable;
        net::Route back;
    };

    void received(std::uint32_t buffer, const ReceiveCompletion& completion) override;
    void sent(std::uint32_t number, void* context) override;
    void failed() override;
    std::vector<ServiceQueue::Buffer> buffers();

    Endpoint& endpoint_;
    std::vector<Buffer> datagrams_;
    std::vector<Arrival> arrived_;
    std::vector<Datagram> sending_;
    std::vector<std::uint32_t> free_sends_;
    ServiceQueue queue_;
};

/// The way back to where a message came from, with headers of our own.
[[nodiscard]] net::Route way_back(const net::Route& heard);

}  // namespace ernic::rdma
