// SPDX-License-Identifier: MIT
#include "ionic/transceiver.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <string>

namespace ernic::ionic {
namespace {

std::uint8_t sum(const TransceiverMemory& memory, std::size_t first, std::size_t last) {
    return static_cast<std::uint8_t>(std::accumulate(memory.begin() + static_cast<std::ptrdiff_t>(first),
                                                     memory.begin() + static_cast<std::ptrdiff_t>(last) + 1,
                                                     0U));
}

TEST(Transceiver, IsAValidQsfp28) {
    const auto memory = make_transceiver_memory(TransceiverProfile{}, "SN1");
    EXPECT_EQ(memory[0], 0x11);
    EXPECT_EQ(memory[128], 0x11);
    EXPECT_EQ(memory[192], 0x02);  // 100GBASE-SR4
    EXPECT_EQ(memory[191], sum(memory, 128, 190));
    EXPECT_EQ(memory[223], sum(memory, 192, 222));
    EXPECT_EQ(std::string(memory.begin() + 196, memory.begin() + 212), "SN1             ");
}

TEST(Transceiver, AbsentModuleIsEmpty) {
    TransceiverProfile profile;
    profile.phy = 0;
    EXPECT_EQ(make_transceiver_memory(profile, "x"), TransceiverMemory{});
}

TEST(Transceiver, LongTextsAreCut) {
    TransceiverProfile profile;
    profile.vendor = std::string(100, 'V');
    const auto memory = make_transceiver_memory(profile, std::string(100, 'S'));
    EXPECT_EQ(memory[163], 'V');
    EXPECT_NE(memory[164], 'V');
    EXPECT_EQ(memory[191], sum(memory, 128, 190));
}

}  // namespace
}  // namespace ernic::ionic
