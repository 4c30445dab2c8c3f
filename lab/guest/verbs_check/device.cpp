// SPDX-License-Identifier: MIT
#include "device.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "check.hpp"

namespace {

std::string undestroyed;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kHugePage = 2U << 20U;

Owned<ibv_context> open_device(const std::string& name) {
    int count = 0;
    const std::unique_ptr<ibv_device*, void (*)(ibv_device**)> list(ibv_get_device_list(&count),
                                                                    ibv_free_device_list);
    require(list != nullptr && count > 0, "there is no RDMA device");
    require(!name.empty() || count == 1, "there are %d RDMA devices: choose one with --device", count);
    for (int i = 0; i < count; ++i) {
        ibv_device* device = list.get()[i];
        if (name.empty() || name == ibv_get_device_name(device)) {
            Owned<ibv_context> context(ibv_open_device(device));
            require(context != nullptr, "ibv_open_device: %s", strerror(errno));
            return context;
        }
    }
    fail("there is no RDMA device named %s", name.c_str());
}

bool is_ipv4(const ibv_gid& gid) {
    static const unsigned char prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    return memcmp(gid.raw, prefix, sizeof prefix) == 0;
}

int choose_gid(ibv_context* context) {
    std::vector<ibv_gid_entry> entries(256);
    const ssize_t count = ibv_query_gid_table(context, entries.data(), entries.size(), 0);
    int fallback = -1;
    for (ssize_t i = 0; i < count; ++i) {
        const ibv_gid_entry& entry = entries[static_cast<std::size_t>(i)];
        if (entry.port_num != kPort || entry.gid_type != IBV_GID_TYPE_ROCE_V2) {
            continue;
        }
        if (is_ipv4(entry.gid)) {
            return static_cast<int>(entry.gid_index);
        }
        if (fallback < 0) {
            fallback = static_cast<int>(entry.gid_index);
        }
    }
    require(fallback >= 0, "the port has no RoCE v2 GID");
    return fallback;
}

}  // namespace

void note_undestroyed(const char* what, int error) {
    undestroyed =
        std::string("a ") + what + " could not be destroyed: " + strerror(error < 0 ? -error : error);
}

std::string take_undestroyed() {
    return std::exchange(undestroyed, {});
}

Device::Device(const std::string& name, int gid_index) : context_(open_device(name)), gid_index_(gid_index) {
    require_ok(ibv_query_device(context(), &attributes_), "ibv_query_device");
    require_ok(ibv_query_port(context(), kPort, &port_), "ibv_query_port");
    require(port_.state == IBV_PORT_ACTIVE, "the port is not active");
    if (gid_index_ < 0) {
        gid_index_ = choose_gid(context());
    }
    pd_.reset(ibv_alloc_pd(context()));
    require(pd_ != nullptr, "ibv_alloc_pd: %s", strerror(errno));
}

ibv_gid Device::gid(int index) const {
    ibv_gid gid{};
    require_ok(ibv_query_gid(context(), kPort, index, &gid), "ibv_query_gid");
    return gid;
}

std::string Device::description() const {
    return std::string(ibv_get_device_name(context()->device)) + ", GID index " + std::to_string(gid_index_) +
           ", MTU " + std::to_string(mtu());
}

Buffer::Buffer(ibv_pd* pd, std::size_t size, int access, Pages pages) : size_(size) {
    const std::size_t room = (size + kHugePage - 1) / kHugePage * kHugePage;
    void* memory = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(memory != MAP_FAILED, "no memory for a buffer of %zu bytes", size);
    memory_ = static_cast<unsigned char*>(memory);
    madvise(memory_, room, pages == Pages::Huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    // Pages get their frames when they are first touched: a scrambled order scrambles the frames.
    const std::size_t count = (size + kPage - 1) / kPage;
    std::size_t step = count / 3 + 1;
    while (count % step == 0 && step > 1) {
        ++step;
    }
    for (std::size_t round = 0, page = 0; round < count; ++round, page += step) {
        memory_[page % count * kPage] = 1;
    }
    for (std::size_t page = 0; page < count; ++page) {
        memory_[page * kPage] = 0;
    }
    mr_ = register_memory(pd, memory_, size, access);
}

Buffer::~Buffer() {
    mr_.reset();
    munmap(memory_, (size_ + kHugePage - 1) / kHugePage * kHugePage);
}

Owned<ibv_mr> register_memory(ibv_pd* pd, void* at, std::size_t size, int access) {
    Owned<ibv_mr> mr(ibv_reg_mr(pd, at, size, static_cast<unsigned>(access)));
    require(mr != nullptr, "ibv_reg_mr of %zu bytes: %s", size, strerror(errno));
    return mr;
}
