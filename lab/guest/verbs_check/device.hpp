// SPDX-License-Identifier: MIT
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

/// A verbs object could not be destroyed: the running case fails when it ends.
void note_undestroyed(const char* what, int error);
/// What was noted since the last call; empty when nothing.
std::string take_undestroyed();

struct Destroyer {
    void operator()(ibv_context* it) const { note("device", ibv_close_device(it)); }
    void operator()(ibv_pd* it) const { note("protection domain", ibv_dealloc_pd(it)); }
    void operator()(ibv_mr* it) const { note("memory region", ibv_dereg_mr(it)); }
    void operator()(ibv_mw* it) const { note("memory window", ibv_dealloc_mw(it)); }
    void operator()(ibv_comp_channel* it) const { note("completion channel", ibv_destroy_comp_channel(it)); }
    void operator()(ibv_cq* it) const { note("completion queue", ibv_destroy_cq(it)); }
    void operator()(ibv_qp* it) const { note("queue pair", ibv_destroy_qp(it)); }
    void operator()(ibv_ah* it) const { note("address handle", ibv_destroy_ah(it)); }
    static void note(const char* what, int error) {
        if (error != 0) {
            note_undestroyed(what, error);
        }
    }
};
template <typename T>
using Owned = std::unique_ptr<T, Destroyer>;

constexpr std::uint8_t kPort = 1;
constexpr int kAllAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                           IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;

/// The device under test with its first port, and one protection domain for everything.
class Device {
  public:
    /// An empty name takes the only device; gid_index < 0 takes the first RoCE v2 GID made from an IPv4
    /// address, or the first RoCE v2 GID if there is none.
    Device(const std::string& name, int gid_index);

    [[nodiscard]] ibv_context* context() const { return context_.get(); }
    [[nodiscard]] ibv_pd* pd() const { return pd_.get(); }
    [[nodiscard]] const ibv_device_attr& attributes() const { return attributes_; }
    [[nodiscard]] const ibv_port_attr& port() const { return port_; }
    [[nodiscard]] int gid_index() const { return gid_index_; }
    [[nodiscard]] ibv_gid gid(int index) const;
    [[nodiscard]] std::size_t mtu() const { return std::size_t{128} << port_.active_mtu; }
    [[nodiscard]] std::string description() const;

  private:
    Owned<ibv_context> context_;
    Owned<ibv_pd> pd_;
    ibv_device_attr attributes_{};
    ibv_port_attr port_{};
    int gid_index_;
};

/// Registered memory.
class Buffer {
  public:
    enum class Pages {
        Scattered,  ///< 4 KiB pages that are not neighbours in physical memory, so that wrong page tables
                    ///< show
        Huge,
    };
    Buffer(ibv_pd* pd, std::size_t size, int access = kAllAccess, Pages pages = Pages::Scattered);
    ~Buffer();
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

    [[nodiscard]] unsigned char* at(std::size_t offset) const { return memory_ + offset; }
    [[nodiscard]] std::uint64_t va(std::size_t offset = 0) const {
        return reinterpret_cast<std::uint64_t>(memory_) + offset;
    }
    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] ibv_mr* mr() const { return mr_.get(); }
    [[nodiscard]] std::uint32_t lkey() const { return mr_->lkey; }
    [[nodiscard]] std::uint32_t rkey() const { return mr_->rkey; }
    [[nodiscard]] ibv_sge sge(std::size_t offset, std::size_t length) const {
        return {va(offset), static_cast<std::uint32_t>(length), lkey()};
    }

  private:
    unsigned char* memory_;
    std::size_t size_;
    Owned<ibv_mr> mr_;
};

/// Registers memory that the caller owns; the answer is never null.
Owned<ibv_mr> register_memory(ibv_pd* pd, void* at, std::size_t size, int access);
