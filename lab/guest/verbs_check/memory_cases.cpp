// SPDX-License-Identifier: MIT
//
// Memory regions of every shape. What a region must refuse is in error_cases.cpp.
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "cases.hpp"
#include "check.hpp"
#include "pattern.hpp"

namespace {

/// Moves `size` bytes into and out of a region through its own address and keys.
void write_and_read(Context& context, ibv_mr* region, std::uint64_t region_va, unsigned char* memory,
                    std::size_t size) {
    Pair& pair = context.pair();
    const std::uint64_t seed = fresh_seed();
    const Layout near(4096, size);
    fill(context.source, near, seed);
    const auto length = static_cast<std::uint32_t>(size);
    const std::uint64_t first = pair.a.next_id();
    pair.a.post(SendRequest(IBV_WR_RDMA_WRITE, first)
                    .local({context.source.sge(4096, size)})
                    .remote(region_va, region->rkey));
    pair.a.finish_send(first, IBV_WC_RDMA_WRITE);
    const auto wrong = find_difference(memory, size, seed);
    require(!wrong, "byte %zu of %zu written into the region is wrong", wrong.value_or(0), size);

    fill_background(context.target, near);
    const std::uint64_t second = pair.a.next_id();
    pair.a.post(SendRequest(IBV_WR_RDMA_READ, second)
                    .local({context.target.sge(4096, size)})
                    .remote(region_va, region->rkey));
    pair.a.finish_send(second, IBV_WC_RDMA_READ);
    verify(context.target, near, seed, size);

    // And as local memory, through the lkey.
    fill_background(context.target, near);
    const std::uint64_t third = pair.b.next_id();
    pair.b.post(SendRequest(IBV_WR_RDMA_WRITE, third)
                    .local({{region_va, length, region->lkey}})
                    .remote(context.target.va(4096), context.target.rkey()));
    pair.b.finish_send(third, IBV_WC_RDMA_WRITE);
    verify(context.target, near, seed, size);
}

void odd_starts(Context& context) {
    const Buffer memory(context.device().pd(), 40 * 4096);
    for (const std::size_t start :
         {std::size_t{0}, std::size_t{1}, std::size_t{63}, std::size_t{4095}, std::size_t{4097}}) {
        for (const std::size_t size :
             {std::size_t{1}, std::size_t{4096}, std::size_t{4097}, std::size_t{70001}}) {
            unsigned char* from = memory.at(4096 + start);
            const auto region = register_memory(context.device().pd(), from, size, kAllAccess);
            const unsigned char before = from[-1] = 0xa5;
            const unsigned char behind = from[size] = 0x5a;
            write_and_read(context, region.get(), reinterpret_cast<std::uint64_t>(from), from, size);
            require(from[-1] == before && from[size] == behind, "a byte outside of the region was written");
        }
    }
}

/// The address a region is known by need not be where it is.
void other_address(Context& context) {
    const Buffer memory(context.device().pd(), 20 * 4096);
    for (const std::uint64_t address : {std::uint64_t{0}, std::uint64_t{0x123456789000}}) {
        for (const std::size_t start : {0U, 100U}) {
            const std::uint64_t va = address + start;
            const Owned<ibv_mr> region(
                ibv_reg_mr_iova(context.device().pd(), memory.at(4096 + start), 50000, va, kAllAccess));
            require(region != nullptr, "ibv_reg_mr_iova: %s", strerror(errno));
            write_and_read(context, region.get(), va, memory.at(4096 + start), 50000);
        }
    }
}

void zero_based(Context& context) {
    const Buffer memory(context.device().pd(), 20 * 4096);
    const Owned<ibv_mr> region(ibv_reg_mr(context.device().pd(), memory.at(5000), 50000,
                                          static_cast<unsigned>(kAllAccess) | IBV_ACCESS_ZERO_BASED));
    if (region == nullptr) {
        skip("ibv_reg_mr: %s", strerror(errno));
    }
    write_and_read(context, region.get(), 0, memory.at(5000), 50000);
}

void huge_pages(Context& context) {
    const Buffer memory(context.device().pd(), 4 * kMiB, kAllAccess, Buffer::Pages::Huge);
    write_and_read(context, memory.mr(), memory.va(), memory.at(0), 4 * kMiB);
    for (const std::size_t start : {std::size_t{4096}, 2 * kMiB - 5000}) {
        const auto region = register_memory(context.device().pd(), memory.at(start), 100000, kAllAccess);
        write_and_read(context, region.get(), memory.va(start), memory.at(start), 100000);
    }
}

void many(Context& context) {
    const Buffer memory(context.device().pd(), kMiB);
    std::vector<Owned<ibv_mr>> regions;
    for (std::size_t i = 0; i < 200; ++i) {
        regions.push_back(register_memory(context.device().pd(), memory.at(5000 * i + 17), 4000, kAllAccess));
    }
    for (std::size_t i = 0; i < 200; i += 7) {
        write_and_read(context, regions[i].get(), memory.va(5000 * i + 17), memory.at(5000 * i + 17), 4000);
    }
}

void registered_twice(Context& context) {
    const Buffer memory(context.device().pd(), 10 * 4096);
    const auto other = register_memory(context.device().pd(), memory.at(1000), 20000, kAllAccess);
    require(other->rkey != memory.rkey(), "two regions have the same key");
    write_and_read(context, other.get(), memory.va(1000), memory.at(1000), 20000);
    write_and_read(context, memory.mr(), memory.va(1000), memory.at(1000), 20000);
}

/// A source needs no right to write, neither in the region nor in the page table of the process.
void read_only(Context& context) {
    void* memory = mmap(nullptr, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(memory != MAP_FAILED, "no memory");
    const std::uint64_t seed = fresh_seed();
    fill_pattern(memory, 65536, seed);
    mprotect(memory, 65536, PROT_READ);
    {
        const auto region = register_memory(context.device().pd(), memory, 65536, IBV_ACCESS_REMOTE_READ);
        Pair& pair = context.pair();
        const Layout to(4096, 65536);
        fill_background(context.target, to);
        pair.a.post(SendRequest(IBV_WR_RDMA_WRITE, 1)
                        .local({{reinterpret_cast<std::uint64_t>(memory), 65536, region->lkey}})
                        .remote(context.target.va(4096), context.target.rkey()));
        pair.a.finish_send(1, IBV_WC_RDMA_WRITE);
        verify(context.target, to, seed, 65536);
        fill_background(context.target, to);
        pair.a.post(SendRequest(IBV_WR_RDMA_READ, 2)
                        .local({context.target.sge(4096, 65536)})
                        .remote(reinterpret_cast<std::uint64_t>(memory), region->rkey));
        pair.a.finish_send(2, IBV_WC_RDMA_READ);
        verify(context.target, to, seed, 65536);
    }
    munmap(memory, 65536);
}

void again_and_again(Context& context) {
    const Buffer memory(context.device().pd(), 10 * 4096);
    for (int round = 0; round < 60; ++round) {
        const auto region = register_memory(context.device().pd(), memory.at(0), 10 * 4096, kAllAccess);
        if (round % 10 == 0) {
            write_and_read(context, region.get(), memory.va(), memory.at(0), 10 * 4096);
        }
    }
}

}  // namespace

void add_memory_cases(Cases& cases) {
    cases.push_back({"mr/odd-starts", odd_starts});
    cases.push_back({"mr/other-address", other_address});
    cases.push_back({"mr/zero-based", zero_based});
    cases.push_back({"mr/huge-pages", huge_pages});
    cases.push_back({"mr/many", many});
    cases.push_back({"mr/registered-twice", registered_twice});
    cases.push_back({"mr/read-only", read_only});
    cases.push_back({"mr/again-and-again", again_and_again});
}
