// SPDX-License-Identifier: MIT
#include "nvmeof/file_engine.hpp"

#include <fcntl.h>
#include <linux/falloc.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "nvmeof/file_store.hpp"
#include "nvmeof/file_threads.hpp"
#include "nvmeof/file_uring.hpp"

namespace ernic::nvmeof {
namespace {

using Kind = StoreOperation::Kind;

constexpr std::size_t kZeroPiece = 64U << 10U;
constexpr std::size_t kZeroPieces = 16;
constexpr std::size_t kAlignment = 4096;

/// Read only; written to files that cannot be zeroed in another way.
MutableBytes zeroes() {
    alignas(kAlignment) static std::array<std::byte, kZeroPiece> bytes{};
    return bytes;
}

FileStore& store_of(const StoreOperation& operation) {
    return static_cast<FileStore&>(operation.store());
}

void describe_zeroing(FileCall& call, StoreOperation& operation) {
    const FileStore::Zeroing how = store_of(operation).zeroing(operation.kind);
    operation.tried = static_cast<std::uint8_t>(how);
    switch (how) {
        case FileStore::Zeroing::ZeroRange:
            call.kind = FileCall::Kind::Allocate;
            call.mode = FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE;
            return;
        case FileStore::Zeroing::PunchHole:
            call.kind = FileCall::Kind::Allocate;
            call.mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
            return;
        case FileStore::Zeroing::Write:
            call.kind = FileCall::Kind::Write;
            for (std::size_t i = 0; i < kZeroPieces && call.memory.bytes() < operation.length; ++i) {
                call.memory.add(zeroes().data(),
                                std::min<std::uint64_t>(kZeroPiece, operation.length - call.memory.bytes()));
            }
            call.length = call.memory.bytes();
            return;
    }
}

}  // namespace

void FileEngine::start(StoreOperation& operation) {
    if (in_flight_ == kDepth) {
        waiting_.add(operation);
    } else {
        issue(operation);
    }
}

bool FileEngine::cancel(StoreOperation& operation) {
    const bool waits = operation.queued();
    operation.leave();
    return waits;
}

void FileEngine::issue(StoreOperation& operation) {
    FileCall call;
    call.fd = store_of(operation).fd();
    call.cached = !store_of(operation).direct();
    call.offset = operation.offset;
    call.length = operation.length;
    switch (operation.kind) {
        case Kind::Read:
        case Kind::Write:
            call.kind = operation.kind == Kind::Read ? FileCall::Kind::Read : FileCall::Kind::Write;
            operation.buffer->append(call.memory, operation.buffer_offset, operation.length);
            break;
        case Kind::Zero:
        case Kind::Deallocate:
            describe_zeroing(call, operation);
            break;
        case Kind::Flush:
        case Kind::Synchronize:
            call.kind = FileCall::Kind::Synchronize;
            call.mode = operation.kind == Kind::Synchronize ? 1 : 0;
            break;
    }
    ++in_flight_;
    submit(call, operation);
}

bool FileEngine::try_otherwise(StoreOperation& operation, int error) {
    if (error == EINTR || error == EAGAIN) {
        return true;
    }
    if (operation.kind != Kind::Zero && operation.kind != Kind::Deallocate) {
        return false;
    }
    FileStore& store = store_of(operation);
    const auto tried = static_cast<FileStore::Zeroing>(operation.tried);
    if (tried == FileStore::Zeroing::Write || (error != EOPNOTSUPP && error != EINVAL && error != ENODEV)) {
        return false;
    }
    // Otherwise another operation has found out meanwhile.
    if (tried == store.zeroing(operation.kind)) {
        store.zeroing_refused(tried);
    }
    return true;
}

void FileEngine::completed(StoreOperation& operation, std::int64_t result) {
    --in_flight_;
    int error = result < 0 ? static_cast<int>(-result) : 0;
    bool more = error != 0 && try_otherwise(operation, error);
    const bool moves = operation.kind == Kind::Read || operation.kind == Kind::Write;
    const bool writes_zeroes = (operation.kind == Kind::Zero || operation.kind == Kind::Deallocate) &&
                               operation.tried == static_cast<std::uint8_t>(FileStore::Zeroing::Write) &&
                               result > 0;
    if (error == 0 && (moves || writes_zeroes)) {
        const auto done = std::min(static_cast<std::uint64_t>(result), operation.length);
        operation.offset += done;
        operation.buffer_offset += done;
        operation.length -= done;
        more = operation.length != 0;
        if (more && done == 0) {
            // Behind the end: somebody has shrunk the file.
            more = false;
            error = EIO;
        }
    }
    if (more) {
        start(operation);
    } else {
        operation.done(error);
    }
    while (!waiting_.empty() && in_flight_ < kDepth) {
        issue(static_cast<StoreOperation&>(waiting_.pop()));
    }
}

std::unique_ptr<FileEngine> make_file_engine(EventLoop& loop, WorkQueue& work, const log::Logger& log,
                                             const std::function<void()>& on_thread_start) {
    auto ring = FileUring::make(loop, work);
    if (ring) {
        return std::move(*ring);
    }
    log.info("files of namespaces are read and written by threads: {}", ring.error().message);
    return std::make_unique<FileThreads>(loop, on_thread_start);
}

}  // namespace ernic::nvmeof
