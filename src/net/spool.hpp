// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <thread>

#include "base/bytes.hpp"
#include "base/fd.hpp"

namespace ernic::net {

/// Bytes on their way to a file that may be slow: the data path puts records into a bounded ring and never
/// waits, a thread of the spool's own writes them out and sleeps when there are none.
///
///     0 ... tail          head ...          capacity
///           | to be written |  free, and around the end to tail
///
/// One file at a time, as often as wanted. Between two files the thread sleeps and there is no ring. The
/// thread is there from the beginning, because a sandbox may forbid to start one later; for the same reason
/// nothing here but the constructor makes a descriptor.
///
/// Owns: the descriptor, the ring, the thread. Thread: all but run() belongs to one thread, the device's.
class Spool {
  public:
    /// Kept free by put() for what put_last() has to say about records that found no room.
    static constexpr std::size_t kReserve = 4096;

    /// The thread calls `on_start` first and is past its start when this returns, so that a sandbox may be
    /// entered behind it. Fails: error() says why there is no thread.
    /// Precondition: `capacity` is a power of two above kReserve.
    Spool(std::size_t capacity, const std::function<void()>& on_start);
    /// As close().
    ~Spool();
    Spool(const Spool&) = delete;
    Spool& operator=(const Spool&) = delete;

    /// Begins a file. `fd` may be non-blocking (a pipe). Precondition: idle(), and error() was 0 after
    /// construction. Fails: false when there is no memory for the ring.
    [[nodiscard]] bool open(UniqueFd fd);

    /// Adds one record made of `parts`, whole or not at all. Fails: false when there is no room for it, or
    /// the file has failed.
    [[nodiscard]] bool put(std::span<const Bytes> parts) { return add(parts, kReserve); }
    /// The same, with the reserve.
    [[nodiscard]] bool put_last(Bytes record) { return add(std::span(&record, 1), 0); }

    /// Ends the file: the thread writes out what is left, waiting at most kPatience for a reader that does
    /// not read, closes the descriptor and is idle(). Does not wait for it.
    void finish();
    static constexpr int kPatienceMilliseconds = 1000;
    /// finish(), and waits until idle().
    void close();

    /// No file is open, or the last one has been closed. Thread: any.
    [[nodiscard]] bool idle() const { return state_.load(std::memory_order_acquire) == State::Idle; }
    /// errno of the write that failed, after which nothing more is written to this file; EPIPE also when a
    /// pipe's reader has gone; 0 while all is well. Thread: any.
    [[nodiscard]] int error() const { return error_.load(std::memory_order_acquire); }
    /// An eventfd, readable when idle() or error() have changed on the thread's side. Not blocking.
    [[nodiscard]] int event_fd() const { return event_.get(); }

  private:
    enum class State : std::uint8_t { Idle, Open, Closing, Quitting };

    bool add(std::span<const Bytes> parts, std::size_t reserve);
    void copy_in(std::uint64_t position, Bytes bytes);
    void wake();

    // The thread's.
    void run();
    /// Sleeps until there is a file, or a file that failed is to be closed. False: quitting.
    bool wait_while(State state);
    /// Sleeps until there is something to write. False: closing, and everything is written; or nobody reads.
    bool wait_for_records();
    /// Writes a part of [tail, head). False: the file has failed.
    bool write_some(std::uint64_t tail, std::uint64_t head);
    /// Waits for a reader to make room. False: closing, and it does not.
    bool wait_for_reader();
    /// Sleeps until wake(). False: the file's reader has gone.
    bool sleep();
    void fail(int error);
    void end_file();
    void tell();
    [[nodiscard]] bool closing() const { return state_.load(std::memory_order_acquire) != State::Open; }

    UniqueFd fd_;
    UniqueFd wake_;
    UniqueFd event_;
    std::size_t capacity_;
    std::unique_ptr<std::byte[]> ring_;  // NOLINT(modernize-avoid-c-arrays)
    std::atomic<std::uint64_t> head_{0};
    std::atomic<std::uint64_t> tail_{0};
    /// The thread is about to sleep, or asleep: a record must be announced.
    std::atomic<bool> sleeping_{false};
    std::atomic<State> state_{State::Idle};
    std::atomic<int> error_{0};
    std::thread thread_;
};

}  // namespace ernic::net
