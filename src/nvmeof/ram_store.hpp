// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "base/result.hpp"
#include "nvmeof/store.hpp"

namespace ernic::nvmeof {

/// A namespace in anonymous memory: zeroes at first, in huge pages where the kernel has them. What is
/// deallocated goes back to the host in whole pages.
class RamStore final : public Store {
  public:
    /// `work` must outlive this. Fails: NoSpace when there is no such room in the address space.
    static Result<std::unique_ptr<RamStore>> make(std::uint64_t size, WorkQueue& work);
    ~RamStore() override;
    /// Who unmaps the memory in the end, which takes long if there is much of it. None: the destructor does.
    using Unmapper = std::function<void(std::byte* memory, std::uint64_t size)>;
    void set_unmapper(Unmapper unmapper) { unmapper_ = std::move(unmapper); }

    [[nodiscard]] std::uint64_t size() const override { return size_; }
    [[nodiscard]] std::byte* memory() const override { return memory_; }
    [[nodiscard]] bool volatile_cache() const override { return false; }
    /// Within the address space that was set aside when it was made: up to kGrowth times as large.
    Status resize(std::uint64_t size) override;
    static constexpr std::uint64_t kGrowth = 64;
    bool cancel(StoreOperation& operation) override;

  protected:
    void begin(StoreOperation& operation) override;
    void advance(StoreOperation& operation) override;

  private:
    RamStore(std::byte* memory, std::uint64_t reserved, std::uint64_t size, WorkQueue& work)
        : memory_(memory), reserved_(reserved), size_(size), work_(work) {}
    void zero(std::uint64_t offset, std::uint64_t length);

    /// What was cut off, until all of it has been given back: [begin, end), from the end on.
    class Tail final : public Work {
      public:
        explicit Tail(RamStore& store) : store_(store) {}
        void run() override;
        /// What of it lies below `size`, at once: the namespace grows into it.
        void give_back_below(std::uint64_t size);
        /// Precondition: `begin` is a multiple of a page, and what is there already begins at `end` or later.
        void add(std::uint64_t begin, std::uint64_t end);

      private:
        void give_back(std::uint64_t begin, std::uint64_t end);
        RamStore& store_;
        std::uint64_t begin_ = 0;
        std::uint64_t end_ = 0;
    };

    std::byte* memory_;
    std::uint64_t reserved_;
    std::uint64_t size_;
    WorkQueue& work_;
    Tail tail_{*this};
    Unmapper unmapper_;
};

}  // namespace ernic::nvmeof
