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
#include <cstring>
#include <future>
#include <new>
#include <system_error>

#include "base/blocked_signals.hpp"

namespace ernic::net {
namespace {

/// Bytes of one write: large enough for a disk, small enough that room appears steadily.
constexpr std::size_t kLargestWrite = std::size_t{1} << 20U;

}  // namespace

Spool::Spool(std::size_t capacity, const std::function<void()>& on_start)
    : wake_(eventfd(0, EFD_CLOEXEC)), event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), capacity_(capacity) {
    assert(std::has_single_bit(capacity) && capacity > kReserve);
    if (!wake_ || !event_) {
        error_ = errno;
        return;
    }
    std::promise<void> started;
    try {
        const BlockedSignals blocked;
        thread_ = std::thread([this, &started, &on_start] {
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
    if (thread_.joinable()) {
        state_ = State::Quitting;
        wake();
        thread_.join();
    }
}

bool Spool::open(UniqueFd fd) {
    assert(idle() && thread_.joinable());
    // Not zeroed: the pages appear as they are used.
    ring_.reset(new (std::nothrow) std::byte[capacity_]);  // NOLINT(modernize-avoid-c-arrays)
    if (!ring_) {
        return false;
    }
    fd_ = std::move(fd);
    error_ = 0;
    head_ = 0;
    tail_ = 0;
    state_.store(State::Open, std::memory_order_release);
    wake();
    return true;
}

void Spool::finish() {
    State open = State::Open;
    if (state_.compare_exchange_strong(open, State::Closing)) {
        wake();
    }
}

void Spool::close() {
    finish();
    state_.wait(State::Closing, std::memory_order_acquire);
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
    while (wait_while(State::Idle)) {
        while (wait_for_records()) {
            const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
            // Acquire pairs with the store in add(): the bytes below head are there.
            if (!write_some(tail, head_.load(std::memory_order_acquire))) {
                break;
            }
        }
        if (error() != 0) {
            tell();
            wait_while(State::Open);
        }
        end_file();
    }
}

bool Spool::wait_while(State state) {
    while (state_.load(std::memory_order_acquire) == state) {
        std::uint64_t ignored = 0;
        (void)!::read(wake_.get(), &ignored, sizeof(ignored));
    }
    return state_.load(std::memory_order_acquire) != State::Quitting;
}

/// The ring goes here and not with finish(), because giving megabytes back takes a millisecond.
void Spool::end_file() {
    fd_.reset();
    ring_.reset();
    state_.store(State::Idle, std::memory_order_release);
    state_.notify_all();
    tell();
}

void Spool::tell() {
    const std::uint64_t one = 1;
    (void)!::write(event_.get(), &one, sizeof(one));
}

void Spool::fail(int error) {
    error_.store(error, std::memory_order_release);
}

bool Spool::wait_for_records() {
    const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    while (head_.load(std::memory_order_acquire) == tail) {
        if (closing()) {
            // Records put before closing are visible now, if they were not above.
            return head_.load(std::memory_order_acquire) != tail;
        }
        sleeping_.store(true, std::memory_order_seq_cst);
        if (head_.load(std::memory_order_seq_cst) != tail || closing()) {
            sleeping_.store(false, std::memory_order_relaxed);
            continue;
        }
        if (!sleep()) {
            fail(EPIPE);
            return false;
        }
    }
    return true;
}

bool Spool::sleep() {
    // Nothing is asked of the file, so only the end of a pipe or socket is told.
    std::array<pollfd, 2> fds = {{{fd_.get(), 0, 0}, {wake_.get(), POLLIN, 0}}};
    if (::poll(fds.data(), fds.size(), -1) <= 0) {
        return true;
    }
    if (fds[1].revents != 0) {
        std::uint64_t ignored = 0;
        (void)!::read(wake_.get(), &ignored, sizeof(ignored));
        return true;
    }
    return fds[0].revents == 0;
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
    fail(written == 0 ? EIO : errno);
    return false;
}

bool Spool::wait_for_reader() {
    while (true) {
        const bool closing = this->closing();
        std::array<pollfd, 2> fds = {{{fd_.get(), POLLOUT, 0}, {wake_.get(), POLLIN, 0}}};
        // The wake-up is left where it is: only finish() sends one now, and from then on only the reader
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
