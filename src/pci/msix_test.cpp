// SPDX-License-Identifier: MIT
#include "pci/msix.hpp"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "wire/pci.hpp"

namespace ernic::pci {
namespace {

constexpr std::uint16_t kEnabled = wire::pci::kMsixEnable;
constexpr std::uint16_t kMasked = wire::pci::kMsixEnable | wire::pci::kMsixFunctionMask;

class RecordingHost final : public Host {
  public:
    mem::GuestMemory& memory() override { return memory_; }
    bool send_msix(std::uint16_t vector) override {
        if (!reachable) {
            return false;
        }
        sent.push_back(vector);
        return true;
    }

    bool reachable = true;
    std::vector<std::uint16_t> sent;

  private:
    mem::GuestMemory memory_;
};

using Vectors = std::vector<std::uint16_t>;

TEST(Msix, SendsAtOnceWhenNothingIsInTheWay) {
    RecordingHost host;
    Msix msix(host, 32);
    msix.set_bus_master(true);
    msix.set_control(kEnabled);

    msix.raise(5);
    msix.raise(5);

    EXPECT_EQ(host.sent, (Vectors{5, 5}));
    EXPECT_FALSE(msix.pending(5));
}

TEST(Msix, HoldsOneInterruptPerVectorUntilEnabled) {
    RecordingHost host;
    Msix msix(host, 32);
    msix.set_bus_master(true);

    msix.raise(3);
    msix.raise(3);
    msix.raise(31);
    EXPECT_TRUE(host.sent.empty());
    EXPECT_TRUE(msix.pending(3));
    msix.set_control(kMasked);
    EXPECT_TRUE(host.sent.empty());
    msix.set_control(kEnabled);

    EXPECT_EQ(host.sent, (Vectors{3, 31}));
    EXPECT_FALSE(msix.pending(3));
}

TEST(Msix, HoldsInterruptsWhileBusMasteringIsOff) {
    RecordingHost host;
    Msix msix(host, 4);
    msix.set_control(kEnabled);

    msix.raise(1);
    EXPECT_TRUE(host.sent.empty());
    msix.set_bus_master(true);

    EXPECT_EQ(host.sent, (Vectors{1}));
}

TEST(Msix, HoldsInterruptOfVectorWithoutReceiver) {
    RecordingHost host;
    Msix msix(host, 4);
    msix.set_bus_master(true);
    msix.set_control(kEnabled);
    host.reachable = false;
    msix.raise(2);
    host.reachable = true;

    msix.vector_ready(1);
    EXPECT_TRUE(host.sent.empty());
    msix.vector_ready(2);
    msix.vector_ready(2);

    EXPECT_EQ(host.sent, (Vectors{2}));
}

TEST(Msix, ReadyVectorStaysSilentWhileTheFunctionIsMasked) {
    RecordingHost host;
    Msix msix(host, 4);
    msix.set_bus_master(true);
    msix.set_control(kMasked);
    msix.raise(0);

    msix.vector_ready(0);

    EXPECT_TRUE(host.sent.empty());
    EXPECT_TRUE(msix.pending(0));
}

TEST(Msix, PbaShowsPendingBitsAndZeroBehindItsEnd) {
    RecordingHost host;
    Msix msix(host, 70);
    msix.raise(0);
    msix.raise(9);
    msix.raise(69);

    std::array<std::byte, 24> pba;
    pba.fill(std::byte{0xee});
    msix.read_pba(0, pba);
    std::array<std::byte, 1> one{};
    msix.read_pba(1, one);

    EXPECT_EQ(read_value<le64>(pba)->get(), 0x201U);
    EXPECT_EQ(read_value<le64>(Bytes(pba).subspan(8))->get(), 0x20U);
    EXPECT_EQ(read_value<le64>(Bytes(pba).subspan(16))->get(), 0U);
    EXPECT_EQ(one[0], std::byte{0x02});
}

TEST(Msix, UnknownVectorIsCountedAndIgnored) {
    RecordingHost host;
    Msix msix(host, 4);
    msix.set_bus_master(true);
    msix.set_control(kEnabled);
    metrics::Registry registry;
    msix.register_in(registry, "msix");

    msix.raise(4);
    msix.raise(0xffff);
    msix.vector_ready(4);

    EXPECT_TRUE(host.sent.empty());
    EXPECT_EQ(registry.to_json()["msix"]["invalid"], 2);
}

TEST(Msix, ResetForgetsEverything) {
    RecordingHost host;
    Msix msix(host, 4);
    msix.raise(1);

    msix.reset();
    msix.set_bus_master(true);
    msix.set_control(kEnabled);

    EXPECT_TRUE(host.sent.empty());
}

}  // namespace
}  // namespace ernic::pci
