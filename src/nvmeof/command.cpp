// SPDX-License-Identifier: MIT
#include "nvmeof/command.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "nvmeof/namespace.hpp"
#include "nvmeof/queue.hpp"

namespace ernic::nvmeof {

namespace nvme = wire::nvme;

namespace {

/// Whether sending the same command again may end differently.
bool retry_may_help(nvme::Status status) {
    switch (status) {
        case nvme::Status::Success:
        case nvme::Status::DataTransferError:
        case nvme::Status::InternalError:
        case nvme::Status::AbortRequested:
        case nvme::Status::TransientTransport:
        case nvme::Status::NamespaceNotReady:
        case nvme::Status::ConnectBusy:
        case nvme::Status::AnaPersistentLoss:
        case nvme::Status::AnaInaccessible:
        case nvme::Status::AnaTransition:
            return true;
        default:
            return false;
    }
}

}  // namespace

Controller& Command::controller() const {
    return *queue_.controller();
}

void Command::begin(const nvme::SubmissionEntry& entry, MutableBytes in_capsule) {
    assert(!active_ && waits_ == Waits::Nothing);
    entry_ = entry;
    in_capsule_ = in_capsule;
    capsule_data_ = {};
    host_ = {};
    length_ = 0;
    error_ = 0;
    scratch = {};
    active_ = true;
    invalidate_ = false;
    woken_ = false;
}

nvme::Status Command::parse_data() {
    using nvme::SglDescriptor;
    if ((entry_.flags & nvme::SubmissionEntry::kPsdtMask) != nvme::SubmissionEntry::kPsdtSgl) {
        return Status::InvalidField;
    }
    const SglDescriptor& sgl = entry_.data;
    switch (sgl.identifier) {
        case SglDescriptor::kKeyedInvalidate:
        case SglDescriptor::kKeyed:
            length_ = sgl.keyed_length();
            host_ = {sgl.address.get(), length_, sgl.key()};
            invalidate_ = sgl.identifier == SglDescriptor::kKeyedInvalidate;
            return Status::Success;
        case SglDescriptor::kInCapsule: {
            const std::uint64_t offset = sgl.address.get();
            if (offset > in_capsule_.size() || sgl.length() > in_capsule_.size() - offset) {
                return Status::SglOffsetInvalid;
            }
            length_ = sgl.length();
            capsule_data_ = in_capsule_.subspan(offset, length_);
            return Status::Success;
        }
        default: {
            const unsigned type = sgl.identifier >> SglDescriptor::kTypeShift;
            return type == SglDescriptor::kTypeDataBlock || type == SglDescriptor::kTypeKeyed
                       ? Status::InvalidField
                       : Status::SglTypeInvalid;
        }
    }
}

BufferPool& Command::pool() const {
    const bool admin =
        queue_.id() == 0 || entry_.opcode == static_cast<std::uint8_t>(nvme::AdminOpcode::Fabrics);
    return admin ? queue_.runtime().admin_buffers : queue_.runtime().buffers;
}

bool Command::take_buffer(std::size_t size, Step retry) {
    if (buffer_) {
        assert(buffer_.size() >= size);
        return true;
    }
    BufferPool& pool = this->pool();
    if (!woken_) {
        buffer_ = pool.take(size);
        if (buffer_) {
            return true;
        }
        queue_.runtime().counters.buffer_waits.add();
        pool.wait(*this, size);
    } else {
        woken_ = false;
        buffer_ = pool.take_again(size, *this);
        if (buffer_) {
            return true;
        }
    }
    then_ = retry;
    waits_ = Waits::Work;
    woken_ = true;
    return false;
}

void Command::fetch(std::size_t size, Step then, std::size_t room) {
    assert(size != 0);
    if (size > length_) {
        return finish(Status::SglLengthInvalid);
    }
    if (data_in_capsule() && room == 0) {
        then(*this);
        return;
    }
    wanted_ = size;
    room_ = std::max(size, room);
    after_fetch_ = then;
    fetch_into_buffer(*this);
}

void Command::fetch_into_buffer(Command& command) {
    if (!command.take_buffer(command.room_, fetch_into_buffer)) {
        return;
    }
    if (command.data_in_capsule()) {
        command.after_fetch_(command);
        return;
    }
    mem::SpanList memory;
    command.buffer_.append(memory, 0, command.wanted_);
    command.read_host(memory, command.after_fetch_);
}

void Command::get_data(std::size_t offset, MutableBytes into) const {
    if (data_in_capsule()) {
        std::memcpy(into.data(), capsule_data_.data() + offset, into.size());
    } else {
        buffer_.get(offset, into);
    }
}

void Command::append_data(mem::SpanList& out, std::size_t offset, std::size_t size) const {
    if (data_in_capsule()) {
        out.add(capsule_data_.data() + offset, size);
    } else {
        buffer_.append(out, offset, size);
    }
}

void Command::read_host(const mem::SpanList& memory, Step then) {
    then_ = then;
    waits_ = Waits::Transfer;
    queue_.channel().read_host(host_, 0, memory, *this);
}

void Command::store(StoreOperation::Kind kind, std::uint64_t offset, std::uint64_t length, Step then,
                    std::size_t buffer_offset, const Buffer* buffer) {
    then_ = then;
    waits_ = Waits::Store;
    operation_.kind = kind;
    operation_.offset = offset;
    operation_.length = length;
    operation_.buffer = buffer != nullptr ? buffer : &buffer_;
    operation_.buffer_offset = buffer_offset;
    space->store().start(operation_);
}

void Command::later(Step then) {
    then_ = then;
    waits_ = Waits::Work;
    queue_.runtime().work.add(*this);
}

void Command::wait_in(WorkQueue& queue, Step then) {
    then_ = then;
    waits_ = Waits::Work;
    queue.add(*this);
}

void Command::park(Step then) {
    then_ = then;
    waits_ = Waits::Other;
}

void Command::resume() {
    go_on();
}

void Command::go_on() {
    waits_ = Waits::Nothing;
    if (active_) {
        then_(*this);
    } else {
        queue_.released(*this);
    }
}

void Command::transferred(bool ok) {
    if (!ok) {
        // gone() follows, and drops whatever is active.
        waits_ = Waits::Nothing;
        return;
    }
    go_on();
}

void Command::run() {
    go_on();
}

void Command::stored(int error) {
    error_ = error;
    if (error != 0) {
        queue_.runtime().counters.medium_errors.add();
        space->counters.media_errors.add();
    }
    go_on();
}

void Command::finish(Status status, std::uint64_t result) {
    auto bits = static_cast<std::uint16_t>(status);
    if (!retry_may_help(status)) {
        bits |= nvme::kDoNotRetry;
    }
    finish_raw(bits, result);
}

void Command::finish_raw(std::uint16_t status, std::uint64_t result) {
    assert(active_ && !queued());
    waits_ = Waits::Nothing;
    active_ = false;
    queue_.complete(*this, status, result, std::move(space), std::move(buffer_));
}

void Command::send(std::size_t size, std::uint64_t result) {
    if (data_in_capsule()) {
        return finish(Status::InvalidField);  // where the host's data is, nothing can be sent to
    }
    size = std::min<std::size_t>(size, length_);
    if (size != 0) {
        mem::SpanList memory;
        buffer_.append(memory, 0, size);
        queue_.channel().write_host(host_, 0, memory, nullptr);
    }
    finish(Status::Success, result);
}

void Command::send_data(Bytes data, Step retry) {
    if (take_buffer(data.size(), retry)) {
        buffer_.put(0, data);
        send(data.size());
    }
}

bool Command::cancel() {
    switch (waits_) {
        case Waits::Work:
            leave();
            if (std::exchange(woken_, false)) {
                pool().left();
            }
            break;
        case Waits::Store:
            if (!space->store().cancel(operation_)) {
                return false;
            }
            break;
        case Waits::Other:
            break;
        default:
            return false;
    }
    waits_ = Waits::Nothing;
    return true;
}

void Command::drop() {
    active_ = false;
    if (waits_ == Waits::Transfer) {
        waits_ = Waits::Nothing;
    }
    if (waits_ == Waits::Nothing || cancel()) {
        buffer_.reset();
        if (space != nullptr) {
            space->fused.release(*this, queue_.runtime().work);
            space.reset();
        }
    }
}

}  // namespace ernic::nvmeof
