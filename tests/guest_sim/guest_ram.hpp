// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/bytes.hpp"
#include "base/fd.hpp"

namespace ernic::guest_sim {

inline constexpr std::size_t kPage = 4096;

/// A piece of guest memory: where the guest sees it and where the device does.
struct Buffer {
    std::byte* host = nullptr;
    std::uint64_t iova = 0;
    std::size_t size = 0;

    [[nodiscard]] MutableBytes bytes() const { return {host, size}; }
    [[nodiscard]] Buffer part(std::size_t offset, std::size_t length) const {
        return {host + offset, iova + offset, length};
    }
    void fill(std::uint8_t value) const { std::memset(host, value, size); }
    template <WireValue T>
    [[nodiscard]] T get(std::size_t offset = 0) const {
        T value;
        std::memcpy(&value, host + offset, sizeof(T));
        return value;
    }
    template <WireValue T>
    void set(const T& value, std::size_t offset = 0) const {
        std::memcpy(host + offset, &value, sizeof(T));
    }
};

/// Guest RAM in a memfd, as QEMU's memory-backend-memfd with share=on has it. It starts at 4 GiB in the
/// device's address space, so that an address cut to 32 bits is noticed. Memory is handed out once and never
/// taken back: guests are small and short-lived.
class GuestRam {
  public:
    static constexpr std::uint64_t kBase = std::uint64_t{4} << 30U;

    explicit GuestRam(std::size_t size);
    ~GuestRam();
    GuestRam(const GuestRam&) = delete;
    GuestRam& operator=(const GuestRam&) = delete;

    /// Zeroed memory. Fails: GuestError when the guest is full.
    Buffer allocate(std::size_t size, std::size_t alignment = kPage);

    [[nodiscard]] int fd() const { return fd_.get(); }
    [[nodiscard]] std::size_t size() const { return size_; }

  private:
    UniqueFd fd_;
    std::size_t size_;
    std::byte* host_ = nullptr;
    std::size_t used_ = 0;
};

}  // namespace ernic::guest_sim
