// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "metrics/registry.hpp"
#include "nvmeof/transport.hpp"
#include "rdma/connection.hpp"
#include "rdma/connection_manager.hpp"
#include "rdma/endpoint.hpp"
#include "rdma/service_queue.hpp"

namespace ernic::nvmeof {

/// Numbers of the RDMA transport of all targets, which are there (and zero) without one too.
struct TransportCounters {
    metrics::Counter connections;
    metrics::Counter refused;
    metrics::Counter lost;
    metrics::Counter capsules;
    metrics::Counter in_capsule_bytes;
    metrics::Counter bytes_to_hosts;
    metrics::Counter bytes_from_hosts;
    metrics::Counter responses;
    metrics::Counter invalidations;
    metrics::Counter bad_capsules;

    void register_metrics(metrics::Registry& registry) const;
};

/// Memory that starts at a page, so that files can be written from it without a copy. Untouched pages of a
/// large one cost nothing.
class PageBuffer {
  public:
    static constexpr std::size_t kPage = 4096;
    /// Of at least `size` bytes. Throws std::bad_alloc.
    explicit PageBuffer(std::size_t size);
    [[nodiscard]] MutableBytes part(std::size_t offset, std::size_t size) {
        return {bytes_.get() + offset, size};
    }

  private:
    struct Free {
        void operator()(std::byte* bytes) const { std::free(bytes); }
    };
    std::unique_ptr<std::byte, Free> bytes_;
};

/// One queue of a controller over a connected queue pair. Owns its receive buffers. What arrives, and the
/// connection's end, wait until work(), so that the handler never runs inside of the engine, but for
/// Transfer::transferred() and QueueHandler::responded(). Thread: device.
class RdmaChannel final : public QueueChannel,
                          private rdma::ServiceQueue::User,
                          private rdma::ConnectionUser {
  public:
    /// Who runs it.
    class Runner {
      public:
        virtual ~Runner() = default;
        /// work() has something to do.
        virtual void wake(RdmaChannel& channel) = 0;
        /// The present step has taken long enough.
        [[nodiscard]] virtual bool late() = 0;
    };
    struct Setup {
        QueueRequest request;
        std::uint16_t depth = 0;
        std::uint32_t in_capsule_bytes = 0;
        rdma::ConnectionId connection = 0;
        std::uint32_t qpn = 0;
    };

    /// All references must outlive this.
    RdmaChannel(rdma::Endpoint& endpoint, rdma::ConnectionManager& manager, Runner& runner,
                Acceptor& acceptor, TransportCounters& counters, const Setup& setup);

    /// Receive memory of a queue like that.
    [[nodiscard]] static std::size_t receive_bytes(std::uint16_t depth, std::uint32_t in_capsule_bytes);
    [[nodiscard]] std::size_t receive_bytes() const { return receive_bytes(setup_.depth, data_bytes_); }

    /// The queue pair to RTS.
    void bring_up(const rdma::QpAttributes& attributes) { queue_.bring_up(attributes); }
    [[nodiscard]] rdma::ConnectionUser& connection_user() { return *this; }
    [[nodiscard]] std::uint16_t queue_id() const { return setup_.request.queue_id; }

    /// Up to `commands` commands go to the handler, of which the number is reduced; ends what must be ended.
    /// True when there is more to do.
    bool work(std::uint32_t& commands);
    /// Ends the connection now, without a word to the host; the handler hears of it.
    void abandon();
    /// Nothing will happen any more: it may be destroyed.
    [[nodiscard]] bool finished() const { return finished_; }

    void write_host(const HostMemory& to, std::uint32_t offset, const mem::SpanList& from,
                    Transfer* done) override;
    void read_host(const HostMemory& from, std::uint32_t offset, const mem::SpanList& to,
                   Transfer& done) override;
    void respond(std::uint16_t slot, Bytes completion, std::optional<std::uint32_t> invalidate_key) override;
    void close() override;

    /// Place in the runner's list of those to run.
    bool scheduled = false;

  private:
    struct Arrival {
        std::uint16_t slot;
        std::uint32_t length;
    };

    void received(std::uint32_t buffer, const rdma::ReceiveCompletion& completion) override;
    void sent(std::uint32_t number, void* context) override;
    void failed() override;
    void established() override;
    void ended() override;

    void transfer(rdma::Opcode opcode, const HostMemory& memory, std::uint32_t offset,
                  const mem::SpanList& pieces, Transfer* done);
    std::vector<rdma::ServiceQueue::Buffer> buffers();
    void finish();

    rdma::ConnectionManager& manager_;
    Runner& runner_;
    Acceptor& acceptor_;
    TransportCounters& counters_;
    Setup setup_;
    /// Of each slot: in-capsule data, rounded up to whole pages.
    std::uint32_t data_bytes_;
    /// All slots' data, and behind it all slots' submissions.
    PageBuffer memory_;
    std::vector<std::array<std::byte, kCompletionBytes>> completions_;
    /// Commands for the handler, from next_arrival_ on.
    std::vector<Arrival> arrivals_;
    std::size_t next_arrival_ = 0;
    QueueHandler* handler_ = nullptr;
    bool established_ = false;
    bool closing_ = false;
    /// What came cannot be a command: the connection must end at once.
    bool violated_ = false;
    bool finished_ = false;
    rdma::ServiceQueue queue_;
};

}  // namespace ernic::nvmeof
