// SPDX-License-Identifier: MIT
#include "vfio_user/irq_table.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <utility>

namespace ernic::vfio_user {
namespace {

namespace w = wire::vfio_user;
using w::IrqSet;

}  // namespace

IrqTable::IrqTable(Counters& counters, log::Logger logger) : counters_(counters), logger_(std::move(logger)) {
    const UniqueFd sample(::eventfd(0, EFD_CLOEXEC));
    struct stat status {};
    if (sample.valid() && ::fstat(sample.get(), &status) == 0) {
        eventfd_device_ = status.st_dev;
        eventfd_inode_ = status.st_ino;
    }
}

void IrqTable::attach(pci::Function& function) {
    function_ = &function;
    vectors_.clear();
    vectors_.resize(function.msix_vectors());
}

std::optional<std::uint32_t> IrqTable::count(std::uint32_t index) const {
    if (index == w::kIrqErr) {
        return std::nullopt;
    }
    return index == w::kIrqMsix ? static_cast<std::uint32_t>(vectors_.size()) : 0;
}

std::optional<Rejection> IrqTable::check(const IrqSet& request, Bytes data,
                                         const std::vector<UniqueFd>& fds) const {
    const std::uint32_t type = request.flags.get() & IrqSet::kDataMask;
    const std::uint32_t action = request.flags.get() & IrqSet::kActionsMask;
    const std::uint32_t start = request.start.get();
    const std::uint32_t count = request.count.get();
    if (request.argsz.get() < sizeof(IrqSet)) {
        return Rejection{Reject::Argsz, EINVAL};
    }
    if (request.index.get() >= w::kIrqCount) {
        return Rejection{Reject::Index, EINVAL};
    }
    if ((request.flags.get() & ~(IrqSet::kDataMask | IrqSet::kActionsMask)) != 0 ||
        !std::has_single_bit(type) || !std::has_single_bit(action)) {
        return Rejection{Reject::Flags, EINVAL};
    }
    if (!fds.empty() && (type != IrqSet::kDataEventfd || fds.size() != count)) {
        return Rejection{Reject::Fds, EINVAL};
    }
    if (count == 0) {
        // "Disable the whole index" must succeed also where the index has no interrupts: QEMU sends it for
        // INTX.
        const bool disable = type == IrqSet::kDataNone && action == IrqSet::kActionTrigger && start == 0;
        return disable ? std::nullopt : std::optional(Rejection{Reject::Range, EINVAL});
    }
    const std::uint32_t available = this->count(request.index.get()).value_or(0);
    if (start >= available || count > available - start) {
        return Rejection{Reject::Range, EINVAL};
    }
    if (type == IrqSet::kDataBool && data.size() != count) {
        return Rejection{Reject::PayloadSize, EINVAL};
    }
    if (type == IrqSet::kDataEventfd && action != IrqSet::kActionTrigger) {
        return Rejection{Reject::Flags, EINVAL};  // eventfds that mask or unmask are not offered
    }
    return std::nullopt;
}

std::optional<Rejection> IrqTable::set(const IrqSet& request, Bytes data, std::vector<UniqueFd>& fds) {
    if (const auto bad = check(request, data, fds)) {
        return bad;
    }
    if (request.count.get() == 0) {
        if (request.index.get() == w::kIrqMsix) {
            clear();
        }
        return std::nullopt;
    }
    if ((request.flags.get() & IrqSet::kDataEventfd) != 0) {
        return install(request.start.get(), request.count.get(), fds);
    }
    act(request, data);
    return std::nullopt;
}

bool IrqTable::is_eventfd(int fd) const {
    struct stat status {};
    return ::fstat(fd, &status) == 0 && status.st_dev == eventfd_device_ && status.st_ino == eventfd_inode_;
}

/// Anything else could block this thread at every interrupt (a full pipe, a file on a dead network file
/// system). Other kinds of anonymous files share the eventfds' inode, but a write to them fails at once.
std::optional<Rejection> IrqTable::install(std::uint32_t start, std::uint32_t count,
                                           std::vector<UniqueFd>& fds) {
    for (const UniqueFd& fd : fds) {
        if (!is_eventfd(fd.get())) {
            return Rejection{Reject::Fds, EINVAL};
        }
    }
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint32_t number = start + i;
        Vector& vector = vectors_[number];
        vector.eventfd = fds.empty() ? UniqueFd() : std::move(fds[i]);
        if (vector.eventfd.valid()) {
            vector.masked = false;
            function_->msix_vector_ready(static_cast<std::uint16_t>(number));
        }
    }
    return std::nullopt;
}

void IrqTable::act(const IrqSet& request, Bytes data) {
    const std::uint32_t action = request.flags.get() & IrqSet::kActionsMask;
    const bool chosen = (request.flags.get() & IrqSet::kDataBool) != 0;
    for (std::uint32_t i = 0; i < request.count.get(); ++i) {
        if (!chosen || data[i] != std::byte{0}) {
            act_on(static_cast<std::uint16_t>(request.start.get() + i), action);
        }
    }
}

void IrqTable::act_on(std::uint16_t vector, std::uint32_t action) {
    if (action == IrqSet::kActionTrigger) {
        fire(vector);
        return;
    }
    vectors_[vector].masked = action == IrqSet::kActionMask;
    if (!vectors_[vector].masked && vectors_[vector].eventfd.valid()) {
        function_->msix_vector_ready(vector);
    }
}

bool IrqTable::fire(std::uint16_t vector) {
    if (vector >= vectors_.size() || !vectors_[vector].eventfd.valid() || vectors_[vector].masked) {
        counters_.interrupts_unroutable.add();
        return false;
    }
    const Vector& target = vectors_[vector];
    // O_NONBLOCK belongs to the open file, which the client holds as well and may change at any time.
    pollfd room{target.eventfd.get(), POLLOUT, 0};
    if (::poll(&room, 1, 0) != 1 || (room.revents & POLLOUT) == 0) {
        counters_.interrupts_saturated.add();
        return true;
    }
    const std::uint64_t one = 1;
    if (::write(target.eventfd.get(), &one, sizeof(one)) == sizeof(one)) {
        counters_.interrupts.add();
    } else if (errno == EAGAIN) {
        counters_.interrupts_saturated.add();  // the counter is full, so an interrupt is pending anyway
    } else {
        logger_.warn_limited(limiter_, "interrupt vector {} lost: its descriptor takes no writes", vector);
    }
    return true;
}

void IrqTable::clear() {
    for (Vector& vector : vectors_) {
        vector = Vector();
    }
}

}  // namespace ernic::vfio_user
