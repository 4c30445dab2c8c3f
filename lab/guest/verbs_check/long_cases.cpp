// SPDX-License-Identifier: MIT
//
// Messages that are longer than whatever a device keeps under way at one time.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "cases.hpp"
#include "check.hpp"
#include "pattern.hpp"

namespace {

void long_message(Context& context, Op op) {
    constexpr std::size_t kSize = 20 * kMiB + 1;
    const Buffer source(context.device().pd(), kSize + 3 * 4096);
    const Buffer target(context.device().pd(), kSize + 3 * 4096);
    Pair& pair = context.pair();
    run_transfer(source, target, pair.a, pair.b, {op, kSize, 4096 + 1, 4096 + 2});
}

/// Messages up to the limit of 2 GiB. The same 64 MiB of memory are mapped side by side until they fill an
/// address range that large, so what is checked in the end is the last round of it (and the length).
class LargeBuffer {
  public:
    static constexpr std::size_t kPart = 64 * kMiB;
    static constexpr std::size_t kSize = 2048 * kMiB;

    explicit LargeBuffer(const Device& device) {
        const int file = memfd_create("verbs_check", MFD_CLOEXEC);
        require(file >= 0 && ftruncate(file, kPart) == 0, "memfd_create: %s", strerror(errno));
        memory_ =
            static_cast<unsigned char*>(mmap(nullptr, kSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        for (std::size_t at = 0; at < kSize; at += kPart) {
            require(mmap(memory_ + at, kPart, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) !=
                        MAP_FAILED,
                    "mmap: %s", strerror(errno));
        }
        close(file);
        region_ = register_memory(device.pd(), memory_, kSize, kAllAccess);
    }
    ~LargeBuffer() {
        region_.reset();
        munmap(memory_, kSize);
    }
    LargeBuffer(const LargeBuffer&) = delete;
    LargeBuffer& operator=(const LargeBuffer&) = delete;

    [[nodiscard]] unsigned char* memory() const { return memory_; }
    [[nodiscard]] ibv_sge all(std::size_t size = kSize) const {
        return {reinterpret_cast<std::uint64_t>(memory_), static_cast<std::uint32_t>(size), region_->lkey};
    }
    [[nodiscard]] std::uint64_t va() const { return reinterpret_cast<std::uint64_t>(memory_); }
    [[nodiscard]] std::uint32_t rkey() const { return region_->rkey; }

  private:
    unsigned char* memory_;
    Owned<ibv_mr> region_;
};

/// Gigabytes take their time.
struct MorePatience {
    MorePatience() { Endpoint::patience_ms *= 10; }
    ~MorePatience() { Endpoint::patience_ms /= 10; }
    MorePatience(const MorePatience&) = delete;
    MorePatience& operator=(const MorePatience&) = delete;
};

void large(Context& context, Op op, std::size_t size) {
    const LargeBuffer source(context.device());
    const LargeBuffer target(context.device());
    const std::uint64_t seed = fresh_seed();
    fill_pattern(source.memory(), LargeBuffer::kPart, seed);
    EndpointOptions options = context.options();
    options.timeout = 0;  // for ever: nobody promises when so much is through
    const MorePatience patience;
    Pair pair(context.device(), options);
    SendRequest request(request_opcode(op), 1);
    request.local({(op == Op::Read ? target : source).all(size)});
    if (scatters_to_receive(op)) {
        pair.b.receive(1, {target.all(std::min(size, LargeBuffer::kSize))});
    } else {
        const LargeBuffer& remote = op == Op::Read ? source : target;
        request.remote(remote.va(), remote.rkey());
    }
    const int error = pair.a.try_post(request);
    if (size > LargeBuffer::kSize) {
        require(error != 0, "a message of %zu bytes was accepted", size);
        return;
    }
    require_ok(error, "ibv_post_send");
    if (scatters_to_receive(op)) {
        pair.b.finish_receive(1, size);
    }
    pair.a.finish_send(1, completion_opcode(op));
    const auto wrong = find_difference(target.memory(), LargeBuffer::kPart, seed);
    require(!wrong, "byte %zu of a part is wrong", wrong.value_or(0));
}

}  // namespace

void add_long_cases(Cases& cases) {
    for (const Op op : {Op::Send, Op::SendImm, Op::Write, Op::WriteImm, Op::Read}) {
        cases.push_back(
            {std::string("long/") + name_of(op), [op](Context& context) { long_message(context, op); }});
    }
}

void add_large_cases(Cases& cases) {
    for (const Op op : {Op::Send, Op::Write, Op::Read}) {
        for (const std::size_t size : {LargeBuffer::kSize - 1, LargeBuffer::kSize, LargeBuffer::kSize + 1}) {
            cases.push_back({std::string("large/") + name_of(op) + "/" + std::to_string(size),
                             [=](Context& context) { large(context, op, size); }});
        }
    }
}
