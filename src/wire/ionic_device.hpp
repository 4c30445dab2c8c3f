// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/byte_order.hpp"
#include "wire/ethernet.hpp"

/// AMD Pensando ionic NIC: register blocks, device and admin commands, identities, shared DMA areas, as the
/// Linux 7.2 drivers `ionic` and `ionic_rdma` use them. All numbers are little-endian. The Ethernet rings are
/// in wire/ionic_ethernet.hpp, RDMA work requests and completions in wire/ionic_rdma.hpp.
namespace ernic::wire::ionic {

enum class Opcode : std::uint8_t {
    Nop = 0,
    Identify = 1,
    Init = 2,
    Reset = 3,
    GetAttribute = 4,
    SetAttribute = 5,
    PortIdentify = 10,
    PortInit = 11,
    PortReset = 12,
    PortGetAttribute = 13,
    PortSetAttribute = 14,
    LifIdentify = 20,
    LifInit = 21,
    LifReset = 22,
    LifGetAttribute = 23,
    LifSetAttribute = 24,
    LifSetPhc = 25,
    RxModeSet = 30,
    RxFilterAdd = 31,
    RxFilterDelete = 32,
    QueueIdentify = 39,
    QueueInit = 40,
    QueueControl = 41,
    RdmaResetLif = 50,
    RdmaCreateEventQueue = 51,
    RdmaCreateCompletionQueue = 52,
    RdmaCreateAdminQueue = 53,
    VfGetAttribute = 60,
    VfSetAttribute = 61,
    VfControl = 62,
    DiscoverCmb = 80,
    FirmwareDownload = 252,
    FirmwareControl = 253,
    FirmwareDownloadV1 = 254,
    FirmwareControlV1 = 255,
};

/// Result byte of device and admin commands. The drivers turn it into an errno.
enum class Status : std::uint8_t {
    Success = 0,
    BadVersion = 1,
    BadOpcode = 2,
    IoError = 3,
    NotPermitted = 4,
    BadQueueId = 5,
    BadQueueType = 6,
    NotFound = 7,
    Interrupted = 8,
    Again = 9,
    NoMemory = 10,
    Fault = 11,
    Busy = 12,
    Exists = 13,
    Invalid = 14,
    NoSpace = 15,
    OutOfRange = 16,
    BadAddress = 17,
    /// A command that only the device command registers take came by the admin queue.
    DeviceCommandOnly = 18,
    NotSupported = 19,
    Error = 29,
    RdmaError = 30,
    BadVf = 31,
    BadFirmware = 32,
};

// ---- BAR 0
// ---------------------------------------------------------------------------------------------------

inline constexpr std::uint32_t kDeviceInfoOffset = 0x0000;
inline constexpr std::uint32_t kDeviceCommandOffset = 0x0800;
inline constexpr std::uint32_t kInterruptStatusOffset = 0x1000;
inline constexpr std::uint32_t kInterruptControlOffset = 0x2000;
/// What the drivers demand of BAR 0 at least; everything the card adds of its own lies above.
inline constexpr std::uint32_t kRegisterWindowSize = 0x8000;

inline constexpr std::uint32_t kSignature = 0x44455649;
inline constexpr std::uint8_t kFirmwareRunning = 0x01;
/// Bits 7:4 of fw_status count firmware restarts.
inline constexpr unsigned kFirmwareGenerationShift = 4;

struct DeviceInfoRegisters {
    le32 signature;
    std::uint8_t version;
    std::uint8_t asic_type;
    std::uint8_t asic_rev;
    std::uint8_t fw_status;
    le32 fw_heartbeat;
    std::array<char, 32> fw_version;
    std::array<char, 32> serial_number;
    std::array<std::uint8_t, 948> reserved;
    le32 tick_low;
    le32 tick_high;
    std::array<std::uint8_t, 1016> reserved2;
};
ERNIC_WIRE(DeviceInfoRegisters, 0x800);
ERNIC_WIRE_AT(DeviceInfoRegisters, fw_version, 0x0c);
ERNIC_WIRE_AT(DeviceInfoRegisters, tick_low, 0x400);

inline constexpr std::size_t kCommandSize = 64;
inline constexpr std::size_t kCompletionSize = 16;
inline constexpr std::size_t kCommandDataSize = 1912;

struct DeviceCommandRegisters {
    le32 doorbell;
    le32 done;
    std::array<std::byte, kCommandSize> command;
    std::array<std::byte, kCompletionSize> completion;
    std::array<std::byte, 48> reserved;
    std::array<std::byte, kCommandDataSize> data;
};
ERNIC_WIRE(DeviceCommandRegisters, 0x800);
ERNIC_WIRE_AT(DeviceCommandRegisters, completion, 0x48);
ERNIC_WIRE_AT(DeviceCommandRegisters, data, 0x88);

/// One set per MSI-X vector, at kInterruptControlOffset.
struct InterruptRegisters {
    le32 coalesce_init;
    le32 mask;
    le32 credits;
    le32 mask_on_assert;
    le32 coalesce;
    std::array<le32, 3> reserved;
};
ERNIC_WIRE(InterruptRegisters, 32);
inline constexpr std::uint32_t kCreditsCountMask = 0xffff;
inline constexpr std::uint32_t kCreditsUnmask = 0x10000;
inline constexpr std::uint32_t kCreditsResetCoalesce = 0x20000;

// ---- Commands (64 bytes) and completions (16 bytes)
// --------------------------------------------------------------

/// What every command starts with; `lif_index` is where most (not all) commands keep the LIF.
struct Command {
    std::uint8_t opcode;
    std::uint8_t reserved;
    le16 lif_index;
    std::array<std::byte, 60> body;
};
ERNIC_WIRE(Command, kCommandSize);

/// Bit 7 of the last byte of every completion.
inline constexpr std::uint8_t kColor = 0x80;

struct Completion {
    std::uint8_t status;
    std::uint8_t reserved;
    le16 comp_index;
    std::array<std::byte, 11> body;
    std::uint8_t color;
};
ERNIC_WIRE(Completion, kCompletionSize);
ERNIC_WIRE_AT(Completion, body, 4);

struct PortInitCommand {
    std::uint8_t opcode;
    std::uint8_t index;
    std::array<std::uint8_t, 6> reserved;
    le64 info_address;
    std::array<std::uint8_t, 48> reserved2;
};
ERNIC_WIRE(PortInitCommand, kCommandSize);

enum class PortAttribute : std::uint8_t {
    State = 0,
    Speed = 1,
    Mtu = 2,
    Autoneg = 3,
    Fec = 4,
    Pause = 5,
    Loopback = 6,
    StatsControl = 7,
};

struct PortSetAttributeCommand {
    std::uint8_t opcode;
    std::uint8_t index;
    std::uint8_t attribute;
    std::uint8_t reserved;
    /// u8 attributes use the low byte only.
    le32 value;
    std::array<std::uint8_t, 56> reserved2;
};
ERNIC_WIRE(PortSetAttributeCommand, kCommandSize);
ERNIC_WIRE_AT(PortSetAttributeCommand, value, 4);

struct LifIdentifyCommand {
    std::uint8_t opcode;
    std::uint8_t type;
    std::uint8_t version;
    std::array<std::uint8_t, 61> reserved;
};
ERNIC_WIRE(LifIdentifyCommand, kCommandSize);

struct LifInitCommand {
    std::uint8_t opcode;
    std::uint8_t type;
    le16 index;
    std::array<std::uint8_t, 4> reserved;
    le64 info_address;
    std::array<std::uint8_t, 48> reserved2;
};
ERNIC_WIRE(LifInitCommand, kCommandSize);

/// Its hw_index lies where other completions keep comp_index.
struct LifInitCompletion {
    std::uint8_t status;
    std::uint8_t reserved;
    le16 hw_index;
    std::array<std::uint8_t, 12> reserved2;
};
ERNIC_WIRE(LifInitCompletion, kCompletionSize);

enum class LifAttribute : std::uint8_t {
    State = 0,
    Name = 1,
    Mtu = 2,
    Mac = 3,
    Features = 4,
    Rss = 5,
    StatsControl = 6,
    TxTimestamp = 7,
};

enum class LifState : std::uint8_t { Quiesce = 0, Enable = 1, Disable = 2 };

inline constexpr std::size_t kLifNameSize = 16;
inline constexpr std::size_t kRssKeySize = 40;

/// LIF_SETATTR and LIF_GETATTR. The value is a union: state u8, name[16], mtu le32, mac[6], features le64,
/// RssAttribute, timestamp mode le16.
struct LifAttributeCommand {
    std::uint8_t opcode;
    std::uint8_t attribute;
    le16 index;
    std::array<std::byte, 60> value;
};
ERNIC_WIRE(LifAttributeCommand, kCommandSize);
ERNIC_WIRE_AT(LifAttributeCommand, value, 4);

struct RssAttribute {
    le16 types;
    std::array<std::uint8_t, kRssKeySize> key;
    std::array<std::uint8_t, 6> reserved;
    le64 table_address;
};
ERNIC_WIRE(RssAttribute, 56);
ERNIC_WIRE_AT(RssAttribute, table_address, 0x30);

struct RxModeSetCommand {
    std::uint8_t opcode;
    std::uint8_t reserved;
    le16 lif_index;
    le16 rx_mode;
    std::array<std::uint8_t, 58> reserved2;
};
ERNIC_WIRE(RxModeSetCommand, kCommandSize);

/// Bits of RxModeSetCommand::rx_mode.
namespace rx_mode {
inline constexpr std::uint16_t kUnicast = 1U << 0U;
inline constexpr std::uint16_t kMulticast = 1U << 1U;
inline constexpr std::uint16_t kBroadcast = 1U << 2U;
inline constexpr std::uint16_t kPromiscuous = 1U << 3U;
inline constexpr std::uint16_t kAllMulticast = 1U << 4U;
inline constexpr std::uint16_t kRdmaSniffer = 1U << 5U;
}  // namespace rx_mode

enum class RxFilterMatch : std::uint16_t { Vlan = 0, Mac = 1, MacVlan = 2, PacketClass = 0x10 };

struct RxFilterAddCommand {
    std::uint8_t opcode;
    std::uint8_t queue_type;
    le16 lif_index;
    le32 queue_id;
    le16 match;
    /// Vlan: le16 id. Mac: address[6]. MacVlan: le16 id, address[6]. PacketClass: le64.
    std::array<std::byte, 54> body;
};
ERNIC_WIRE(RxFilterAddCommand, kCommandSize);
ERNIC_WIRE_AT(RxFilterAddCommand, body, 0x0a);

struct MacVlanMatch {
    le16 vlan;
    MacAddress address;
};
ERNIC_WIRE(MacVlanMatch, 8);

struct RxFilterAddCompletion {
    std::uint8_t status;
    std::uint8_t reserved;
    le16 comp_index;
    le32 filter_id;
    std::array<std::uint8_t, 7> reserved2;
    std::uint8_t color;
};
ERNIC_WIRE(RxFilterAddCompletion, kCompletionSize);

struct RxFilterDeleteCommand {
    std::uint8_t opcode;
    std::uint8_t reserved;
    le16 lif_index;
    le32 filter_id;
    std::array<std::uint8_t, 56> reserved2;
};
ERNIC_WIRE(RxFilterDeleteCommand, kCommandSize);

/// Logical queue types of the command interface (not the doorbell slots, which the device chooses).
enum class LogicalQueue : std::uint8_t { Admin = 0, Notify = 1, Rx = 2, Tx = 3, Event = 4 };

struct QueueIdentifyCommand {
    std::uint8_t opcode;
    std::uint8_t reserved;
    le16 lif_type;
    std::uint8_t type;
    std::uint8_t version;
    std::array<std::uint8_t, 58> reserved2;
};
ERNIC_WIRE(QueueIdentifyCommand, kCommandSize);

struct QueueIdentifyCompletion {
    std::uint8_t status;
    std::uint8_t reserved;
    le16 comp_index;
    std::uint8_t version;
    std::array<std::uint8_t, 11> reserved2;
};
ERNIC_WIRE(QueueIdentifyCompletion, kCompletionSize);

/// Bits of QueueInitCommand::flags.
namespace queue_flag {
inline constexpr std::uint16_t kInterrupt = 0x01;
inline constexpr std::uint16_t kEnable = 0x02;
inline constexpr std::uint16_t kScatterGather = 0x04;
inline constexpr std::uint16_t kEventQueue = 0x08;
inline constexpr std::uint16_t kControllerMemory = 0x10;
inline constexpr std::uint16_t kDebug = 0x80;
}  // namespace queue_flag

/// Bits of QueueInitCommand::features and QueueIdentity::features.
namespace queue_feature {
inline constexpr std::uint64_t kCompletionQueue = 1U << 0U;
inline constexpr std::uint64_t kScatterGather = 1U << 1U;
inline constexpr std::uint64_t kDoubleCompletion = 1U << 5U;
inline constexpr std::uint64_t kHardwareTimestamp = 1U << 16U;
}  // namespace queue_feature

struct QueueInitCommand {
    std::uint8_t opcode;
    std::uint8_t reserved;
    le16 lif_index;
    std::uint8_t type;
    std::uint8_t version;
    std::array<std::uint8_t, 2> reserved2;
    le32 index;
    le16 pid;
    le16 interrupt;
    le16 flags;
    std::uint8_t cos;
    std::uint8_t ring_size_log2;
    le64 ring_base;
    le64 completion_ring_base;
    le64 sg_ring_base;
    std::array<std::uint8_t, 12> reserved3;
    le64 features;
};
ERNIC_WIRE(QueueInitCommand, kCommandSize);
ERNIC_WIRE_AT(QueueInitCommand, ring_base, 0x14);
ERNIC_WIRE_AT(QueueInitCommand, sg_ring_base, 0x24);
ERNIC_WIRE_AT(QueueInitCommand, features, 0x38);

struct QueueInitCompletion {
    std::uint8_t status;
    std::uint8_t reserved;
    le16 comp_index;
    le32 hw_index;
    std::uint8_t hw_type;
    std::array<std::uint8_t, 6> reserved2;
    std::uint8_t color;
};
ERNIC_WIRE(QueueInitCompletion, kCompletionSize);
ERNIC_WIRE_AT(QueueInitCompletion, hw_type, 8);

enum class QueueOperation : std::uint8_t { Disable = 0, Enable = 1, HangReset = 2 };

/// Unlike QueueInitCommand it keeps the queue type in byte 1.
struct QueueControlCommand {
    std::uint8_t opcode;
    std::uint8_t type;
    le16 lif_index;
    le32 index;
    std::uint8_t operation;
    std::array<std::uint8_t, 55> reserved;
};
ERNIC_WIRE(QueueControlCommand, kCommandSize);
ERNIC_WIRE_AT(QueueControlCommand, operation, 8);

/// Shared by the commands RdmaCreateEventQueue, RdmaCreateCompletionQueue and RdmaCreateAdminQueue.
struct RdmaQueueCommand {
    std::uint8_t opcode;
    std::uint8_t reserved;
    le16 lif_index;
    /// Queue id in bits 23:0, interface version in bits 31:24.
    le32 qid_ver;
    /// Interrupt index, event queue id or completion queue id, by opcode.
    le32 cid;
    le16 dbid;
    std::uint8_t depth_log2;
    std::uint8_t stride_log2;
    le64 dma_addr;
    std::array<std::uint8_t, 40> reserved2;
};
ERNIC_WIRE(RdmaQueueCommand, kCommandSize);
ERNIC_WIRE_AT(RdmaQueueCommand, cid, 8);
ERNIC_WIRE_AT(RdmaQueueCommand, depth_log2, 0x0e);
ERNIC_WIRE_AT(RdmaQueueCommand, dma_addr, 0x10);

}  // namespace ernic::wire::ionic
