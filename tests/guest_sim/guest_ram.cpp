// SPDX-License-Identifier: MIT
#include "guest_sim/guest_ram.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include "guest_sim/error.hpp"

namespace ernic::guest_sim {

GuestRam::GuestRam(std::size_t size) : fd_(::memfd_create("guest-ram", MFD_CLOEXEC)), size_(size) {
    if (!fd_.valid() || ::ftruncate(fd_.get(), static_cast<off_t>(size)) != 0) {
        throw_errno("guest RAM");
    }
    void* address = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
    if (address == MAP_FAILED) {
        throw_errno("mmap of guest RAM");
    }
    host_ = static_cast<std::byte*>(address);
}

GuestRam::~GuestRam() {
    ::munmap(host_, size_);
}

Buffer GuestRam::allocate(std::size_t size, std::size_t alignment) {
    const std::size_t start = (used_ + alignment - 1) / alignment * alignment;
    if (start > size_ || size > size_ - start) {
        throw GuestError("guest RAM is full");
    }
    used_ = start + size;
    return {host_ + start, kBase + start, size};
}

}  // namespace ernic::guest_sim
