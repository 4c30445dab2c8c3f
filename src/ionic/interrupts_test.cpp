// SPDX-License-Identifier: MIT
#include "ionic/interrupts.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "base/byte_order.hpp"
#include "wire/ionic_device.hpp"
#include "wire/pci.hpp"

namespace ernic::ionic {
namespace {

constexpr std::uint32_t kMask = 4;
constexpr std::uint32_t kCredits = 8;
constexpr std::uint32_t kMaskOnAssert = 12;
constexpr std::uint32_t kUnmask = wire::ionic::kCreditsUnmask;

class CountingHost final : public pci::Host {
  public:
    mem::GuestMemory& memory() override { return memory_; }
    bool send_msix(std::uint16_t vector) override {
        sent.push_back(vector);
        return true;
    }
    std::vector<std::uint16_t> sent;

  private:
    mem::GuestMemory memory_;
};

class InterruptsTest : public ::testing::Test {
  protected:
    InterruptsTest() {
        msix.set_bus_master(true);
        msix.set_control(wire::pci::kMsixEnable);
        set(0, kMaskOnAssert, 1);
        set(0, kMask, 0);
    }
    void set(std::uint16_t vector, std::uint32_t offset, std::uint32_t value) {
        const le32 raw(value);
        interrupts.write(32U * vector + offset, bytes_of(raw));
    }
    std::uint32_t get(std::uint16_t vector, std::uint32_t offset) const {
        le32 raw;
        interrupts.read(32U * vector + offset, mutable_bytes_of(raw));
        return raw.get();
    }
    [[nodiscard]] std::size_t fired() const { return host.sent.size(); }

    CountingHost host;
    pci::Msix msix{host, 4};
    Interrupts interrupts{msix, 4};
};

TEST_F(InterruptsTest, FiresOnceAndMasksItself) {
    interrupts.post_completion(0);
    interrupts.post_completion(0);
    EXPECT_EQ(fired(), 1U);
    EXPECT_EQ(get(0, kMask), 1U);
    EXPECT_EQ(get(0, kCredits), 2U);
}

TEST_F(InterruptsTest, WithoutMaskOnAssertEveryCompletionFires) {
    set(0, kMaskOnAssert, 0);
    interrupts.post_completion(0);
    interrupts.post_completion(0);
    EXPECT_EQ(fired(), 2U);
}

TEST_F(InterruptsTest, ACompletionBetweenLastPollAndUnmaskIsNotLost) {
    interrupts.post_completion(0);
    interrupts.post_completion(0);  // the driver has polled only the first
    set(0, kCredits, 1 | kUnmask);
    EXPECT_EQ(fired(), 2U);
    set(0, kCredits, 1 | kUnmask);
    EXPECT_EQ(fired(), 2U);
    EXPECT_EQ(get(0, kCredits), 0U);
}

TEST_F(InterruptsTest, ReturningWithoutUnmaskKeepsItMasked) {
    interrupts.post_completion(0);
    interrupts.post_completion(0);
    set(0, kCredits, 1);
    EXPECT_EQ(fired(), 1U);
    set(0, kMask, 0);
    EXPECT_EQ(fired(), 2U);
}

TEST_F(InterruptsTest, CreditsConsumedWithoutReturnDoNotFireForEver) {
    interrupts.post_completion(0);
    set(0, kCredits, 0 | kUnmask);  // consumed by netpoll, which returns nothing
    EXPECT_EQ(fired(), 1U);
    EXPECT_EQ(get(0, kCredits), 0U);
}

TEST_F(InterruptsTest, LeftoverCreditsCostAtMostOneInterrupt) {
    for (int i = 0; i < 5; ++i) {
        interrupts.post_completion(0);
    }
    set(0, kCredits, 2 | kUnmask);
    EXPECT_EQ(fired(), 2U);
    set(0, kCredits, 0 | kUnmask);
    EXPECT_EQ(fired(), 2U);
}

TEST_F(InterruptsTest, ReturningTooManyCreditsStopsAtZero) {
    interrupts.post_completion(0);
    set(0, kCredits, 100 | kUnmask);
    EXPECT_EQ(get(0, kCredits), 0U);
    interrupts.post_completion(0);
    EXPECT_EQ(fired(), 2U);
}

TEST_F(InterruptsTest, ReturningTooManyDoesNotSwallowWhatCameSince) {
    interrupts.post_completion(0);
    interrupts.post_completion(0);  // not polled yet
    set(0, kCredits, 100 | kUnmask);
    EXPECT_EQ(fired(), 2U);
    set(0, kCredits, 0 | kUnmask);
    EXPECT_EQ(fired(), 2U);
}

TEST_F(InterruptsTest, CreditsSaturate) {
    interrupts.post_completions(0, 0xffffffff);
    interrupts.post_completions(0, 0xffffffff);
    EXPECT_EQ(get(0, kCredits), 0x7fffU);
}

TEST_F(InterruptsTest, EventsIgnoreReturnedCounts) {
    interrupts.post_event(0);
    interrupts.post_event(0);
    EXPECT_EQ(fired(), 1U);
    set(0, kCredits, 10);  // ionic_rdma after ten events, going on in a work item
    EXPECT_EQ(fired(), 1U);
    set(0, kCredits, 0 | kUnmask);
    EXPECT_EQ(fired(), 2U);  // the second event came after the interrupt
    set(0, kCredits, 0 | kUnmask);
    EXPECT_EQ(fired(), 2U);
}

TEST_F(InterruptsTest, AnEventWhileMaskedFiresAtUnmask) {
    set(0, kMask, 1);
    interrupts.post_event(0);
    EXPECT_EQ(fired(), 0U);
    set(0, kMask, 0);
    EXPECT_EQ(fired(), 1U);
}

TEST_F(InterruptsTest, UnmaskingAnEventVectorTellsItsQueueBeforeItFires) {
    std::size_t fired_before = 99;
    interrupts.on_event_unmask([&](std::uint16_t vector) {
        EXPECT_EQ(vector, 0);
        fired_before = fired();
        interrupts.post_event(vector);
    });
    interrupts.post_event(0);
    set(0, kCredits, 0 | kUnmask);
    EXPECT_EQ(fired_before, 1U);
    EXPECT_EQ(fired(), 2U);
}

TEST_F(InterruptsTest, AVectorGivenBackToEthernetCountsCreditsAgain) {
    interrupts.post_event(0);
    interrupts.post_completion(0);
    set(0, kCredits, 1 | kUnmask);
    EXPECT_EQ(get(0, kCredits), 0U);
    interrupts.post_completion(0);
    EXPECT_EQ(fired(), 2U);
}

TEST_F(InterruptsTest, VectorsOutOfRangeAreIgnored) {
    interrupts.post_completion(4);
    interrupts.post_event(65535);
    set(4, kMask, 0);
    EXPECT_EQ(get(4, kMask), 0U);
    EXPECT_EQ(fired(), 0U);
}

TEST_F(InterruptsTest, PartialAndSpanningAccessesWork) {
    std::array<std::byte, 3> bytes{};
    interrupts.write(1, Bytes(bytes).first(0));
    const std::uint8_t one = 1;
    interrupts.write(32 + kMaskOnAssert, bytes_of(one));
    EXPECT_EQ(get(1, kMaskOnAssert), 1U);
    const le16 half(0x1234);
    interrupts.write(32 + 2, bytes_of(half));
    EXPECT_EQ(get(1, 0), 0x12340000U);
    const le64 both(0xffffffff'00000005ULL);  // coalesce_init and mask
    interrupts.write(32, bytes_of(both));
    EXPECT_EQ(get(1, 0), 5U);
    EXPECT_EQ(get(1, kMask), 1U);
    le64 read;
    interrupts.read(32 + 2, mutable_bytes_of(read));
    EXPECT_EQ(read.get(), 0x0001'0000ULL);
}

TEST_F(InterruptsTest, ResetMasksAndForgets) {
    set(0, kMask, 1);
    interrupts.post_completion(0);
    interrupts.reset();
    EXPECT_EQ(get(0, kMask), 1U);
    EXPECT_EQ(get(0, kCredits), 0U);
    set(0, kMask, 0);
    EXPECT_EQ(fired(), 0U);
}

}  // namespace
}  // namespace ernic::ionic
