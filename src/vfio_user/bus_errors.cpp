// SPDX-License-Identifier: MIT
#include "vfio_user/bus_errors.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>

#include "vfio_user/limits.hpp"

namespace ernic::vfio_user {
namespace {

/// Room for a mapping more than the cache keeps, which is full for a moment while it makes room.
constexpr std::size_t kSlots = kMaxFiles + 1;

/// `size` is 0 while the slot is free. Written by the device thread only, outside any access to guest memory.
struct Slot {
    std::atomic<std::uintptr_t> start;
    std::atomic<std::size_t> size;
    std::atomic<bool> replaced;
};

// A signal handler can be handed nothing, so what it needs is global.
std::array<Slot, kSlots> slots;
std::atomic<int> notify{-1};
struct sigaction previous;

Slot* slot_of(std::uintptr_t address) {
    for (Slot& slot : slots) {
        if (address - slot.start.load(std::memory_order_relaxed) <
            slot.size.load(std::memory_order_relaxed)) {
            return &slot;
        }
    }
    return nullptr;
}

void on_bus_error(int /*signal*/, siginfo_t* info, void* /*context*/) {
    const int error = errno;
    Slot* slot = slot_of(reinterpret_cast<std::uintptr_t>(info->si_addr));
    void* start =
        slot != nullptr ? reinterpret_cast<void*>(slot->start.load(std::memory_order_relaxed)) : nullptr;
    if (slot == nullptr || slot->replaced.load(std::memory_order_relaxed) ||
        ::mmap(start, slot->size.load(std::memory_order_relaxed), PROT_READ | PROT_WRITE,
               MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED) {
        // Not ours: the access is repeated without us and ends the process.
        ::sigaction(SIGBUS, &previous, nullptr);
        return;
    }
    slot->replaced.store(true, std::memory_order_relaxed);
    const std::uint64_t one = 1;
    (void)!::write(notify.load(std::memory_order_relaxed), &one, sizeof(one));
    errno = error;
}

}  // namespace

Result<BusErrors> BusErrors::watch() {
    UniqueFd event(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO;
    if (event.get() < 0 || ::sigaction(SIGBUS, &action, &previous) != 0) {
        return Error{Errc::Io, fmt::format("cannot watch for bus errors: {}", std::strerror(errno))};
    }
    notify = event.get();
    return BusErrors(std::move(event));
}

BusErrors::~BusErrors() {
    if (event_.get() >= 0) {
        ::sigaction(SIGBUS, &previous, nullptr);
        notify = -1;
    }
}

bool BusErrors::take() const {
    std::uint64_t count = 0;
    return ::read(event_.get(), &count, sizeof(count)) == static_cast<ssize_t>(sizeof(count));
}

BusErrors::Watched::Watched(std::byte* data, std::size_t size) : slot_(0) {
    while (slot_ < kSlots && slots[slot_].size != 0) {
        ++slot_;
    }
    if (slot_ < kSlots) {
        slots[slot_].replaced = false;
        slots[slot_].start = reinterpret_cast<std::uintptr_t>(data);
        slots[slot_].size = size;
    }
}

BusErrors::Watched::~Watched() {
    if (slot_ < kSlots) {
        slots[slot_].size = 0;
    }
}

bool BusErrors::Watched::replaced() const {
    return slot_ < kSlots && slots[slot_].replaced;
}

}  // namespace ernic::vfio_user
