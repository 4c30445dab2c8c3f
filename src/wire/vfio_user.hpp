// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/byte_order.hpp"

/// The vfio-user protocol 0.0 as QEMU 11.1 speaks it ("vfio-user Protocol Specification" in QEMU's interop
/// documentation). All integers are little-endian. Constants of the VFIO device API (regions, irqs) come from
/// linux/vfio.h.
namespace ernic::wire::vfio_user {

inline constexpr std::uint16_t kMajor = 0;
inline constexpr std::uint16_t kMinor = 0;

enum class Command : std::uint16_t {
    Version = 1,
    DmaMap = 2,
    DmaUnmap = 3,
    DeviceGetInfo = 4,
    DeviceGetRegionInfo = 5,
    DeviceGetRegionIoFds = 6,
    DeviceGetIrqInfo = 7,
    DeviceSetIrqs = 8,
    RegionRead = 9,
    RegionWrite = 10,
    DmaRead = 11,
    DmaWrite = 12,
    DeviceReset = 13,
    RegionWriteMulti = 15,
    DeviceFeature = 16,
    MigDataRead = 17,
    MigDataWrite = 18,
};

/// Precedes every message in both directions.
struct Header {
    le16 id;
    le16 command;
    le32 size;  // of the whole message, this header included
    le32 flags;
    le32 error;  // errno, only in a reply with kFlagError

    static constexpr std::uint32_t kTypeMask = 0xf;
    static constexpr std::uint32_t kTypeCommand = 0;
    static constexpr std::uint32_t kTypeReply = 1;
    static constexpr std::uint32_t kFlagNoReply = 0x10;
    static constexpr std::uint32_t kFlagError = 0x20;

    [[nodiscard]] Command code() const { return static_cast<Command>(command.get()); }
    [[nodiscard]] std::uint32_t type() const { return flags.get() & kTypeMask; }
    [[nodiscard]] bool no_reply() const { return (flags.get() & kFlagNoReply) != 0; }
    [[nodiscard]] bool failed() const { return (flags.get() & kFlagError) != 0; }
};
ERNIC_WIRE(Header, 16);
ERNIC_WIRE_AT(Header, size, 4);
ERNIC_WIRE_AT(Header, error, 12);

/// VERSION, followed by a NUL-terminated JSON text.
struct Version {
    le16 major;
    le16 minor;
};
ERNIC_WIRE(Version, 4);

struct DmaMap {
    le32 argsz;
    le32 flags;
    le64 offset;
    le64 iova;
    le64 size;

    static constexpr std::uint32_t kRead = 1;
    static constexpr std::uint32_t kWrite = 2;
    static constexpr std::uint32_t kMustMmap = 4;
    static constexpr std::uint32_t kMustFileIo = 8;
};
ERNIC_WIRE(DmaMap, 32);
ERNIC_WIRE_AT(DmaMap, iova, 16);

struct DmaUnmap {
    le32 argsz;
    le32 flags;
    le64 iova;
    le64 size;

    static constexpr std::uint32_t kDirtyBitmap = 1;
    static constexpr std::uint32_t kAll = 2;
};
ERNIC_WIRE(DmaUnmap, 24);
ERNIC_WIRE_AT(DmaUnmap, iova, 8);

struct DeviceInfo {
    le32 argsz;
    le32 flags;
    le32 regions;
    le32 irqs;

    static constexpr std::uint32_t kReset = 1;
    static constexpr std::uint32_t kPci = 2;
};
ERNIC_WIRE(DeviceInfo, 16);

/// Region indexes of a PCI device.
inline constexpr std::uint32_t kRegionBar0 = 0;
inline constexpr std::uint32_t kRegionRom = 6;
inline constexpr std::uint32_t kRegionConfig = 7;
inline constexpr std::uint32_t kRegionVga = 8;
inline constexpr std::uint32_t kRegionCount = 9;

struct RegionInfo {
    le32 argsz;
    le32 flags;
    le32 index;
    le32 cap_offset;
    le64 size;
    le64 offset;

    static constexpr std::uint32_t kRead = 1;
    static constexpr std::uint32_t kWrite = 2;
};
ERNIC_WIRE(RegionInfo, 32);
ERNIC_WIRE_AT(RegionInfo, size, 16);

/// GET_REGION_IO_FDS; `count` entries would follow in the reply.
struct RegionIoFds {
    le32 argsz;
    le32 flags;
    le32 index;
    le32 count;
};
ERNIC_WIRE(RegionIoFds, 16);

/// IRQ indexes of a PCI device.
inline constexpr std::uint32_t kIrqIntx = 0;
inline constexpr std::uint32_t kIrqMsi = 1;
inline constexpr std::uint32_t kIrqMsix = 2;
inline constexpr std::uint32_t kIrqErr = 3;
inline constexpr std::uint32_t kIrqReq = 4;
inline constexpr std::uint32_t kIrqCount = 5;

struct IrqInfo {
    le32 argsz;
    le32 flags;
    le32 index;
    le32 count;

    static constexpr std::uint32_t kEventfd = 1;
};
ERNIC_WIRE(IrqInfo, 16);

/// SET_IRQS, followed by `count` bytes when the data type is bool.
struct IrqSet {
    le32 argsz;
    le32 flags;
    le32 index;
    le32 start;
    le32 count;

    static constexpr std::uint32_t kDataNone = 1;
    static constexpr std::uint32_t kDataBool = 2;
    static constexpr std::uint32_t kDataEventfd = 4;
    static constexpr std::uint32_t kDataMask = 7;
    static constexpr std::uint32_t kActionMask = 8;
    static constexpr std::uint32_t kActionUnmask = 0x10;
    static constexpr std::uint32_t kActionTrigger = 0x20;
    static constexpr std::uint32_t kActionsMask = 0x38;
};
ERNIC_WIRE(IrqSet, 20);
ERNIC_WIRE_AT(IrqSet, count, 16);

/// REGION_READ and REGION_WRITE; data follows in the write request and in the read reply.
struct RegionAccess {
    le64 offset;
    le32 region;
    le32 count;
};
ERNIC_WIRE(RegionAccess, 16);
ERNIC_WIRE_AT(RegionAccess, count, 12);

/// REGION_WRITE_MULTI: this count, then as many MultiWrite.
struct WriteMulti {
    le64 count;
};
ERNIC_WIRE(WriteMulti, 8);

struct MultiWrite {
    le64 offset;
    le32 region;
    le32 count;
    std::array<std::byte, 8> data;
};
ERNIC_WIRE(MultiWrite, 24);
ERNIC_WIRE_AT(MultiWrite, data, 16);

/// DMA_READ and DMA_WRITE, sent by the server; data follows in the read reply and in the write request.
struct DmaAccess {
    le64 address;
    le64 count;

    friend constexpr bool operator==(const DmaAccess&, const DmaAccess&) = default;
};
ERNIC_WIRE(DmaAccess, 16);

}  // namespace ernic::wire::vfio_user
