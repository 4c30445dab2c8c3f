// SPDX-License-Identifier: MIT
#include "rdma/service_queue.hpp"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <set>
#include <vector>

#include "net/filter.hpp"
#include "rdma/endpoint.hpp"

namespace ernic::rdma {
namespace {

constexpr wire::MacAddress kMacA{{0x02, 0, 0, 0, 0, 1}};
constexpr wire::MacAddress kMacB{{0x02, 0, 0, 0, 0, 2}};
constexpr std::uint32_t kBuffers = 8;

/// Loses what `lose` says.
class LossyFilter final : public net::Filter {
  public:
    bool pass(const net::Message& message, net::Path) override { return !lose || !lose(message); }
    bool pass(const net::Frame&, net::MacTable::Port, net::Path) override { return true; }
    std::function<bool(const net::Message&)> lose;
};

/// A service with one queue.
class Side final : public ServiceQueue::User {
  public:
    Side(net::Segment& segment, EventLoop& loop, wire::MacAddress mac)
        : endpoint(segment, loop, mac, {.queue_pairs = 4, .address_handles = 0, .memory_regions = 4}),
          queue(endpoint.engine(), *this, *endpoint.free_qpn(), QpType::Rc, buffers()) {}

    void connect(Side& peer) {
        QpAttributes attributes;
        attributes.destination_qpn = peer.queue.qp().qpn();
        attributes.timeout = 14;
        attributes.retry_count = 7;
        attributes.rnr_retry = 7;
        attributes.min_rnr_timer = 1;
        attributes.max_rd_atomic = 4;
        attributes.remote_read = attributes.remote_write = true;
        attributes.route.source = endpoint.engine().mac();
        attributes.route.destination = peer.endpoint.engine().mac();
        queue.bring_up(attributes);
    }
    void send(std::byte* data, std::size_t size, std::uint32_t number) {
        ServiceQueue::Request request;
        request.number = number;
        request.context = this;
        request.piece_count = 1;
        request.pieces[0] = {data, size};
        queue.post(request);
    }

    void received(std::uint32_t buffer, const ReceiveCompletion& completion) override {
        arrived.push_back(buffer);
        lengths.push_back(completion.length);
    }
    void sent(std::uint32_t number, void* context) override {
        EXPECT_EQ(context, this);
        ended.push_back(number);
    }
    void failed() override { ++failures; }

    std::vector<ServiceQueue::Buffer> buffers() {
        std::vector<ServiceQueue::Buffer> list;
        for (auto& bytes : memory) {
            list.push_back({MutableBytes(bytes).first(16), MutableBytes(bytes).subspan(16)});
        }
        return list;
    }

    std::array<std::array<std::byte, 4096>, kBuffers> memory{};
    Endpoint endpoint;
    ServiceQueue queue;
    std::vector<std::uint32_t> arrived;
    std::vector<std::uint32_t> lengths;
    std::vector<std::uint32_t> ended;
    int failures = 0;
};

class ServiceQueueTest : public testing::Test {
  protected:
    ServiceQueueTest() {
        a.connect(b);
        b.connect(a);
        segment.filter(&filter);
    }
    void settle() {
        for (int i = 0; i < 10'000 && (a.endpoint.step() || b.endpoint.step()); ++i) {
        }
    }
    void pass(Nanoseconds time) {
        clock.advance(time);
        loop.run_once(false);
        settle();
    }

    FakeClock clock;
    EventLoop loop{clock};
    net::Segment segment;
    LossyFilter filter;
    Side a{segment, loop, kMacA};
    Side b{segment, loop, kMacB};
};

TEST_F(ServiceQueueTest, AMessageFillsBothPiecesOfABuffer) {
    std::array<std::byte, 1000> data;
    for (std::size_t i = 0; i < data.size(); ++i) {
        data[i] = static_cast<std::byte>(i);
    }
    a.send(data.data(), data.size(), 5);
    settle();
    ASSERT_EQ(b.arrived.size(), 1U);
    EXPECT_EQ(b.lengths[0], 1000U);
    EXPECT_TRUE(std::equal(data.begin(), data.end(), b.memory[b.arrived[0]].begin()));
    EXPECT_EQ(a.ended, std::vector<std::uint32_t>{5});
    EXPECT_EQ(a.queue.outstanding(), 0U);
}

TEST_F(ServiceQueueTest, TheBufferUsedLastIsFilledNext) {
    std::array<std::byte, 16> data{};
    for (int i = 0; i < 20; ++i) {
        a.send(data.data(), data.size(), 0);
        settle();
        ASSERT_EQ(b.arrived.size(), static_cast<std::size_t>(i) + 1);
        EXPECT_EQ(b.arrived.back(), b.arrived.front());
        b.queue.post_receive(b.arrived.back());
    }
}

TEST_F(ServiceQueueTest, ManyRequestsEndInOrderWhileTheRingGrows) {
    constexpr std::uint32_t kRequests = 5000;
    std::vector<std::byte> from(kRequests);
    std::vector<std::byte> to(kRequests);
    MemoryRegion region;
    region.valid = true;
    region.pd = b.queue.qp().identity().pd;
    region.rights.remote_write = true;
    region.va = 0x10000;
    region.length = kRequests;
    region.pages = mem::PageList::contiguous(mem::Iova{reinterpret_cast<std::uintptr_t>(to.data())});
    constexpr std::uint32_t kKey = 2U << 8U | 1U;
    ASSERT_TRUE(b.endpoint.engine().memory_table().create(kKey, std::move(region)));
    for (std::uint32_t i = 0; i < kRequests; ++i) {
        from[i] = static_cast<std::byte>(i * 7);
        ServiceQueue::Request request;
        request.opcode = Opcode::Write;
        request.key = kKey;
        request.remote_address = 0x10000 + i;
        request.number = i;
        request.context = &a;
        request.piece_count = 1;
        request.pieces[0] = {&from[i], 1};
        a.queue.post(request);
    }
    EXPECT_EQ(a.queue.outstanding(), kRequests);
    settle();
    ASSERT_EQ(a.ended.size(), kRequests);
    for (std::uint32_t i = 0; i < kRequests; ++i) {
        ASSERT_EQ(a.ended[i], i);
    }
    EXPECT_EQ(from, to);
}

TEST_F(ServiceQueueTest, APeerHasNoKeyToTheProcess) {
    std::array<std::byte, 16> data{};
    std::array<std::byte, 16> secret{};
    ServiceQueue::Request request;
    request.opcode = Opcode::Write;
    request.key = 0;
    request.remote_address = reinterpret_cast<std::uintptr_t>(secret.data());
    request.context = &a;
    request.piece_count = 1;
    data.fill(std::byte{1});
    request.pieces[0] = {data.data(), data.size()};
    a.queue.post(request);
    settle();
    EXPECT_EQ(secret, (std::array<std::byte, 16>{}));
    EXPECT_EQ(a.failures, 1);
    EXPECT_TRUE(a.ended.empty());
}

TEST_F(ServiceQueueTest, WhatIsLostComesAgain) {
    int lost = 0;
    filter.lose = [&lost](const net::Message& message) {
        return message.kind == net::MessageKind::Send && ++lost % 2 == 1;
    };
    std::array<std::byte, 16> data{};
    for (std::uint32_t i = 0; i < 50; ++i) {
        a.send(data.data(), data.size(), i);
        settle();
        ASSERT_EQ(b.arrived.size(), i);
        pass(1'000'000'000);
        ASSERT_EQ(b.arrived.size(), i + 1U);
        b.queue.post_receive(b.arrived.back());
    }
    EXPECT_EQ(std::set<std::uint32_t>(b.arrived.begin(), b.arrived.end()).size(), 1U);
}

TEST_F(ServiceQueueTest, AFailureTellsOnceAndLeavesTheRequests) {
    filter.lose = [](const net::Message&) { return true; };
    std::array<std::byte, 16> data{};
    a.send(data.data(), data.size(), 1);
    a.send(data.data(), data.size(), 2);
    for (int i = 0; i < 20; ++i) {
        pass(1'000'000'000);
    }
    EXPECT_EQ(a.failures, 1);
    EXPECT_TRUE(a.queue.failed());
    a.send(data.data(), data.size(), 3);
    std::vector<std::uint32_t> left;
    a.queue.end_requests([&left](std::uint32_t number, void*) { left.push_back(number); });
    EXPECT_EQ(left, (std::vector<std::uint32_t>{1, 2, 3}));
    EXPECT_EQ(a.queue.outstanding(), 0U);
}

TEST(EndpointTest, NumbersOfQueuePairsComeAgainLate) {
    FakeClock clock;
    EventLoop loop(clock);
    net::Segment segment;
    Endpoint endpoint(segment, loop, kMacA, {.queue_pairs = 2, .address_handles = 0});
    std::set<std::uint32_t> numbers;
    for (int i = 0; i < 8; ++i) {
        numbers.insert(*endpoint.free_qpn());
    }
    EXPECT_EQ(numbers.size(), 8U);
    EXPECT_EQ(numbers.count(0) + numbers.count(1), 0U);
}

}  // namespace
}  // namespace ernic::rdma
