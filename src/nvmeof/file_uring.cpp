// SPDX-License-Identifier: MIT
#include "nvmeof/file_uring.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>

namespace ernic::nvmeof {
namespace {

/// Completions handled before others have their turn.
constexpr unsigned kReaped = 32;
/// The kernel copies to and from the page cache while it takes a call. More than this is left to its workers,
/// because the device thread would stand still for longer than handing it over costs.
constexpr std::uint64_t kCopiedAtOnce = 32768;

Error failed(const char* what, int error) {
    return {Errc::Unsupported, fmt::format("no io_uring ({}: {})", what, std::strerror(error))};
}

}  // namespace

Result<std::unique_ptr<FileUring>> FileUring::make(EventLoop& loop, WorkQueue& work) {
    std::unique_ptr<FileUring> engine(new FileUring(loop, work));
    if (Status opened = engine->open(); !opened) {
        return opened.error();
    }
    return engine;
}

Status FileUring::open() {
    io_uring_params parameters{};
    parameters.flags = IORING_SETUP_R_DISABLED | IORING_SETUP_CLAMP;
    if (const int error = io_uring_queue_init_params(kDepth, &ring_, &parameters); error != 0) {
        return failed("setup", -error);
    }
    open_ = true;
    for (std::uint32_t i = 0; i < kDepth; ++i) {
        free_.push_back(i);
    }
    constexpr unsigned kNeeded = IORING_FEAT_SUBMIT_STABLE | IORING_FEAT_NODROP;
    if ((parameters.features & kNeeded) != kNeeded) {
        return failed("this kernel's is too old", ENOSYS);
    }
    event_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!event_) {
        return failed("eventfd", errno);
    }
    if (const int error = io_uring_register_eventfd(&ring_, event_.get()); error != 0) {
        return failed("eventfd", -error);
    }
    if (Status restricted = restrict_to_files(); !restricted) {
        return restricted;
    }
    loop_.add(event_.get(), EPOLLIN, [this](std::uint32_t) {
        std::uint64_t count = 0;
        (void)::read(event_.get(), &count, sizeof count);
        reap();
    });
    return Done{};
}

Status FileUring::restrict_to_files() {
    std::array<io_uring_restriction, 5> allowed{};
    constexpr std::array<std::uint8_t, 4> kOperations = {IORING_OP_READV, IORING_OP_WRITEV, IORING_OP_FSYNC,
                                                         IORING_OP_FALLOCATE};
    for (std::size_t i = 0; i < kOperations.size(); ++i) {
        allowed[i].opcode = IORING_RESTRICTION_SQE_OP;
        allowed[i].sqe_op = kOperations[i];
    }
    allowed.back().opcode = IORING_RESTRICTION_SQE_FLAGS_ALLOWED;
    allowed.back().sqe_flags = IOSQE_ASYNC;
    // Not by liburing's functions: the library that Debian 12 builds declares them, but does not have them.
    if (syscall(SYS_io_uring_register, ring_.ring_fd, IORING_REGISTER_RESTRICTIONS, allowed.data(),
                allowed.size()) != 0) {
        return failed("restrictions", errno);
    }
    if (syscall(SYS_io_uring_register, ring_.ring_fd, IORING_REGISTER_ENABLE_RINGS, nullptr, 0) != 0) {
        return failed("enable", errno);
    }
    return Done{};
}

FileUring::~FileUring() {
    if (event_) {
        loop_.remove(event_.get());
    }
    if (open_) {
        io_uring_queue_exit(&ring_);
    }
}

void FileUring::submit(const FileCall& call, StoreOperation& operation) {
    // There is one entry for each operation in flight, so that the queue cannot be full.
    io_uring_sqe* const entry = io_uring_get_sqe(&ring_);
    assert(entry != nullptr);
    const std::uint32_t index = free_.back();
    free_.pop_back();
    Slot& slot = slots_[index];
    slot.operation = &operation;
    unsigned count = 0;
    for (const mem::SpanList::Piece& piece : call.memory) {
        slot.pieces[count++] = {piece.data, piece.size};
    }
    switch (call.kind) {
        case FileCall::Kind::Read:
            io_uring_prep_readv(entry, call.fd, slot.pieces.data(), count, call.offset);
            break;
        case FileCall::Kind::Write:
            io_uring_prep_writev(entry, call.fd, slot.pieces.data(), count, call.offset);
            break;
        case FileCall::Kind::Allocate:
            io_uring_prep_fallocate(entry, call.fd, call.mode, static_cast<off_t>(call.offset),
                                    static_cast<off_t>(call.length));
            break;
        case FileCall::Kind::Synchronize:
            io_uring_prep_fsync(entry, call.fd, call.mode != 0 ? 0U : unsigned{IORING_FSYNC_DATASYNC});
            break;
    }
    if (call.cached && call.length > kCopiedAtOnce) {
        entry->flags |= IOSQE_ASYNC;
    }
    io_uring_sqe_set_data64(entry, index);
    hand_over();
}

void FileUring::hand_over() {
    if ((io_uring_submit(&ring_) < 0 || io_uring_sq_ready(&ring_) != 0) && !queued()) {
        work_.add(*this);  // short of memory, for instance: once more, later
    }
}

void FileUring::reap() {
    io_uring_cqe* completion = nullptr;
    for (unsigned i = 0; i < kReaped; ++i) {
        if (io_uring_peek_cqe(&ring_, &completion) != 0 || completion == nullptr) {
            return;
        }
        const auto index = static_cast<std::uint32_t>(io_uring_cqe_get_data64(completion));
        const std::int64_t result = completion->res;
        io_uring_cqe_seen(&ring_, completion);
        free_.push_back(index);
        completed(*slots_[index].operation, result);
    }
    if (!queued()) {
        work_.add(*this);
    }
}

void FileUring::run() {
    if (io_uring_sq_ready(&ring_) != 0) {
        hand_over();
    }
    reap();
}

}  // namespace ernic::nvmeof
