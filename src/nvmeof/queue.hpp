// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "nvmeof/command.hpp"
#include "nvmeof/dhchap.hpp"
#include "nvmeof/runtime.hpp"
#include "nvmeof/transport.hpp"

namespace ernic::nvmeof {

class Controller;
class Target;

/// What must stay until a response has reached its host: memory that its data is read from. Oldest first; it
/// grows to what is needed and stays that large.
class KeptUntilAcknowledged {
  public:
    void push(std::shared_ptr<Namespace> space, Buffer buffer);
    void pop();
    void clear();

  private:
    struct Entry {
        std::shared_ptr<Namespace> space;
        Buffer buffer;
    };
    std::vector<Entry> ring_ = std::vector<Entry>(64);
    std::size_t first_ = 0;
    std::size_t count_ = 0;
};

/// One connected queue: takes commands out of capsules, gives them to who handles them, and answers.
/// Belongs to no controller until Connect. Thread: device.
class Queue final : public QueueHandler {
  public:
    /// All references must outlive this; `entries` is the number of slots.
    Queue(Target& target, Runtime& runtime, const QueueRequest& request, std::uint16_t entries,
          QueueChannel& channel);
    ~Queue() override;

    void command(std::uint16_t slot, Bytes submission, MutableBytes in_capsule) override;
    void responded(std::uint16_t slot) override;
    void gone() override;

    [[nodiscard]] Target& target() const { return target_; }
    [[nodiscard]] Runtime& runtime() const { return runtime_; }
    [[nodiscard]] QueueChannel& channel() const { return channel_; }
    [[nodiscard]] std::uint16_t id() const { return id_; }
    [[nodiscard]] const wire::MacAddress& peer() const { return peer_; }
    [[nodiscard]] std::uint16_t entries() const { return static_cast<std::uint16_t>(commands_.size()); }
    /// Null until Connect.
    [[nodiscard]] Controller* controller() const { return controller_.get(); }

    /// Connect has succeeded.
    void bind(std::shared_ptr<Controller> controller, std::uint16_t sq_entries, bool flow_control);
    /// The conversation about who the host is, when it must prove that on this queue; else null.
    std::shared_ptr<DhChap> authentication;
    [[nodiscard]] bool trusted() const {
        return authentication == nullptr || authentication->authenticated();
    }
    /// Ends the connection; commands that are still there are not answered.
    void close();
    [[nodiscard]] bool closing() const { return closing_; }
    /// The connection has ended and nothing refers to this any more.
    [[nodiscard]] bool finished() const { return gone_ && busy_ == 0; }
    /// The active command with this id; null when there is none.
    [[nodiscard]] Command* find(std::uint16_t command_id);
    [[nodiscard]] std::deque<Command>& commands() { return commands_; }

    /// The first half of a fused pair that waits for its second.
    Command* fused_first = nullptr;

    /// For Command: its response.
    void complete(Command& command, std::uint16_t status, std::uint64_t result,
                  std::shared_ptr<Namespace> space, Buffer buffer);
    /// For Command: what kept a dropped command busy has ended.
    void released(Command& command);

  private:
    void dispatch(Command& command);
    [[nodiscard]] bool in_use(std::uint16_t id) const { return (ids_[id / 64] >> id % 64 & 1U) != 0; }
    void answer(Command& command, std::uint16_t status, std::uint64_t result);

    Target& target_;
    Runtime& runtime_;
    QueueChannel& channel_;
    std::uint16_t id_;
    wire::MacAddress peer_;
    std::shared_ptr<Controller> controller_;
    /// They stay where they are.
    std::deque<Command> commands_;
    /// A bit for every command id that is in use.
    std::vector<std::uint64_t> ids_ = std::vector<std::uint64_t>(65536 / 64);
    KeptUntilAcknowledged kept_;
    std::uint16_t sq_head_ = 0;
    std::uint16_t sq_entries_;
    bool flow_control_ = true;
    bool closing_ = false;
    bool gone_ = false;
    /// Commands of a queue that is gone which still wait for a store.
    std::size_t busy_ = 0;
};

}  // namespace ernic::nvmeof
