// SPDX-License-Identifier: MIT
#include "pci/config_space.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace ernic::pci {
namespace {

std::uint64_t load(const ConfigSpace& config, std::uint32_t offset, std::size_t size) {
    std::array<std::byte, 8> bytes{};
    config.read(offset, MutableBytes(bytes).first(size));
    return read_value<le64>(bytes)->get();
}

void store(ConfigSpace& config, std::uint32_t offset, std::uint64_t value, std::size_t size) {
    const le64 bytes(value);
    config.write(offset, bytes_of(bytes).first(size));
}

TEST(ConfigSpace, ShowsTheIdentityOfTheCard) {
    const ConfigSpace config{ConfigParameters{}};

    EXPECT_EQ(load(config, 0x00, 4), 0x10021dd8U);
    EXPECT_EQ(load(config, 0x08, 4), 0x02000000U);
    EXPECT_EQ(load(config, 0x2c, 4), 0x54001dd8U);
    EXPECT_EQ(load(config, 0x3d, 1), 0U) << "interrupt pin";
}

TEST(ConfigSpace, ReadOnlyBytesKeepTheirValueWhenEverythingIsOverwritten) {
    ConfigSpace config{ConfigParameters{}};
    const std::vector<std::byte> ones(wire::pci::kConfigSize, std::byte{0xff});

    config.write(0, ones);

    EXPECT_EQ(load(config, 0x00, 4), 0x10021dd8U);
    EXPECT_EQ(load(config, 0x04, 2), 0x0547U) << "command";
    EXPECT_EQ(load(config, 0x06, 2), 0x0010U) << "status";
    EXPECT_EQ(load(config, 0x34, 1), 0x40U);
    EXPECT_EQ(load(config, ConfigSpace::kMsix + 2, 2), 0xc01fU) << "MSI-X control";
    EXPECT_EQ(load(config, ConfigSpace::kExpress + 8, 2), 0x7fffU) << "device control: FLR reads 0";
    EXPECT_EQ(load(config, ConfigSpace::kExpress + 0x12, 2), 0x0104U) << "link status";
}

TEST(ConfigSpace, CapabilitiesFormTheChainQemuExpects) {
    const ConfigSpace config{ConfigParameters{}};

    EXPECT_EQ(load(config, 0x40, 2), 0x5001U) << "PM, next MSI-X";
    EXPECT_EQ(load(config, 0x50, 2), 0x6011U) << "MSI-X, next PCI Express";
    EXPECT_EQ(load(config, 0x60, 2), 0x0010U) << "PCI Express, last";
    EXPECT_EQ(load(config, 0x100, 4), 0x15020001U) << "AER v2, next serial number";
    EXPECT_EQ(load(config, 0x150, 4), 0x00010003U) << "serial number, last";
}

TEST(ConfigSpace, LinkParametersReachEveryLinkRegister) {
    ConfigParameters parameters;
    parameters.link_speed = LinkSpeed::Gen5;
    parameters.link_width = 8;

    const ConfigSpace config{parameters};

    EXPECT_EQ(load(config, 0x60 + 0x0c, 4), 0x00400085U);
    EXPECT_EQ(load(config, 0x60 + 0x12, 2), 0x0085U);
    EXPECT_EQ(load(config, 0x60 + 0x2c, 4), 0x0000003eU);
    EXPECT_EQ(load(config, 0x60 + 0x30, 2), 0x0005U);
}

TEST(ConfigSpace, BarSizingReadsBackTheSizeOf64BitBars) {
    ConfigParameters parameters;
    parameters.bars[2].size = 0x2'0000'0000;  // 8 GiB: the low register has no writable bit
    ConfigSpace config{parameters};

    for (const std::uint32_t bar : {0x10U, 0x14U, 0x18U, 0x1cU, 0x20U, 0x24U}) {
        store(config, bar, 0xffffffff, 4);
    }

    EXPECT_EQ(load(config, 0x10, 8), 0xffff'ffff'ffff'000cU);
    EXPECT_EQ(load(config, 0x18, 8), 0xffff'fffe'0000'000cU);
    EXPECT_EQ(load(config, 0x20, 8), 0U) << "BAR4 and BAR5 do not exist";
    EXPECT_EQ(config.bar_size(0), 0x10000U);
    EXPECT_EQ(config.bar_size(1), 0U);
}

TEST(ConfigSpace, BarKeepsTheAddressItIsGiven) {
    ConfigSpace config{ConfigParameters{}};

    store(config, 0x10, 0x0000'0038'fe12'3456, 8);

    EXPECT_EQ(config.bar_address(0), 0x0000'0038'fe12'0000U);
    EXPECT_EQ(config.bar_address(1), 0U);
    EXPECT_EQ(config.bar_address(9), 0U);
}

TEST(ConfigSpace, WriteOneToClearBitsCannotBeSet) {
    ConfigSpace config{ConfigParameters{}};

    store(config, ConfigSpace::kAer + 0x04, 0xffffffff, 4);
    store(config, ConfigSpace::kExpress + 0x0a, 0xffff, 2);

    EXPECT_EQ(load(config, ConfigSpace::kAer + 0x04, 4), 0U);
    EXPECT_EQ(load(config, ConfigSpace::kExpress + 0x0a, 2), 0U);
}

TEST(ConfigSpace, CommandCallbackComesOnceForEachChange) {
    ConfigSpace config{ConfigParameters{}};
    std::vector<std::uint16_t> seen;
    config.on_command([&](std::uint16_t command) { seen.push_back(command); });

    store(config, 4, 0x0006, 2);
    store(config, 4, 0x0006, 2);
    store(config, 5, 0x04, 1);
    config.reset();

    EXPECT_EQ(seen, (std::vector<std::uint16_t>{0x0006, 0x0406, 0x0000}));
}

TEST(ConfigSpace, MsixControlIsHeardAtEveryWidth) {
    ConfigSpace config{ConfigParameters{}};
    std::vector<std::uint16_t> seen;
    config.on_msix_control([&](std::uint16_t control) { seen.push_back(control); });

    store(config, ConfigSpace::kMsix + 2, 0xc01f, 2);
    store(config, ConfigSpace::kMsix + 3, 0x80, 1);
    store(config, ConfigSpace::kMsix, 0x0000ffff, 4);

    EXPECT_EQ(seen, (std::vector<std::uint16_t>{0xc01f, 0x801f, 0x001f}));
}

TEST(ConfigSpace, BusMasterIsToldBeforeMsixWhenOneWriteChangesBoth) {
    ConfigSpace config{ConfigParameters{}};
    std::vector<char> order;
    config.on_command([&](std::uint16_t) { order.push_back('c'); });
    config.on_msix_control([&](std::uint16_t) { order.push_back('m'); });
    std::vector<std::byte> image(256);
    image[4] = std::byte{4};
    image[ConfigSpace::kMsix + 3] = std::byte{0x80};

    config.write(0, image);

    EXPECT_EQ(order, (std::vector<char>{'c', 'm'}));
}

struct FlrWrite {
    std::uint32_t offset;
    std::uint64_t value;
    std::size_t size;
    int resets;
};

class ConfigSpaceFlr : public testing::TestWithParam<FlrWrite> {};

TEST_P(ConfigSpaceFlr, OnlyTheFlrBitResetsAndItReadsZero) {
    ConfigSpace config{ConfigParameters{}};
    int resets = 0;
    config.on_flr([&] {
        ++resets;
        config.reset();
    });
    store(config, 4, 0x0006, 2);

    store(config, GetParam().offset, GetParam().value, GetParam().size);

    EXPECT_EQ(resets, GetParam().resets);
    EXPECT_EQ(config.command(), GetParam().resets != 0 ? 0U : 0x0006U);
    EXPECT_EQ(load(config, 0x68, 2) & 0x8000U, 0U);
}

INSTANTIATE_TEST_SUITE_P(Widths, ConfigSpaceFlr,
                         testing::Values(FlrWrite{0x68, 0x8000, 2, 1}, FlrWrite{0x69, 0x80, 1, 1},
                                         FlrWrite{0x68, 0x0000a810, 4, 1},
                                         FlrWrite{0x64, 0x8000'0000'0000, 8, 1}, FlrWrite{0x68, 0x7fff, 2, 0},
                                         FlrWrite{0x68, 0x80, 1, 0}, FlrWrite{0x6a, 0x8000, 2, 0}));

TEST(ConfigSpace, AccessPastTheEndIsCutOff) {
    ConfigSpace config{ConfigParameters{}};
    const std::array<std::byte, 8> ones{std::byte{0xff}, std::byte{0xff}, std::byte{0xff}, std::byte{0xff}};

    config.write(wire::pci::kConfigSize - 2, ones);
    config.write(0xfffffffe, ones);

    EXPECT_EQ(load(config, wire::pci::kConfigSize - 2, 8), 0U);
    EXPECT_EQ(load(config, 0xfffffffe, 8), 0U);
}

}  // namespace
}  // namespace ernic::pci
