// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "nvmeof/buffer_pool.hpp"
#include "nvmeof/work_queue.hpp"

namespace ernic::nvmeof {

class Store;

/// One piece of business with a store: embedded in who wants it, alive until done() or until Store::cancel()
/// has returned true. The fields are the store's from start() until then.
class StoreOperation : public Work {
  public:
    /// Flush is for data; Synchronize for what keep() was given, too.
    enum class Kind : std::uint8_t { Read, Write, Zero, Deallocate, Flush, Synchronize };

    /// What to do with bytes [offset, offset + length) of the store; Read and Write move them to and from
    /// `buffer`, from `buffer_offset` on.
    Kind kind = Kind::Read;
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    const Buffer* buffer = nullptr;
    std::size_t buffer_offset = 0;
    /// The store's own note of how it has tried to zero, which may not work everywhere.
    std::uint8_t tried = 0;

    /// `error` is 0 or an errno. Never called from inside start().
    virtual void done(int error) = 0;
    void run() final;
    /// Who works on it. Precondition: it has been started.
    [[nodiscard]] Store& store() const { return *store_; }

  private:
    friend class Store;
    Store* store_ = nullptr;
};

/// The bytes of a namespace. Ranges given to it are inside size(). Thread: device.
class Store {
  public:
    Store() = default;
    virtual ~Store() = default;
    Store(const Store&) = delete;
    Store& operator=(const Store&) = delete;

    [[nodiscard]] virtual std::uint64_t size() const = 0;
    /// All of it, when it lies in memory that may be copied from and to at once; otherwise null, and
    /// everything goes through start().
    [[nodiscard]] virtual std::byte* memory() const { return nullptr; }
    /// Whether what has been written may be lost until it is flushed.
    [[nodiscard]] virtual bool volatile_cache() const = 0;
    /// A little text of the namespace's own beside its data, for when the process has ended: whether there
    /// can be one; what it is; and a new one, which is safe once a Synchronize has been done. Fails: false.
    [[nodiscard]] virtual bool keeps() const { return false; }
    [[nodiscard]] virtual std::vector<std::byte> kept() const { return {}; }
    virtual bool keep(Bytes /*text*/) { return false; }
    /// Makes it larger or smaller; what is added reads as zeroes. Fails: one sentence.
    virtual Status resize(std::uint64_t size) = 0;
    void start(StoreOperation& operation) {
        operation.store_ = this;
        begin(operation);
    }
    /// True when `operation` has been given up. False: it cannot be any more, and done() follows.
    virtual bool cancel(StoreOperation& operation) = 0;

  protected:
    virtual void begin(StoreOperation& operation) = 0;
    /// The next piece of an operation that was put into a work queue.
    virtual void advance(StoreOperation& operation) = 0;

  private:
    friend class StoreOperation;
};

inline void StoreOperation::run() {
    store_->advance(*this);
}

}  // namespace ernic::nvmeof
