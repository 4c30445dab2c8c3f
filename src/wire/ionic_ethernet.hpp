// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/byte_order.hpp"
#include "wire/ionic_device.hpp"

/// ionic doorbells, Ethernet and notify rings, and the indices of the statistics blocks (Linux 7.2 driver
/// `ionic`).
namespace ernic::wire::ionic {

inline constexpr std::uint32_t kDoorbellPageSize = 4096;
inline constexpr std::uint32_t kDoorbellSize = 8;

/// The value of one doorbell store.
class Doorbell {
  public:
    explicit constexpr Doorbell(std::uint64_t value) : value_(value) {}
    static constexpr Doorbell make(std::uint32_t queue, std::uint32_t ring, std::uint16_t index) {
        return Doorbell(std::uint64_t{queue & 0xffffffU} << 24U | std::uint64_t{ring & 7U} << 16U | index);
    }

    [[nodiscard]] constexpr std::uint16_t index() const { return static_cast<std::uint16_t>(value_); }
    [[nodiscard]] constexpr std::uint32_t ring() const {
        return static_cast<std::uint32_t>(value_ >> 16U) & 7U;
    }
    [[nodiscard]] constexpr std::uint32_t queue() const {
        return static_cast<std::uint32_t>(value_ >> 24U) & 0xffffffU;
    }
    [[nodiscard]] constexpr std::uint64_t value() const { return value_; }

  private:
    std::uint64_t value_;
};

// ---- Notify queue
// ----------------------------------------------------------------------------------------------

/// The event ring of a notify queue lies this far behind its ring_base and has a fixed number of slots.
inline constexpr std::uint32_t kNotifyEventRingOffset = 4096;
inline constexpr std::uint32_t kNotifyEventCount = 64;

enum class NotifyCode : std::uint16_t { LinkChange = 1, Reset = 2 };

struct NotifyEvent {
    le64 event_id;
    le16 code;
    le16 link_status;
    le32 link_speed;
    std::array<std::uint8_t, 48> reserved;
};
ERNIC_WIRE(NotifyEvent, 64);
ERNIC_WIRE_AT(NotifyEvent, link_speed, 0x0c);

// ---- Transmit
// ----------------------------------------------------------------------------------------------------

enum class TxOpcode : std::uint8_t { Plain = 0, ChecksumPartial = 1, ChecksumHardware = 2, Tso = 3 };

inline constexpr std::uint8_t kTxFlagVlan = 0x1;
inline constexpr std::uint8_t kTxFlagEncapsulated = 0x2;
/// Only with ChecksumHardware.
inline constexpr std::uint8_t kTxFlagChecksumL3 = 0x4;
inline constexpr std::uint8_t kTxFlagChecksumL4 = 0x8;
/// Only with Tso; they share their bits with the two above.
inline constexpr std::uint8_t kTxFlagTsoStart = 0x4;
inline constexpr std::uint8_t kTxFlagTsoEnd = 0x8;

inline constexpr std::uint32_t kTxMaxSgElements = 15;
inline constexpr std::uint32_t kTxSgStride = 256;

struct TxDescriptor {
    le64 command;
    le16 length;
    le16 vlan_tci;
    /// Checksum start, or header length for Tso.
    le16 start_or_header;
    /// Checksum offset from its start, or segment size for Tso.
    le16 offset_or_mss;

    [[nodiscard]] std::uint8_t flags() const { return command.get() & 0xfU; }
    [[nodiscard]] TxOpcode opcode() const { return static_cast<TxOpcode>(command.get() >> 4U & 0xfU); }
    [[nodiscard]] std::uint8_t sg_elements() const { return command.get() >> 8U & 0xfU; }
    [[nodiscard]] std::uint64_t address() const { return command.get() >> 12U; }
    static constexpr std::uint64_t make_command(TxOpcode opcode, std::uint8_t flags, std::uint8_t sg_elements,
                                                std::uint64_t address) {
        return address << 12U | std::uint64_t{sg_elements & 0xfU} << 8U |
               std::uint64_t{static_cast<std::uint8_t>(opcode)} << 4U | (flags & 0xfU);
    }
};
ERNIC_WIRE(TxDescriptor, 16);

struct TxSgElement {
    le64 address;
    le16 length;
    std::array<std::uint8_t, 6> reserved;
};
ERNIC_WIRE(TxSgElement, 16);

// ---- Receive
// -----------------------------------------------------------------------------------------------------

inline constexpr std::uint32_t kRxMaxSgElements = 8;
inline constexpr std::uint32_t kRxSgStride = 128;

enum class RxOpcode : std::uint8_t { Simple = 0, ScatterGather = 1 };

struct RxDescriptor {
    std::uint8_t opcode;
    std::array<std::uint8_t, 5> reserved;
    le16 length;
    le64 address;
};
ERNIC_WIRE(RxDescriptor, 16);
ERNIC_WIRE_AT(RxDescriptor, length, 6);

struct RxSgElement {
    le64 address;
    le16 length;
    std::array<std::uint8_t, 6> reserved;
};
ERNIC_WIRE(RxSgElement, 16);

/// Status of a frame that did not fit the posted buffers; the Linux driver drops a frame with any status but
/// 0.
inline constexpr std::uint8_t kRxStatusTooBig = 2;
/// Status of a frame that could not be written to the posted buffers.
inline constexpr std::uint8_t kRxStatusDmaError = 3;

/// Bits of RxCompletion::checksum_flags.
namespace rx_checksum {
inline constexpr std::uint8_t kTcpOk = 0x01;
inline constexpr std::uint8_t kTcpBad = 0x02;
inline constexpr std::uint8_t kUdpOk = 0x04;
inline constexpr std::uint8_t kUdpBad = 0x08;
inline constexpr std::uint8_t kIpOk = 0x10;
inline constexpr std::uint8_t kIpBad = 0x20;
inline constexpr std::uint8_t kVlan = 0x40;
inline constexpr std::uint8_t kCalculated = 0x80;
}  // namespace rx_checksum

enum class PacketType : std::uint8_t {
    NonIp = 0x00,
    Ipv4 = 0x01,
    Ipv4Tcp = 0x03,
    Ipv4Udp = 0x05,
    Ipv6 = 0x08,
    Ipv6Tcp = 0x18,
    Ipv6Udp = 0x28,
};

struct RxCompletion {
    std::uint8_t status;
    std::uint8_t sg_elements;
    le16 comp_index;
    le32 rss_hash;
    le16 checksum;
    le16 vlan_tci;
    le16 length;
    std::uint8_t checksum_flags;
    std::uint8_t packet_type_color;
};
ERNIC_WIRE(RxCompletion, kCompletionSize);
ERNIC_WIRE_AT(RxCompletion, length, 12);

// ---- Statistics
// --------------------------------------------------------------------------------------------------

/// Index into LifInfo::stats. The order of unicast, multicast, broadcast and of bytes before packets is used
/// in code.
enum class LifStat : std::uint8_t {
    RxUnicastBytes = 0,
    RxUnicastPackets,
    RxMulticastBytes,
    RxMulticastPackets,
    RxBroadcastBytes,
    RxBroadcastPackets,
    RxUnicastDropBytes = 8,
    RxUnicastDropPackets,
    RxMulticastDropBytes,
    RxMulticastDropPackets,
    RxBroadcastDropBytes,
    RxBroadcastDropPackets,
    RxDmaError,
    TxUnicastBytes = 16,
    TxUnicastPackets,
    TxMulticastBytes,
    TxMulticastPackets,
    TxBroadcastBytes,
    TxBroadcastPackets,
    TxUnicastDropBytes = 24,
    TxUnicastDropPackets,
    TxMulticastDropBytes,
    TxMulticastDropPackets,
    TxBroadcastDropBytes,
    TxBroadcastDropPackets,
    TxDmaError,
    RxQueueDisabled = 32,
    RxQueueEmpty,
    RxQueueError,
    RxDescriptorFetchError,
    RxDescriptorDataError,
    TxQueueDisabled = 40,
    TxQueueError,
    TxDescriptorFetchError,
    TxDescriptorDataError,
    TxQueueEmpty,
    TxRdmaUnicastBytes = 48,
    TxRdmaUnicastPackets,
    TxRdmaMulticastBytes,
    TxRdmaMulticastPackets,
    TxRdmaCnpPackets,
    RxRdmaUnicastBytes = 56,
    RxRdmaUnicastPackets,
    RxRdmaMulticastBytes,
    RxRdmaMulticastPackets,
    RxRdmaCnpPackets,
    RxRdmaEcnPackets,
    RdmaRequesterFirst = 96,
    RdmaResponderFirst = 112,
};

/// Index into PortInfo::stats.
enum class PortStat : std::uint8_t {
    FramesRxOk = 0,
    FramesRxAll = 1,
    OctetsRxOk = 4,
    OctetsRxAll = 5,
    FramesRxUnicast = 6,
    FramesRxMulticast = 7,
    FramesRxBroadcast = 8,
    FramesRxVlan = 18,
    FramesRxDropped = 19,
    /// First of twelve frame size bins: below 64, 64, 127, 255, 511, 1023, 1518, 2047, 4095, 8191, 9215,
    /// above.
    FramesRxSizeBins = 20,
    FramesTxOk = 32,
    FramesTxAll = 33,
    OctetsTxOk = 35,
    OctetsTxAll = 36,
    FramesTxUnicast = 37,
    FramesTxMulticast = 38,
    FramesTxBroadcast = 39,
    FramesTxVlan = 42,
    FramesTxSizeBins = 43,
};

}  // namespace ernic::wire::ionic
