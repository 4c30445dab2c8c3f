// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "mem/guest_memory.hpp"
#include "nvmeof/buffer_pool.hpp"
#include "nvmeof/store.hpp"
#include "nvmeof/transport.hpp"
#include "nvmeof/work_queue.hpp"
#include "wire/nvme.hpp"

namespace ernic::nvmeof {

class Controller;
class Namespace;
class Queue;

/// One command from its capsule to its response, with all that it needs on the way; one for each slot of a
/// queue, used again and again. Handlers are plain functions: whatever a command waits for, the function it
/// was told to go on with is called then, never from within the call that began the waiting. Thread: device.
class Command final : public Transfer, public BufferWaiter {
  public:
    using Step = void (*)(Command&);
    using Status = wire::nvme::Status;

    Command(Queue& queue, std::uint16_t slot) : queue_(queue), operation_(*this), slot_(slot) {}

    /// A capsule has come: the command is active until finish().
    void begin(const wire::nvme::SubmissionEntry& entry, MutableBytes in_capsule);
    [[nodiscard]] bool active() const { return active_; }

    [[nodiscard]] Queue& queue() const { return queue_; }
    [[nodiscard]] Controller& controller() const;
    [[nodiscard]] std::uint16_t slot() const { return slot_; }
    [[nodiscard]] const wire::nvme::SubmissionEntry& entry() const { return entry_; }
    [[nodiscard]] std::uint32_t dword(unsigned number) const { return entry_.dword(number); }
    [[nodiscard]] std::uint64_t quad(unsigned number) const { return entry_.quad(number); }
    [[nodiscard]] std::uint16_t id() const { return entry_.command_id.get(); }
    [[nodiscard]] std::uint8_t fuse() const { return entry_.flags & wire::nvme::SubmissionEntry::kFuseMask; }

    /// Reads the SGL descriptor. Fails: the status that the command is to end with.
    [[nodiscard]] Status parse_data();
    /// Bytes that the descriptor names.
    [[nodiscard]] std::uint32_t data_length() const { return length_; }
    [[nodiscard]] bool data_in_capsule() const { return !capsule_data_.empty(); }
    /// The in-capsule data that the descriptor names.
    [[nodiscard]] MutableBytes capsule_data() const { return capsule_data_; }
    /// What was in the capsule has been copied into the buffer.
    void forget_capsule_data() { capsule_data_ = {}; }
    /// The host memory that the descriptor names, when its data is not in the capsule.
    [[nodiscard]] const HostMemory& host() const { return host_; }

    /// True when the command has a staging buffer of `size` bytes now (it may have had it before). Otherwise
    /// `retry` is called once there is one.
    [[nodiscard]] bool take_buffer(std::size_t size, Step retry);
    [[nodiscard]] const Buffer& buffer() const { return buffer_; }
    /// Gets the first `size` bytes of the host's data, by an RDMA READ into a buffer or from the capsule; the
    /// latter goes on at once. Ends the command when the host names fewer. Precondition: size is not 0. With
    /// `room` the buffer is at least so large, and there is one also for data from the capsule.
    void fetch(std::size_t size, Step then, std::size_t room = 0);
    /// Of what was fetched.
    void get_data(std::size_t offset, MutableBytes into) const;
    void append_data(mem::SpanList& out, std::size_t offset, std::size_t size) const;

    /// Copies between the host's memory and `memory`; goes on when all is there.
    void read_host(const mem::SpanList& memory, Step then);
    /// Business with the namespace's store; its outcome is error() afterwards. `buffer_offset` is of this
    /// command's buffer, or of another's (fused commands).
    void store(StoreOperation::Kind kind, std::uint64_t offset, std::uint64_t length, Step then,
               std::size_t buffer_offset = 0, const Buffer* buffer = nullptr);
    [[nodiscard]] int error() const { return error_; }
    /// Goes on in a step of its own.
    void later(Step then);
    /// Waits until somebody calls resume() or finish(): an event, a second command, a time.
    void park(Step then);
    void resume();
    [[nodiscard]] bool parked() const { return waits_ == Waits::Other; }

    /// Ends the command. The status gets its Do Not Retry bit here, when a retry cannot help.
    void finish(Status status, std::uint64_t result = 0);
    /// Ends it with success, after the first min(size, data_length()) bytes of the buffer have been put into
    /// the host's memory.
    void send(std::size_t size, std::uint64_t result = 0);
    /// The same for `data`, by way of a buffer; `retry` is called when it must be done again, because there
    /// is none yet.
    void send_data(Bytes data, Step retry);
    /// As finish(), with the bits of the status as they are.
    void finish_raw(std::uint16_t status, std::uint64_t result);

    /// Waits in `queue`, whose owner gives it to the runtime's work when its time has come.
    void wait_in(WorkQueue& queue, Step then);
    /// When that is, by the loop's clock; the owner's business.
    Nanoseconds due = 0;

    /// Gives up what the command waits for. False: it is in the middle of something.
    bool cancel();
    /// Forgets an active command without a response, because the connection has ended. What cannot be given
    /// up keeps it busy().
    void drop();
    [[nodiscard]] bool busy() const { return waits_ == Waits::Store; }

    /// The response may carry an invalidation of this key.
    [[nodiscard]] bool invalidates() const { return invalidate_; }

    /// Scratch space of the command's own handler; zero at first.
    struct Scratch {
        std::uint64_t offset = 0;
        std::uint64_t length = 0;
        std::uint64_t source = 0;
        std::uint32_t index = 0;
        std::uint32_t count = 0;
        Command* partner = nullptr;
    };
    Scratch scratch;
    std::shared_ptr<Namespace> space;

    void transferred(bool ok) override;
    void run() override;

  private:
    enum class Waits : std::uint8_t { Nothing, Transfer, Work, Store, Other };

    class Operation final : public StoreOperation {
      public:
        explicit Operation(Command& command) : command_(command) {}
        void done(int error) override { command_.stored(error); }

      private:
        Command& command_;
    };

    void stored(int error);
    void go_on();
    /// Where this command's staging memory comes from.
    [[nodiscard]] BufferPool& pool() const;
    static void fetch_into_buffer(Command& command);

    Queue& queue_;
    wire::nvme::SubmissionEntry entry_{};
    MutableBytes in_capsule_;
    MutableBytes capsule_data_;
    HostMemory host_;
    std::uint32_t length_ = 0;
    Buffer buffer_;
    Operation operation_;
    Step then_ = nullptr;
    Step after_fetch_ = nullptr;
    /// Of a fetch: bytes of data and of the buffer.
    std::size_t wanted_ = 0;
    std::size_t room_ = 0;
    int error_ = 0;
    std::uint16_t slot_;
    Waits waits_ = Waits::Nothing;
    bool active_ = false;
    bool invalidate_ = false;
    bool woken_ = false;
};

}  // namespace ernic::nvmeof
