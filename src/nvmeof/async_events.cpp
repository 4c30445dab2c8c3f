// SPDX-License-Identifier: MIT
#include "nvmeof/async_events.hpp"

#include <algorithm>

#include "nvmeof/command.hpp"
#include "nvmeof/queue.hpp"
#include "wire/nvme_log.hpp"

namespace ernic::nvmeof {

namespace nvme = wire::nvme;

namespace {

/// What is told of a kind of event, and the bit that switches it on (0: always on).
struct Telling {
    std::uint8_t type;
    std::uint8_t information;
    nvme::LogPage log_page;
    std::uint32_t enable;
};

constexpr std::array<Telling, AsyncEvents::kKinds> kTellings{{
    {nvme::event::kNotice, nvme::event::kNoticeNamespaces, nvme::LogPage::ChangedNamespaces,
     nvme::event::kEnableNamespaces},
    {nvme::event::kNotice, nvme::event::kNoticeDiscovery, nvme::LogPage::Discovery,
     nvme::event::kEnableDiscovery},
    {nvme::event::kCommandSet, nvme::event::kReservationLog, nvme::LogPage::ReservationNotices, 0},
    {nvme::event::kNotice, nvme::event::kNoticeAna, nvme::LogPage::Ana, nvme::event::kEnableAna},
}};

constexpr std::uint8_t bit(std::size_t kind) {
    return static_cast<std::uint8_t>(1U << kind);
}

}  // namespace

bool AsyncEvents::wanted(Kind kind) const {
    const std::uint32_t enable = kTellings[static_cast<std::size_t>(kind)].enable;
    return enable == 0 || (enabled_ & enable) != 0;
}

void AsyncEvents::request(Command& command) {
    if (count_ == held_.size()) {
        command.finish(nvme::Status::AsyncEventLimit);
        return;
    }
    // Never goes on by itself: only an event, an abort or the end of its queue ends it.
    command.park(nullptr);
    held_[count_++] = &command;
    tell();
}

void AsyncEvents::raise(Kind kind) {
    if (wanted(kind)) {
        raised_ |= bit(static_cast<std::size_t>(kind));
        tell();
    }
}

void AsyncEvents::log_read(std::uint8_t log_page) {
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
        if (static_cast<std::uint8_t>(kTellings[kind].log_page) == log_page) {
            masked_ &= static_cast<std::uint8_t>(~bit(kind));
        }
    }
    tell();
}

void AsyncEvents::tell() {
    for (std::size_t kind = 0; kind < kKinds && count_ != 0; ++kind) {
        if ((raised_ & ~masked_ & bit(kind)) == 0) {
            continue;
        }
        raised_ &= static_cast<std::uint8_t>(~bit(kind));
        masked_ |= bit(kind);
        Command& command = *held_[0];
        forget(command);
        command.queue().runtime().counters.async_events.add();
        const Telling& telling = kTellings[kind];
        command.finish(nvme::Status::Success, telling.type | std::uint32_t{telling.information} << 8U |
                                                  static_cast<std::uint32_t>(telling.log_page) << 16U);
    }
}

void AsyncEvents::forget(const Command& command) {
    const auto end = held_.begin() + static_cast<std::ptrdiff_t>(count_);
    count_ = static_cast<std::size_t>(std::remove(held_.begin(), end, &command) - held_.begin());
}

void AsyncEvents::abort_all() {
    while (count_ != 0) {
        held_[--count_]->finish(nvme::Status::AbortRequested);
    }
}

}  // namespace ernic::nvmeof
