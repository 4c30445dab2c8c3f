// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstring>
#include <numeric>

#include "guest_sim/fixture.hpp"

namespace ernic::guest_sim {
namespace {

class Memory : public GuestTest {
  protected:
    Memory() { std::tie(client, peer) = guest.create_pair(*cq); }

    void write(const Sge& from, std::uint64_t remote_va, std::uint32_t rkey) {
        client->post_send(
            {.wr_id = 1, .op = Op::Write, .sges = {from}, .remote_va = remote_va, .rkey = rkey});
    }
    void read(const Sge& into, std::uint64_t remote_va, std::uint32_t rkey) {
        client->post_send({.wr_id = 1, .op = Op::Read, .sges = {into}, .remote_va = remote_va, .rkey = rkey});
    }

    QpPtr client;
    QpPtr peer;
    Region source = guest.register_memory(std::size_t{4} << 20U);
    Region target = guest.register_memory(std::size_t{4} << 20U);
};

// ---- Page tables

struct TableShape {
    std::uint8_t page_size_log2;
    std::uint32_t pages;
    std::uint64_t offset;
};

class PageTables : public Memory, public ::testing::WithParamInterface<TableShape> {};

/// Pages in scrambled order, the region starting inside the first: every byte must land where the table says.
TEST_P(PageTables, EveryByteIsWhereTheTableSays) {
    const TableShape shape = GetParam();
    const std::uint64_t page = std::uint64_t{1} << shape.page_size_log2;
    const Buffer pool = guest.allocate(page * shape.pages, page);
    std::vector<std::uint32_t> order(shape.pages);
    std::iota(order.begin(), order.end(), 0U);
    // A fixed permutation without neighbours: 0, 2, 4, ... 1, 3, 5, ... reversed.
    std::stable_partition(order.begin(), order.end(), [](std::uint32_t i) { return i % 2 == 1; });
    std::reverse(order.begin(), order.end());
    std::vector<std::uint64_t> table;
    for (const std::uint32_t index : order) {
        table.push_back(pool.iova + index * page);
    }
    const std::uint64_t length =
        std::min<std::uint64_t>(page * shape.pages - shape.offset - 5, source.length - 100);
    const Region region = guest.register_pages(table, shape.page_size_log2, shape.offset, length);
    fill_pattern(source.memory, 6);

    write(source.sge(7, length), region.va, region.key);
    expect_send(*cq, 1);
    const auto byte_at = [&](std::uint64_t offset) {
        const std::uint64_t within = shape.offset + offset;
        return pool.host[order[within / page] * page + within % page];
    };
    for (std::uint64_t i = 0; i < length; ++i) {
        ASSERT_EQ(byte_at(i), source.memory.host[7 + i]) << "offset " << i;
    }
    for (std::uint64_t i = 0; i < shape.offset; ++i) {
        ASSERT_EQ(pool.host[order[0] * page + i], std::byte{0}) << "written before the region";
    }
    // And back, through the region as local memory, at an odd place.
    write(region.sge(3, length - 3), target.va, target.key);
    expect_send(*cq, 1);
    EXPECT_EQ(std::memcmp(target.memory.host, source.memory.host + 10, length - 3), 0);
    // One byte more than the region is refused.
    write(source.sge(0, 2), region.va + length - 1, region.key);
    expect_send(*cq, 1, Status::RemoteAccess);
}

INSTANTIATE_TEST_SUITE_P(Shapes, PageTables,
                         ::testing::Values(TableShape{12, 2, 0}, TableShape{12, 64, 0},
                                           TableShape{12, 65, 4095}, TableShape{12, 700, 123},
                                           TableShape{13, 33, 5000}, TableShape{16, 16, 0},
                                           TableShape{16, 7, 65535}, TableShape{18, 9, 200001},
                                           TableShape{20, 4, 4096}, TableShape{21, 3, 1},
                                           TableShape{22, 2, 77}));

/// "Fewest entries": a region may be described by blocks that begin below or end above anything mapped.
TEST_F(Memory, HugeBlocksThatAreMappedOnlyInPart) {
    constexpr std::uint64_t kGiB = std::uint64_t{1} << 30U;
    constexpr std::size_t kSize = 65536;
    // The guest's own memory is the first 128 MiB of one block; this is a piece in the middle of the next.
    GuestRam other(kSize);
    const Buffer middle = other.allocate(kSize);
    guest.client().dma_map(other.fd(), 0, GuestRam::kBase + kGiB + kGiB / 2, kSize);
    const Buffer memory = guest.allocate(8192);
    const std::uint64_t offset = memory.iova - GuestRam::kBase;
    const Region region = guest.register_pages({GuestRam::kBase, GuestRam::kBase + kGiB}, 30, offset,
                                               kGiB + kGiB / 2 + kSize - offset);
    fill_pattern(source.memory, 3);
    write(source.sge(0, 8192), region.va, region.key);
    expect_send(*cq, 1);
    EXPECT_EQ(first_mismatch(memory, 3), kNoMismatch);
    write(source.sge(0, kSize), region.va + (kGiB + kGiB / 2 - offset), region.key);
    expect_send(*cq, 1);
    EXPECT_EQ(first_mismatch(middle, 3), kNoMismatch);
}

TEST_F(Memory, UnmappedGuestMemoryIsAnErrorNotACrash) {
    const std::vector<std::uint64_t> pages = {0x1000, source.memory.iova};
    const Region region = guest.register_pages(pages, 12, 0, 8192);
    write(source.sge(0, 64), region.va + 4096, region.key);
    expect_send(*cq, 1);
    write(source.sge(0, 64), region.va, region.key);
    const WorkCompletion wc = cq->wait();
    EXPECT_NE(wc.status, Status::Ok);
}

TEST_F(Memory, MemoryUnmappedDuringATransferFailsIt) {
    // A second DMA map at another address, taken away while it is being written.
    constexpr std::uint64_t kElsewhere = std::uint64_t{64} << 30U;
    constexpr std::size_t kSize = std::size_t{4} << 20U;
    const GuestRam other(kSize);
    guest.client().dma_map(other.fd(), 0, kElsewhere, kSize);
    const Region region = guest.register_memory(Buffer{nullptr, kElsewhere, kSize});
    for (int i = 0; i < 32; ++i) {
        client->stage(SendRequest{
            .wr_id = 1, .op = Op::Write, .sges = source.list(), .remote_va = region.va, .rkey = region.key});
    }
    client->ring_send();
    guest.client().dma_unmap(kElsewhere, kSize);
    const auto completions = cq->wait_for(32);
    EXPECT_NE(completions.back().status, Status::Ok);
}

TEST_F(Memory, AZeroBasedRegionStartsAtAddressZero) {
    const Region region = guest.register_memory(8192, kAllAccess | kZeroBased);
    fill_pattern(source.memory, 12);
    write(source.sge(0, 100), 17, region.key);
    expect_send(*cq, 1);
    EXPECT_EQ(std::memcmp(region.memory.host + 17, source.memory.host, 100), 0);
    write(source.sge(0, 1), 8192, region.key);
    expect_send(*cq, 1, Status::RemoteAccess);
}

TEST_F(Memory, ARegionAcrossTwoDmaMaps) {
    constexpr std::uint64_t kLow = std::uint64_t{80} << 30U;
    constexpr std::size_t kSize = 65536;
    GuestRam low(kSize);
    GuestRam high(kSize);
    const Buffer low_memory = low.allocate(kSize);
    const Buffer high_memory = high.allocate(kSize);
    guest.client().dma_map(low.fd(), 0, kLow, kSize);
    guest.client().dma_map(high.fd(), 0, kLow + kSize, kSize);
    const Region region = guest.register_memory(Buffer{nullptr, kLow, 2 * kSize});
    fill_pattern(source.memory, 14);
    write(source.sge(0, 2 * kSize), region.va, region.key);
    expect_send(*cq, 1);
    EXPECT_EQ(std::memcmp(low_memory.host, source.memory.host, kSize), 0);
    EXPECT_EQ(std::memcmp(high_memory.host, source.memory.host + kSize, kSize), 0);
}

// ---- Fast registration (kernel QPs)

class FastRegistration : public GuestTest {
  protected:
    FastRegistration() {
        std::tie(client, peer) =
            guest.create_pair(*kernel_cq, {.dbid = 0, .max_sges = 5, .privileged = true});
    }
    Sge direct(const Buffer& buffer) const {
        return {buffer.iova, static_cast<std::uint32_t>(buffer.size), 0};
    }
    void expect_local(std::uint64_t wr_id, Status status = Status::Ok) {
        expect_send(*kernel_cq, wr_id, status);
    }

    CqPtr kernel_cq = guest.create_cq({.dbid = 0});
    QpPtr client;
    QpPtr peer;
    Region fast = guest.create_fast_region();
    Buffer data = guest.allocate(65536);
    Buffer target = guest.allocate(65536);
};

TEST_F(FastRegistration, RegisterUseInvalidate) {
    const std::uint32_t key = fast.key | 0x11;
    const std::uint64_t va = 0xabc000;
    fill_pattern(data, 2);
    // The peer registers its memory; the client writes into it with the new key.
    peer->post_local(RegisterRequest{.wr_id = 1,
                                     .key = key,
                                     .va = va,
                                     .length = 65536,
                                     .dma_addr = target.iova,
                                     .access = kLocalWrite | kRemoteWrite | kRemoteRead});
    expect_local(1);
    client->post_send({.wr_id = 2, .op = Op::Write, .sges = {direct(data)}, .remote_va = va, .rkey = key});
    expect_local(2);
    EXPECT_EQ(first_mismatch(target, 2), kNoMismatch);
    peer->post_local(InvalidateRequest{.wr_id = 3, .key = key});
    expect_local(3);
    client->post_send({.wr_id = 4, .op = Op::Write, .sges = {direct(data)}, .remote_va = va, .rkey = key});
    expect_local(4, Status::RemoteAccess);
}

TEST_F(FastRegistration, ANewTagMakesTheOldKeyUseless) {
    const auto registration = [&](std::uint8_t tag) {
        peer->post_local(RegisterRequest{.wr_id = tag,
                                         .key = fast.key | tag,
                                         .va = 0,
                                         .length = 4096,
                                         .dma_addr = target.iova,
                                         .access = kLocalWrite | kRemoteWrite});
        expect_local(tag);
    };
    registration(1);
    peer->post_local(InvalidateRequest{.wr_id = 50, .key = fast.key | 1});
    expect_local(50);
    registration(2);
    client->post_send(
        {.wr_id = 60, .op = Op::Write, .sges = {{data.iova, 8, 0}}, .remote_va = 0, .rkey = fast.key | 2});
    expect_local(60);
    client->post_send(
        {.wr_id = 61, .op = Op::Write, .sges = {{data.iova, 8, 0}}, .remote_va = 0, .rkey = fast.key | 1});
    expect_local(61, Status::RemoteAccess);
}

TEST_F(FastRegistration, APageTableWithAnOffset) {
    fill_pattern(data, 8);
    const std::vector<std::uint64_t> pages = {target.iova + 3 * kPage, target.iova, target.iova + 9 * kPage};
    const PageTable table = guest.page_table(pages, 12);
    const std::uint64_t va = 0x5000 + 0x123;
    const std::uint32_t key = fast.key | 0x7f;
    peer->stage(RegisterRequest{.wr_id = 1,
                                .key = key,
                                .va = va,
                                .length = 2 * kPage,
                                .dma_addr = table.memory.iova,
                                .pages = table.pages,
                                .access = kLocalWrite | kRemoteWrite,
                                .signalled = false});
    // The table may be reused as soon as the request has completed; the NPG entry comes although it is
    // unsignalled.
    peer->stage(SendRequest{.wr_id = 2, .sges = {}});
    client->post_receive({.wr_id = 3});
    peer->ring_send();
    kernel_cq->wait_for(2);
    table.memory.fill(0xff);
    client->post_send(
        {.wr_id = 4, .op = Op::Write, .sges = {{data.iova, 2 * kPage, 0}}, .remote_va = va, .rkey = key});
    expect_local(4);
    EXPECT_EQ(std::memcmp(target.host + 3 * kPage + 0x123, data.host, kPage - 0x123), 0);
    EXPECT_EQ(std::memcmp(target.host, data.host + kPage - 0x123, kPage), 0);
    EXPECT_EQ(std::memcmp(target.host + 9 * kPage, data.host + 2 * kPage - 0x123, 0x123), 0);
}

/// The pattern of an NVMe-oF host: unsignalled registration, signalled SEND, answer invalidates remotely.
TEST_F(FastRegistration, RegisterSendAndRemoteInvalidate) {
    const Buffer capsule = guest.allocate(64);
    const Buffer response = guest.allocate(64);
    for (std::uint32_t i = 0; i < 300; ++i) {
        const std::uint32_t key = fast.key | (i & 0xffU);
        client->post_receive({.wr_id = 10, .sges = {direct(response)}});
        peer->post_receive({.wr_id = 20, .sges = {direct(capsule)}});
        client->stage(RegisterRequest{.wr_id = 1,
                                      .key = key,
                                      .va = data.iova,
                                      .length = 4096,
                                      .dma_addr = data.iova,
                                      .access = kLocalWrite | kRemoteRead | kRemoteWrite,
                                      .signalled = false});
        client->stage(SendRequest{.wr_id = 2, .sges = {direct(capsule)}});
        client->ring_send();
        for (const WorkCompletion& wc : kernel_cq->wait_for(2)) {
            ASSERT_EQ(wc.status, Status::Ok);
            ASSERT_EQ(wc.wr_id, wc.receive ? 20U : 2U);
        }
        peer->stage(SendRequest{.wr_id = 3,
                                .op = Op::Write,
                                .sges = {{target.iova, 512, 0}},
                                .remote_va = data.iova,
                                .rkey = key,
                                .signalled = false});
        peer->stage(SendRequest{
            .wr_id = 4, .op = Op::SendInvalidate, .sges = {direct(response)}, .invalidate_key = key});
        peer->ring_send();
        for (const WorkCompletion& wc : kernel_cq->wait_for(2)) {
            ASSERT_EQ(wc.status, Status::Ok);
            if (wc.receive) {
                ASSERT_EQ(wc.receive_op, ReceiveOp::SendInvalidate);
                ASSERT_EQ(wc.immediate_or_key, key);
            }
        }
    }
    EXPECT_EQ(client->entries().npg, 300U);
    // The key is dead now.
    peer->post_send({.wr_id = 5,
                     .op = Op::Write,
                     .sges = {{target.iova, 8, 0}},
                     .remote_va = data.iova,
                     .rkey = fast.key | 43U});
    expect_local(5, Status::RemoteAccess);
}

TEST_F(FastRegistration, KernelQpsGetOneEntryPerRequest) {
    for (std::uint64_t i = 0; i < 20; ++i) {
        client->stage(
            SendRequest{.wr_id = i, .op = Op::Write, .remote_va = 0, .rkey = 0, .signalled = i == 19});
    }
    client->ring_send();
    expect_local(19);
    EXPECT_EQ(client->entries().msn, 20U);
}

TEST_F(FastRegistration, InvalidatingAnInvalidOrWrongKeyFails) {
    client->post_local(InvalidateRequest{.wr_id = 1, .key = 0x00abcd00});
    expect_local(1, Status::MemoryManagement);
}

TEST_F(FastRegistration, AUserRegionCannotBeInvalidated) {
    const Region user = guest.register_memory(4096);
    client->post_local(InvalidateRequest{.wr_id = 1, .key = user.key});
    expect_local(1, Status::MemoryManagement);
}

TEST_F(FastRegistration, SendInvalidateOfAUserRegionIsRefused) {
    const Region user = guest.register_memory(4096);
    peer->post_receive({.wr_id = 7, .sges = {direct(data)}});
    client->post_send(
        {.wr_id = 1, .op = Op::SendInvalidate, .sges = {{data.iova, 8, 0}}, .invalidate_key = user.key});
    bool refused = false;
    for (const WorkCompletion& wc : kernel_cq->wait_for(2)) {
        EXPECT_NE(wc.status, Status::Ok);
        refused = refused || (!wc.receive && wc.status == Status::RemoteAccess);
    }
    EXPECT_TRUE(refused);
    // The region still works.
    auto [first, second] = guest.create_pair(*cq);
    first->post_send(
        {.wr_id = 9, .op = Op::Write, .sges = {user.sge(0, 8)}, .remote_va = user.va + 8, .rkey = user.key});
    expect_send(*cq, 9);
}

TEST_F(FastRegistration, AUserQpMayNotRegister) {
    auto [user, user_peer] = guest.create_pair(*cq);
    user->post_local(RegisterRequest{.wr_id = 1,
                                     .key = fast.key | 1,
                                     .va = 0,
                                     .length = 4096,
                                     .dma_addr = data.iova,
                                     .access = kAllAccess});
    const WorkCompletion wc = cq->wait();
    EXPECT_NE(wc.status, Status::Ok);
}

TEST_F(FastRegistration, LocalOperationsAndRemoteOnesKeepTheirOrder) {
    // Local requests complete on their own, but the queue is reported from its head.
    for (std::uint32_t i = 0; i < 12; ++i) {
        if (i % 3 == 1) {
            client->stage(RegisterRequest{.wr_id = i,
                                          .key = fast.key | (i & 0xffU),
                                          .va = 0,
                                          .length = 4096,
                                          .dma_addr = data.iova,
                                          .access = kLocalWrite});
        } else {
            client->stage(SendRequest{.wr_id = i, .op = Op::Write});
        }
    }
    client->ring_send();
    const auto completions = kernel_cq->wait_for(12);
    for (std::uint32_t i = 0; i < 12; ++i) {
        EXPECT_EQ(completions[i].wr_id, i);
        EXPECT_EQ(completions[i].status, Status::Ok);
    }
}

TEST_F(FastRegistration, KeyZeroReachesAllMemoryOfAPrivilegedQp) {
    fill_pattern(data, 3);
    client->post_send({.wr_id = 1, .sges = {direct(data)}});
    peer->post_receive({.wr_id = 2, .sges = {direct(target)}});
    kernel_cq->wait_for(2);
    EXPECT_EQ(first_mismatch(target, 3), kNoMismatch);
    // But not the peer's: that needs a QP made for it.
    client->post_send(
        {.wr_id = 3, .op = Op::Write, .sges = {{data.iova, 8, 0}}, .remote_va = target.iova, .rkey = 0});
    expect_local(3, Status::RemoteAccess);
}

TEST_F(FastRegistration, RemoteKeyZeroOnARemotePrivilegedQp) {
    auto [first, second] =
        guest.create_pair(*kernel_cq, {.dbid = 0, .privileged = true, .remote_privileged = true});
    fill_pattern(data, 5);
    first->post_send(
        {.wr_id = 1, .op = Op::Write, .sges = {direct(data)}, .remote_va = target.iova, .rkey = 0});
    expect_local(1);
    EXPECT_EQ(first_mismatch(target, 5), kNoMismatch);
}

// ---- Memory windows

class Windows : public Memory {
  protected:
    Region parent = guest.register_memory(65536, kAllAccess | kWindowBind);

    void bind(QueuePair& qp, const Region& window, std::uint8_t tag, std::uint64_t offset,
              std::uint64_t length, bool type2, std::uint16_t access = kRemoteWrite | kRemoteRead,
              Status status = Status::Ok) {
        qp.post_local(BindRequest{.wr_id = 40,
                                  .key = window.key,
                                  .new_tag = tag,
                                  .lkey = parent.key,
                                  .va = parent.va + offset,
                                  .length = length,
                                  .access = access,
                                  .type2 = type2});
        expect_send(*cq, 40, status);
    }
};

TEST_F(Windows, AType1WindowOpensPartOfItsRegion) {
    const Region window = guest.create_window(false);
    fill_pattern(source.memory, 4);
    bind(*peer, window, 0x21, 4096, 4096, false);
    const std::uint32_t key = window.key | 0x21;
    write(source.sge(0, 4096), parent.va + 4096, key);
    expect_send(*cq, 1);
    EXPECT_EQ(std::memcmp(parent.memory.host + 4096, source.memory.host, 4096), 0);
    write(source.sge(0, 8), parent.va + 4090, key);
    expect_send(*cq, 1, Status::RemoteAccess);
}

TEST_F(Windows, AType1WindowCanBeMovedAndClosed) {
    const Region window = guest.create_window(false);
    bind(*peer, window, 1, 0, 4096, false);
    bind(*peer, {window.key | 1, 0, 0, {}}, 2, 8192, 4096, false);
    write(source.sge(0, 8), parent.va + 8192, window.key | 2);
    expect_send(*cq, 1);
    // Length 0 closes it.
    bind(*peer, {window.key | 2, 0, 0, {}}, 3, 0, 0, false);
    write(source.sge(0, 8), parent.va + 8192, window.key | 3);
    expect_send(*cq, 1, Status::RemoteAccess);
}

TEST_F(Windows, AnUnboundWindowLetsNobodyIn) {
    const Region window = guest.create_window(false);
    write(source.sge(0, 8), parent.va, window.key);
    expect_send(*cq, 1, Status::RemoteAccess);
}

TEST_F(Windows, AType2WindowIsInvalidatedLocally) {
    const Region window = guest.create_window(true);
    bind(*peer, window, 7, 100, 1000, true);
    const std::uint32_t key = window.key | 7;
    read(target.sge(0, 1000), parent.va + 100, key);
    expect_send(*cq, 1);
    peer->post_local(InvalidateRequest{.wr_id = 41, .key = key});
    expect_send(*cq, 41);
    read(target.sge(0, 1000), parent.va + 100, key);
    expect_send(*cq, 1, Status::RemoteAccess);
}

TEST_F(Windows, AType2WindowIsInvalidatedByThePeer) {
    const Region window = guest.create_window(true);
    bind(*peer, window, 9, 0, 4096, true);
    const std::uint32_t key = window.key | 9;
    peer->post_receive({.wr_id = 2});
    client->post_send({.wr_id = 1, .op = Op::SendInvalidate, .invalidate_key = key});
    for (const WorkCompletion& wc : cq->wait_for(2)) {
        EXPECT_EQ(wc.status, Status::Ok);
        if (wc.receive) {
            EXPECT_EQ(wc.receive_op, ReceiveOp::SendInvalidate);
            EXPECT_EQ(wc.immediate_or_key, key);
        }
    }
    write(source.sge(0, 8), parent.va, key);
    expect_send(*cq, 1, Status::RemoteAccess);
}

TEST_F(Windows, AType2WindowBelongsToTheQpThatBoundIt) {
    const Region window = guest.create_window(true);
    auto [other, other_peer] = guest.create_pair(*cq);
    bind(*other_peer, window, 5, 0, 4096, true);
    other->post_send({.wr_id = 3,
                      .op = Op::Write,
                      .sges = {source.sge(0, 8)},
                      .remote_va = parent.va,
                      .rkey = window.key | 5});
    expect_send(*cq, 3);
    write(source.sge(0, 8), parent.va, window.key | 5);
    expect_send(*cq, 1, Status::RemoteAccess);
}

TEST_F(Windows, AWindowWithoutWriteRightIsReadOnly) {
    const Region window = guest.create_window(true);
    bind(*peer, window, 1, 0, 4096, true, kRemoteRead);
    read(target.sge(0, 8), parent.va, window.key | 1);
    expect_send(*cq, 1);
    write(source.sge(0, 8), parent.va, window.key | 1);
    expect_send(*cq, 1, Status::RemoteAccess);
}

TEST_F(Windows, BindingOutsideTheRegionFails) {
    bind(*peer, guest.create_window(true), 1, 65536 - 10, 11, true, kRemoteRead, Status::MemoryManagement);
}

TEST_F(Windows, BindingARegionWithoutTheBindRightFails) {
    parent = guest.register_memory(65536, kAllAccess);
    bind(*peer, guest.create_window(true), 1, 0, 4096, true, kRemoteRead, Status::MemoryManagement);
}

TEST_F(Windows, AWritableWindowNeedsAWritableRegion) {
    parent = guest.register_memory(65536, kRemoteRead | kWindowBind);
    bind(*peer, guest.create_window(true), 1, 0, 4096, true, kRemoteWrite, Status::MemoryManagement);
}

TEST_F(Windows, BindingARegionOfAnotherPdFails) {
    parent = guest.register_memory(65536, kAllAccess | kWindowBind, 3);
    bind(*peer, guest.create_window(true), 1, 0, 4096, true, kRemoteRead, Status::MemoryManagement);
}

TEST_F(Windows, ABoundType2WindowCannotBeBoundAgain) {
    const Region window = guest.create_window(true);
    bind(*peer, window, 1, 0, 4096, true);
    bind(*peer, {window.key | 1, 0, 0, {}}, 2, 0, 4096, true, kRemoteRead, Status::MemoryManagement);
}

TEST_F(Windows, AWindowDiesWithItsRegion) {
    const Region window = guest.create_window(true);
    bind(*peer, window, 1, 0, 4096, true);
    guest.destroy(parent);
    write(source.sge(0, 8), parent.va, window.key | 1);
    expect_send(*cq, 1, Status::RemoteAccess);
}

TEST_F(Windows, AnUnsignalledBindGetsItsEntry) {
    const Region window = guest.create_window(true);
    peer->stage(BindRequest{.wr_id = 1,
                            .key = window.key,
                            .new_tag = 1,
                            .lkey = parent.key,
                            .va = parent.va,
                            .length = 4096,
                            .access = kRemoteRead,
                            .signalled = false});
    peer->stage(SendRequest{.wr_id = 2, .op = Op::Write});
    peer->ring_send();
    expect_send(*cq, 2);
    EXPECT_EQ(peer->entries().npg, 1U);
    EXPECT_EQ(peer->send_room(), peer->send_capacity());
}

}  // namespace
}  // namespace ernic::guest_sim
