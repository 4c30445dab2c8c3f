// SPDX-License-Identifier: MIT
#include "net/spool.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <future>
#include <system_error>

namespace ernic::net {
namespace {

/// Bytes of one write: large enough for a disk, small enough that room appears steadily.
constexpr std::size_t kLargestWrite = std::size_t{1} << 20U;

/// Signals belong to the device thread. SIGPIPE and SIGXFSZ become error codes of write().
void block_signals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace

Spool::Spool(UniqueFd fd, std::size_t capacity, const std::function<void()>& on_start)
    : fd_(std::move(fd)),
      wake_(eventfd(0, EFD_CLOEXEC)),
      capacity_(capacity),
      // Not zeroed: the pages appear as they are used.
      ring_(std::make_unique_for_overwrite<std::byte[]>(capacity)) {  // NOLINT(modernize-avoid-c-arrays)
    assert(std::has_single_bit(capacity) && capacity > kReserve);
    if (!wake_) {
        error_ = errno;
        return;
    }
    std::promise<void> started;
    try {
        thread_ = std::thread([this, &started, &on_start] {
            block_signals();
            if (on_start) {
                on_start();
            }
            started.set_value();
            run();
        });
    } catch (const std::system_error& problem) {
        error_ = problem.code().value();
        return;
    }
    started.get_future().wait();
}

Spool::~Spool() {
    close();
}

void Spool::close() {
    if (!thread_.joinable()) {
        return;
    }
    closing_ = true;
    wake();
    thread_.join();
}

bool Spool::add(std::span<const Bytes> parts, std::size_t reserve) {
    std::size_t size = 0;
    for (const Bytes part : parts) {
        size += part.size();
    }
    const std::uint64_t head = head_.load(std::memory_order_relaxed);
    // Acquire pairs with the release in run(): those bytes have been written out and may be replaced.
    const std::uint64_t used = head - tail_.load(std::memory_order_acquire);
    if (error() != 0 || size + reserve > capacity_ - used) {
        return false;
    }
    std::uint64_t position = head;
    for (const Bytes part : parts) {
        copy_in(position, part);
        position += part.size();
    }
    // Publishes the bytes. In one order with sleeping_: either the thread sees this head before it sleeps, or
    // this sees that it sleeps.
    head_.store(position, std::memory_order_seq_cst);
    if (sleeping_.load(std::memory_order_seq_cst) && sleeping_.exchange(false)) {
        wake();
    }
    return true;
}

void Spool::copy_in(std::uint64_t position, Bytes bytes) {
    if (bytes.empty()) {
        return;
    }
    const std::size_t at = position & (capacity_ - 1);
    const std::size_t until_end = std::min(bytes.size(), capacity_ - at);
    std::memcpy(ring_.get() + at, bytes.data(), until_end);
    std::memcpy(ring_.get(), bytes.data() + until_end, bytes.size() - until_end);
}

void Spool::wake() {
    const std::uint64_t one = 1;
    // Cannot fail: the counter is far from its limit.
    (void)!::write(wake_.get(), &one, sizeof(one));
}

void Spool::run() {
    while (wait_for_records()) {
        const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
        // Acquire pairs with the store in add(): the bytes below head are there.
        if (!write_some(tail, head_.load(std::memory_order_acquire))) {
            return;
        }
    }
}

bool Spool::wait_for_records() {
    const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    while (head_.load(std::memory_order_acquire) == tail) {
        if (closing_.load(std::memory_order_acquire)) {
            // Records put before closing are visible now, if they were not above.
            return head_.load(std::memory_order_acquire) != tail;
        }
        sleeping_.store(true, std::memory_order_seq_cst);
        if (head_.load(std::memory_order_seq_cst) != tail || closing_.load(std::memory_order_seq_cst)) {
            sleeping_.store(false, std::memory_order_relaxed);
            continue;
        }
        std::uint64_t ignored = 0;
        (void)!::read(wake_.get(), &ignored, sizeof(ignored));
    }
    return true;
}

bool Spool::write_some(std::uint64_t tail, std::uint64_t head) {
    const std::size_t at = tail & (capacity_ - 1);
    const std::size_t size = std::min({static_cast<std::size_t>(head - tail), capacity_ - at, kLargestWrite});
    const ssize_t written = ::write(fd_.get(), ring_.get() + at, size);
    if (written > 0) {
        tail_.store(tail + static_cast<std::uint64_t>(written), std::memory_order_release);
        return true;
    }
    if (written < 0 && (errno == EINTR || (errno == EAGAIN && wait_for_reader()))) {
        return true;
    }
    error_.store(written == 0 ? EIO : errno, std::memory_order_relaxed);
    return false;
}

bool Spool::wait_for_reader() {
    while (true) {
        const bool closing = closing_.load(std::memory_order_acquire);
        std::array<pollfd, 2> fds = {{{fd_.get(), POLLOUT, 0}, {wake_.get(), POLLIN, 0}}};
        // The wake-up is left where it is: only close() sends one now, and from then on only the reader
        // counts.
        const int ready = ::poll(fds.data(), closing ? 1 : 2, closing ? kPatienceMilliseconds : -1);
        if (ready > 0 && fds[0].revents != 0) {
            return true;
        }
        if (ready == 0) {
            errno = ETIMEDOUT;
            return false;
        }
        if (ready > 0 && !closing) {
            std::uint64_t ignored = 0;
            (void)!::read(wake_.get(), &ignored, sizeof(ignored));
        }
    }
}

}  // namespace ernic::net
