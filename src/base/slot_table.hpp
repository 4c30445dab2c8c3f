// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace ernic {

/// Objects by index, of which a guest may have made tens of thousands and which can all be forgotten at once:
/// clear() takes no longer for many than for few, and sweep() gives back the memory of what was forgotten
/// piece by piece. Owns the objects. Thread: one.
template <typename T>
class SlotTable {
  public:
    explicit SlotTable(std::uint32_t size) : slots_(size) {}

    [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(slots_.size()); }
    /// nullptr when there is nothing at `index`, or no such index.
    [[nodiscard]] T* at(std::uint32_t index) const {
        return index < slots_.size() && slots_[index].generation == generation_ ? slots_[index].object.get()
                                                                                : nullptr;
    }
    [[nodiscard]] bool free(std::uint32_t index) const {
        return index < slots_.size() && at(index) == nullptr;
    }

    /// Fails: false when the index is out of range or taken.
    bool put(std::uint32_t index, std::unique_ptr<T> object) {
        if (!free(index)) {
            return false;
        }
        slots_[index] = {std::move(object), generation_};
        ++count_;
        return true;
    }
    /// Destroys the object at `index` at once, if there is one.
    void remove(std::uint32_t index) {
        if (at(index) != nullptr) {
            slots_[index].object.reset();
            --count_;
        }
    }
    [[nodiscard]] std::uint32_t count() const { return count_; }

    /// Forgets all objects; sweep() destroys them.
    void clear() {
        if (count_ != 0) {  // a guest may reset an empty card as often as it likes
            ++generation_;
            count_ = 0;
            unswept_ = size();
        }
    }
    /// Looks at `slots` slots for forgotten objects and destroys them. True while some are left to look at.
    bool sweep(std::uint32_t slots) {
        for (std::uint32_t left = std::min(slots, unswept_); left != 0; --left) {
            Slot& slot = slots_[--unswept_];
            if (slot.generation != generation_) {
                slot.object.reset();
            }
        }
        return unswept_ != 0;
    }

  private:
    struct Slot {
        std::unique_ptr<T> object;
        std::uint64_t generation = 0;
    };

    std::vector<Slot> slots_;
    std::uint64_t generation_ = 0;
    std::uint32_t count_ = 0;
    std::uint32_t unswept_ = 0;
};

}  // namespace ernic
