// SPDX-License-Identifier: MIT
#include "ionic/transceiver.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace ernic::ionic {
namespace {

/// Byte numbers and codes of SFF-8636 rev 2.10a, tables 6-1 to 6-21.
constexpr std::size_t kIdentifier = 0;
constexpr std::size_t kRevision = 1;
constexpr std::size_t kStatus = 2;
constexpr std::size_t kTemperature = 22;
constexpr std::size_t kSupplyVoltage = 26;
constexpr std::size_t kRxPower = 34;
constexpr std::size_t kTxBias = 42;
constexpr std::size_t kTxPower = 50;
constexpr std::size_t kUpperIdentifier = 128;
constexpr std::size_t kConnector = 130;
constexpr std::size_t kEthernetCompliance = 131;
constexpr std::size_t kEncoding = 139;
constexpr std::size_t kNominalRate = 140;
constexpr std::size_t kLengthOm3 = 143;
constexpr std::size_t kLengthOm4 = 146;
constexpr std::size_t kLengthCopper = 146;
constexpr std::size_t kDeviceTechnology = 147;
constexpr std::size_t kVendorName = 148;
constexpr std::size_t kPartNumber = 168;
constexpr std::size_t kVendorRevision = 184;
constexpr std::size_t kWavelength = 186;
constexpr std::size_t kWavelengthTolerance = 188;
constexpr std::size_t kMaxCaseTemperature = 190;
constexpr std::size_t kBaseChecksum = 191;
constexpr std::size_t kExtendedCompliance = 192;
constexpr std::size_t kSerialNumber = 196;
constexpr std::size_t kDateCode = 212;
constexpr std::size_t kDiagnosticType = 220;
constexpr std::size_t kExtendedChecksum = 223;

constexpr std::uint8_t kQsfp28 = 0x11;
constexpr std::uint8_t kRevision286 = 0x07;
/// No upper pages beyond 00h: bit 2 of the status byte ("flat memory").
constexpr std::uint8_t kFlatMemory = 0x04;
constexpr std::uint8_t kConnectorMpo = 0x0c;
constexpr std::uint8_t kConnectorNone = 0x23;
constexpr std::uint8_t kSeeExtendedCompliance = 0x80;
constexpr std::uint8_t kEncoding64b66b = 0x05;
/// 25.5 Gb/s per lane: code 255 says "see byte 222", in units of 250 Mb/s.
constexpr std::uint8_t kRateExtended = 0xff;
constexpr std::size_t kNominalRateExtended = 222;
constexpr std::uint8_t kLaneRate = 103;
constexpr std::uint8_t kVcsel850 = 0x00;
constexpr std::uint8_t kCopperUnequalized = 0xa0;
constexpr std::uint8_t k100gBaseSr4 = 0x02;
constexpr std::uint8_t k100gBaseCr4 = 0x0b;
constexpr std::uint8_t kPhyFibre = 2;
constexpr std::size_t kLanes = 4;

void put16(TransceiverMemory& memory, std::size_t at, std::uint16_t value) {
    memory[at] = static_cast<std::uint8_t>(value >> 8U);
    memory[at + 1] = static_cast<std::uint8_t>(value);
}

/// Texts are padded with spaces.
void put_text(TransceiverMemory& memory, std::size_t at, std::size_t size, std::string_view text) {
    std::fill_n(memory.begin() + static_cast<std::ptrdiff_t>(at), size, std::uint8_t{' '});
    std::copy_n(text.begin(), std::min(size, text.size()), memory.begin() + static_cast<std::ptrdiff_t>(at));
}

void put_checksum(TransceiverMemory& memory, std::size_t first, std::size_t at) {
    const auto begin = memory.begin();
    memory[at] = static_cast<std::uint8_t>(std::accumulate(begin + static_cast<std::ptrdiff_t>(first),
                                                           begin + static_cast<std::ptrdiff_t>(at), 0U));
}

void put_monitors(TransceiverMemory& memory) {
    put16(memory, kTemperature, 35 << 8U);  // 1/256 degree Celsius
    put16(memory, kSupplyVoltage, 33'000);  // 100 µV
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
        put16(memory, kRxPower + 2 * lane, 7'943);   // 0.1 µW: -1 dBm
        put16(memory, kTxBias + 2 * lane, 3'500);    // 2 µA: 7 mA
        put16(memory, kTxPower + 2 * lane, 10'000);  // 0 dBm
    }
    // Average power measurement of received light, transmitted power measured.
    memory[kDiagnosticType] = 0x0c;
}

}  // namespace

TransceiverMemory make_transceiver_memory(const TransceiverProfile& profile, std::string_view serial_number) {
    TransceiverMemory memory{};
    if (profile.phy == 0) {
        return memory;
    }
    const bool fibre = profile.phy == kPhyFibre;
    memory[kIdentifier] = kQsfp28;
    memory[kRevision] = kRevision286;
    memory[kStatus] = kFlatMemory;
    memory[kUpperIdentifier] = kQsfp28;
    memory[kConnector] = fibre ? kConnectorMpo : kConnectorNone;
    memory[kEthernetCompliance] = kSeeExtendedCompliance;
    memory[kEncoding] = kEncoding64b66b;
    memory[kNominalRate] = kRateExtended;
    memory[kNominalRateExtended] = kLaneRate;
    memory[kDeviceTechnology] = fibre ? kVcsel850 : kCopperUnequalized;
    memory[kExtendedCompliance] = fibre ? k100gBaseSr4 : k100gBaseCr4;
    if (fibre) {
        memory[kLengthOm3] = 35;                        // 2 m units
        memory[kLengthOm4] = 50;                        // 2 m units
        put16(memory, kWavelength, 850 * 20);           // 0.05 nm units
        put16(memory, kWavelengthTolerance, 10 * 200);  // 0.005 nm units
        put_monitors(memory);
    } else {
        memory[kLengthCopper] = 1;
    }
    memory[kMaxCaseTemperature] = 70;
    put_text(memory, kVendorName, 16, profile.vendor);
    put_text(memory, kPartNumber, 16, profile.part_number);
    put_text(memory, kVendorRevision, 2, profile.revision);
    put_text(memory, kSerialNumber, 16, serial_number);
    put_text(memory, kDateCode, 8, "250101");
    put_checksum(memory, kUpperIdentifier, kBaseChecksum);
    put_checksum(memory, kExtendedCompliance, kExtendedChecksum);
    return memory;
}

}  // namespace ernic::ionic
