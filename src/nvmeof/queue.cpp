// SPDX-License-Identifier: MIT
#include "nvmeof/queue.hpp"

#include <utility>

#include "nvmeof/admin_commands.hpp"
#include "nvmeof/controller.hpp"
#include "nvmeof/fabrics_commands.hpp"
#include "nvmeof/io_commands.hpp"
#include "nvmeof/target.hpp"

namespace ernic::nvmeof {

namespace nvme = wire::nvme;
using nvme::Status;

void KeptUntilAcknowledged::push(std::shared_ptr<Namespace> space, Buffer buffer) {
    if (count_ == ring_.size()) {
        std::vector<Entry> larger(2 * ring_.size());
        for (std::size_t i = 0; i < count_; ++i) {
            larger[i] = std::move(ring_[(first_ + i) % ring_.size()]);
        }
        ring_ = std::move(larger);
        first_ = 0;
    }
    Entry& entry = ring_[(first_ + count_++) % ring_.size()];
    entry.space = std::move(space);
    entry.buffer = std::move(buffer);
}

void KeptUntilAcknowledged::pop() {
    if (count_ != 0) {
        Entry& entry = ring_[first_];
        entry.space.reset();
        entry.buffer.reset();
        first_ = (first_ + 1) % ring_.size();
        --count_;
    }
}

void KeptUntilAcknowledged::clear() {
    while (count_ != 0) {
        pop();
    }
}

Queue::Queue(Target& target, Runtime& runtime, const QueueRequest& request, std::uint16_t entries,
             QueueChannel& channel)
    : target_(target),
      runtime_(runtime),
      channel_(channel),
      id_(request.queue_id),
      peer_(request.peer),
      sq_entries_(entries) {
    for (std::uint16_t slot = 0; slot < entries; ++slot) {
        commands_.emplace_back(*this, slot);
    }
}

Queue::~Queue() = default;

void Queue::command(std::uint16_t slot, Bytes submission, MutableBytes in_capsule) {
    if (closing_ || gone_) {
        return;
    }
    const auto entry = read_value<nvme::SubmissionEntry>(submission);
    if (!entry || slot >= commands_.size() || commands_[slot].active()) {
        runtime_.counters.malformed_capsules.add();
        close();
        return;
    }
    Command& command = commands_[slot];
    command.begin(*entry, in_capsule);
    sq_head_ = static_cast<std::uint16_t>(sq_head_ + 1U == sq_entries_ ? 0U : sq_head_ + 1U);
    const std::uint16_t id = command.id();
    if (in_use(id)) {
        // The id stays the other command's.
        command.drop();
        runtime_.counters.errors.add();
        answer(command, static_cast<std::uint16_t>(Status::CommandIdConflict) | nvme::kDoNotRetry, 0);
        kept_.push(nullptr, Buffer());
        return;
    }
    ids_[id / 64] |= std::uint64_t{1} << id % 64;
    dispatch(command);
}

void Queue::dispatch(Command& command) {
    const std::uint8_t opcode = command.entry().opcode;
    if (opcode == static_cast<std::uint8_t>(nvme::AdminOpcode::Fabrics)) {
        runtime_.counters.fabrics_commands.add();
        start_fabrics(command);
    } else if (controller_ == nullptr) {
        command.finish(Status::SequenceError);
    } else if (!trusted()) {
        command.finish(Status::AuthenticationRequired);
    } else if (!controller_->ready()) {
        command.finish(Status::SequenceError);
    } else if (id_ == 0) {
        runtime_.counters.admin_commands.add();
        controller_->traffic();
        start_admin(command);
    } else {
        controller_->traffic();
        start_io(command);
    }
}

void Queue::answer(Command& command, std::uint16_t status, std::uint64_t result) {
    nvme::CompletionEntry completion{};
    completion.result.set(result);
    completion.sq_head.set(flow_control_ ? sq_head_ : nvme::kNoSqHead);
    completion.sq_id.set(id_);
    completion.command_id.set(command.id());
    completion.status.set(static_cast<std::uint16_t>(status << 1U));
    channel_.respond(command.slot(), bytes_of(completion),
                     command.invalidates() ? std::optional(command.host().key) : std::nullopt);
}

void Queue::complete(Command& command, std::uint16_t status, std::uint64_t result,
                     std::shared_ptr<Namespace> space, Buffer buffer) {
    const std::uint16_t id = command.id();
    ids_[id / 64] &= ~(std::uint64_t{1} << id % 64);
    if (fused_first == &command) {
        fused_first = nullptr;
    }
    if (status != 0) {
        runtime_.counters.errors.add();
        if (controller_ != nullptr) {
            status |= controller_->note_error(command, status);
        }
    }
    if (gone_) {
        return;
    }
    kept_.push(std::move(space), std::move(buffer));
    if (closing_) {
        return;
    }
    answer(command, status, result);
}

void Queue::responded(std::uint16_t /*slot*/) {
    kept_.pop();
}

Command* Queue::find(std::uint16_t command_id) {
    if (!in_use(command_id)) {
        return nullptr;
    }
    for (Command& command : commands_) {
        if (command.active() && command.id() == command_id) {
            return &command;
        }
    }
    return nullptr;
}

void Queue::bind(std::shared_ptr<Controller> controller, std::uint16_t sq_entries, bool flow_control) {
    controller_ = std::move(controller);
    sq_entries_ = sq_entries;
    sq_head_ = static_cast<std::uint16_t>(sq_head_ % sq_entries);
    flow_control_ = flow_control;
}

void Queue::close() {
    if (!closing_ && !gone_) {
        closing_ = true;
        channel_.close();
    }
}

void Queue::gone() {
    if (gone_) {
        return;
    }
    gone_ = true;
    runtime_.counters.lost_connections.add();
    fused_first = nullptr;
    if (authentication != nullptr) {
        authentication->abandon();
    }
    for (Command& command : commands_) {
        if (command.active()) {
            command.drop();
            busy_ += command.busy() ? 1U : 0U;
        }
    }
    kept_.clear();
    if (controller_ != nullptr) {
        controller_->detach(*this);
    }
    target_.ended();
}

void Queue::released(Command& command) {
    command.drop();
    --busy_;
    target_.ended();
}

}  // namespace ernic::nvmeof
