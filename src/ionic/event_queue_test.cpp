// SPDX-License-Identifier: MIT
#include "ionic/event_queue.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ionic/test_driver.hpp"

namespace ernic::ionic {
namespace {

class MemorySink final : public log::Sink {
  public:
    void write(log::Level, std::string_view, std::string_view text) override { lines.emplace_back(text); }
    std::vector<std::string> lines;
};

class EventQueueTest : public ::testing::Test {
  protected:
    static constexpr std::uint8_t kDepthLog2 = 3;
    static constexpr std::uint32_t kDepth = 1U << kDepthLog2;

    EventQueueTest() {
        host.memory().set_enabled(true);
        base = host.allocate(4096);
    }
    EventQueue make(std::uint64_t at) {
        return {host.memory(), interrupts,
                *mem::Ring::make(mem::PageList::contiguous(mem::Iova{at}), kDepthLog2, 2), 0, losses};
    }
    std::uint32_t entry(std::uint32_t index) {
        return host.load<be32>(base + std::uint64_t{index} * 4).get();
    }

    test::FakeHost host;
    pci::Msix msix{host, 4};
    Interrupts interrupts{msix, 4};
    std::shared_ptr<MemorySink> sink = std::make_shared<MemorySink>();
    EventQueue::Losses losses{{}, {}, log::Logger(sink, "test")};
    std::uint64_t base = 0;
};

TEST_F(EventQueueTest, WhatDoesNotFitWaitsUntilTheDriverHasRead) {
    EventQueue queue = make(base);
    for (std::uint32_t i = 0; i < 2 * kDepth; ++i) {
        queue.post(i << 8U);
    }
    EXPECT_EQ(entry(kDepth - 1), 0U) << "one slot stays free";
    queue.serviced();
    EXPECT_EQ(entry(kDepth - 1), (kDepth - 1) << 8U | 1U);
    EXPECT_EQ(entry(0), kDepth << 8U) << "the colour of the second lap is 0";
    EXPECT_EQ(losses.events.value(), 0U);
}

TEST_F(EventQueueTest, AnEventIsUnreadUntilTheDriverHasSeenItInTheRing) {
    EventQueue queue = make(base);
    EXPECT_FALSE(queue.unread(0));
    std::uint64_t last = 0;
    for (std::uint32_t i = 0; i < kDepth; ++i) {
        last = queue.post(i << 8U).value();
    }
    EXPECT_TRUE(queue.unread(1));
    queue.serviced();
    EXPECT_FALSE(queue.unread(last - 1));
    EXPECT_TRUE(queue.unread(last)) << "it had to wait for room";
    queue.serviced();
    EXPECT_FALSE(queue.unread(last));
}

TEST_F(EventQueueTest, ALostEventHoldsNobodyBack) {
    EventQueue queue = make(std::uint64_t{1} << 60U);
    EXPECT_FALSE(queue.post(0x100).has_value());
    EXPECT_FALSE(queue.unread(0));
}

TEST_F(EventQueueTest, EventsOfADriverThatNeverReadsAreLostCountedAndToldOnce) {
    EventQueue queue = make(base);
    constexpr std::uint32_t kMostWaiting = 65536 + kDepth - 1;
    for (std::uint32_t i = 0; i < kMostWaiting; ++i) {
        queue.post(i << 8U);
    }
    EXPECT_EQ(losses.events.value(), 0U);
    for (int i = 0; i < 1000; ++i) {
        queue.post(0x100);
    }
    EXPECT_EQ(losses.events.value(), 1000U);
    ASSERT_LE(sink->lines.size(), 2U);
    EXPECT_EQ(sink->lines.at(0), "event lost vector=0 word=0x100: the driver does not read them");
}

TEST_F(EventQueueTest, EventsOfARingOutsideGuestMemoryAreLostAndCounted) {
    EventQueue queue = make(std::uint64_t{1} << 60U);
    queue.post(0x100);
    EXPECT_EQ(losses.events.value(), 1U);
    ASSERT_EQ(sink->lines.size(), 1U);
    EXPECT_EQ(sink->lines[0], "event lost vector=0 word=0x100: its ring is not in guest memory");
}

}  // namespace
}  // namespace ernic::ionic
