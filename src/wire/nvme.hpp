// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/byte_order.hpp"

/// Queue entries, SGL descriptors and Fabrics commands of NVM Express (Base Specification 2.0; NVMe over
/// Fabrics is its chapters 2.4 and 6; NVM Command Set 1.0). All of it is little-endian.
namespace ernic::wire::nvme {

/// An SGL descriptor (Base 4.1.2), of which the last byte says the kind. As a keyed data block its bytes 8 to
/// 10 are a length and 11 to 14 a key, otherwise 8 to 11 a length.
struct SglDescriptor {
    le64 address;
    le32 length_and_key;
    std::array<std::uint8_t, 3> key_high;
    /// Type (high four bits) and subtype.
    std::uint8_t identifier;

    static constexpr std::uint8_t kInCapsule = 0x01;
    static constexpr std::uint8_t kKeyed = 0x40;
    static constexpr std::uint8_t kKeyedInvalidate = 0x4f;
    static constexpr unsigned kTypeShift = 4;
    static constexpr std::uint8_t kTypeDataBlock = 0x0;
    static constexpr std::uint8_t kTypeKeyed = 0x4;
    static constexpr std::uint32_t kMaxKeyedLength = 0xffffffU;

    [[nodiscard]] constexpr std::uint32_t length() const { return length_and_key.get(); }
    [[nodiscard]] constexpr std::uint32_t keyed_length() const {
        return length_and_key.get() & kMaxKeyedLength;
    }
    [[nodiscard]] constexpr std::uint32_t key() const {
        return length_and_key.get() >> 24U | std::uint32_t{key_high[0]} << 8U |
               std::uint32_t{key_high[1]} << 16U | std::uint32_t{key_high[2]} << 24U;
    }

    static constexpr SglDescriptor keyed(std::uint64_t address, std::uint32_t length, std::uint32_t key,
                                         bool invalidate) {
        return {le64(address),
                le32((length & kMaxKeyedLength) | key << 24U),
                {static_cast<std::uint8_t>(key >> 8U), static_cast<std::uint8_t>(key >> 16U),
                 static_cast<std::uint8_t>(key >> 24U)},
                invalidate ? kKeyedInvalidate : kKeyed};
    }
    static constexpr SglDescriptor in_capsule(std::uint64_t offset, std::uint32_t length) {
        return {le64(offset), le32(length), {}, kInCapsule};
    }
};
ERNIC_WIRE(SglDescriptor, 16);

/// Submission queue entry (Base 3.3.3.1). For Fabrics commands the first byte of `nsid` is their type.
struct SubmissionEntry {
    std::uint8_t opcode;
    /// FUSE (1:0), PSDT (7:6).
    std::uint8_t flags;
    le16 command_id;
    le32 nsid;
    /// Command dwords 2 and 3.
    std::array<le32, 2> early_dwords;
    le64 metadata;
    SglDescriptor data;
    /// Command dwords 10 to 15.
    std::array<le32, 6> dwords;

    static constexpr std::uint8_t kFuseMask = 0x03;
    static constexpr std::uint8_t kFuseFirst = 0x01;
    static constexpr std::uint8_t kFuseSecond = 0x02;
    static constexpr std::uint8_t kPsdtMask = 0xc0;
    static constexpr std::uint8_t kPsdtSgl = 0x40;

    /// Command dword `number`, 10 to 15.
    [[nodiscard]] constexpr std::uint32_t dword(unsigned number) const { return dwords[number - 10].get(); }
    /// Dwords `number` (low) and the one behind it.
    [[nodiscard]] constexpr std::uint64_t quad(unsigned number) const {
        return dword(number) | std::uint64_t{dword(number + 1)} << 32U;
    }
    [[nodiscard]] constexpr std::uint8_t fabrics_type() const {
        return static_cast<std::uint8_t>(nsid.get());
    }
};
ERNIC_WIRE(SubmissionEntry, 64);
ERNIC_WIRE_AT(SubmissionEntry, data, 24);
ERNIC_WIRE_AT(SubmissionEntry, dwords, 40);

/// Completion queue entry (Base 3.3.3.2).
struct CompletionEntry {
    le64 result;
    le16 sq_head;
    le16 sq_id;
    le16 command_id;
    /// Status code and type from bit 1 on; bit 0, the phase, means nothing on Fabrics.
    le16 status;
};
ERNIC_WIRE(CompletionEntry, 16);

/// What SQ head says when the host has switched SQ flow control off (Base 3.3.1.2).
inline constexpr std::uint16_t kNoSqHead = 0xffff;

/// Status code type and status code: (SCT << 8) | SC (Base 3.3.3.2.1).
enum class Status : std::uint16_t {
    Success = 0x000,
    InvalidOpcode = 0x001,
    InvalidField = 0x002,
    CommandIdConflict = 0x003,
    DataTransferError = 0x004,
    InternalError = 0x006,
    AbortRequested = 0x007,
    FusedFailed = 0x009,
    FusedMissing = 0x00a,
    InvalidNamespace = 0x00b,
    SequenceError = 0x00c,
    InvalidSglDescriptorCount = 0x00e,
    SglLengthInvalid = 0x00f,
    SglTypeInvalid = 0x011,
    SglOffsetInvalid = 0x016,
    HostIdInconsistent = 0x018,
    NamespaceWriteProtected = 0x020,
    TransientTransport = 0x022,
    LbaOutOfRange = 0x080,
    CapacityExceeded = 0x081,
    NamespaceNotReady = 0x082,
    ReservationConflict = 0x083,
    AbortLimit = 0x103,
    AsyncEventLimit = 0x105,
    InvalidLogPage = 0x109,
    FeatureNotSaveable = 0x10d,
    FeatureNotChangeable = 0x10e,
    FeatureNotPerNamespace = 0x10f,
    /// Connect's own (Fabrics commands).
    ConnectFormat = 0x180,
    ConnectBusy = 0x181,
    ConnectParameters = 0x182,
    ConnectHost = 0x184,
    InvalidQueueType = 0x185,
    AuthenticationRequired = 0x191,
    /// The same number, of an NVM command.
    CommandSizeLimit = 0x183,
    WriteFault = 0x280,
    UnrecoveredRead = 0x281,
    CompareFailure = 0x285,
    AnaPersistentLoss = 0x301,
    AnaInaccessible = 0x302,
    AnaTransition = 0x303,
};
/// Bits of a completion's status above type and code.
inline constexpr std::uint16_t kMore = 0x2000;
inline constexpr std::uint16_t kDoNotRetry = 0x4000;

/// Admin command opcodes (Base, figure 89).
enum class AdminOpcode : std::uint8_t {
    GetLogPage = 0x02,
    Identify = 0x06,
    Abort = 0x08,
    SetFeatures = 0x09,
    GetFeatures = 0x0a,
    AsyncEvent = 0x0c,
    KeepAlive = 0x18,
    Fabrics = 0x7f,
};

/// NVM command set opcodes (NVM Command Set, figure 13; reservations: Base 7).
enum class IoOpcode : std::uint8_t {
    Flush = 0x00,
    Write = 0x01,
    Read = 0x02,
    WriteUncorrectable = 0x04,
    Compare = 0x05,
    WriteZeroes = 0x08,
    DatasetManagement = 0x09,
    Verify = 0x0c,
    ReservationRegister = 0x0d,
    ReservationReport = 0x0e,
    ReservationAcquire = 0x11,
    ReservationRelease = 0x15,
    Copy = 0x19,
    Fabrics = 0x7f,
};

/// Fabrics command types (Base 6).
enum class FabricsType : std::uint8_t {
    PropertySet = 0x00,
    Connect = 0x01,
    PropertyGet = 0x04,
    AuthenticationSend = 0x05,
    AuthenticationReceive = 0x06,
    Disconnect = 0x08,
};

/// The NSID that means all namespaces.
inline constexpr std::uint32_t kEveryNamespace = 0xffffffffU;

/// Bytes of an NQN in all structures, and of a host identifier.
inline constexpr std::size_t kNqnBytes = 256;
inline constexpr std::size_t kMaxNqnLength = 223;
using HostId = std::array<std::byte, 16>;

/// Data of the Connect command (Base 6.3).
struct ConnectData {
    HostId host_id;
    le16 controller_id;
    std::array<std::byte, 238> reserved18;
    std::array<char, kNqnBytes> subsystem_nqn;
    std::array<char, kNqnBytes> host_nqn;
    std::array<std::byte, 256> reserved768;

    static constexpr std::uint16_t kAnyController = 0xffff;
};
ERNIC_WIRE(ConnectData, 1024);
ERNIC_WIRE_AT(ConnectData, subsystem_nqn, 256);
ERNIC_WIRE_AT(ConnectData, host_nqn, 512);

/// Attributes of Connect (CATTR, bits of its command dword 11 from bit 16 on).
inline constexpr std::uint8_t kConnectNoFlowControl = 0x04;

/// The well-known name of discovery subsystems (Base 4.5).
inline constexpr const char* kDiscoveryNqn = "nqn.2014-08.org.nvmexpress.discovery";

/// Controller properties (Base 3.1.3): offsets and bits.
namespace property {
inline constexpr std::uint32_t kCapabilities = 0x00;
inline constexpr std::uint32_t kVersion = 0x08;
inline constexpr std::uint32_t kConfiguration = 0x14;
inline constexpr std::uint32_t kControllerStatus = 0x1c;
inline constexpr std::uint32_t kSubsystemReset = 0x20;
inline constexpr std::uint32_t kReadyTimeouts = 0x68;

inline constexpr std::uint32_t kEnable = 0x01;
inline constexpr unsigned kCommandSetShift = 4;
inline constexpr unsigned kPageSizeShift = 7;
inline constexpr unsigned kArbitrationShift = 11;
inline constexpr unsigned kShutdownShift = 14;
inline constexpr unsigned kSubmissionSizeShift = 16;
inline constexpr unsigned kCompletionSizeShift = 20;

inline constexpr std::uint32_t kReady = 0x01;
inline constexpr std::uint32_t kFatal = 0x02;
inline constexpr std::uint32_t kShutdownComplete = 0x08;
inline constexpr std::uint32_t kShutdownMask = 0x0c;
}  // namespace property

/// One range of Dataset Management (NVM Command Set 3.2.3).
struct DatasetRange {
    le32 attributes;
    le32 blocks;
    le64 start;
};
ERNIC_WIRE(DatasetRange, 16);

/// One source range of Copy, descriptor format 0 (NVM Command Set 3.2.2).
struct CopyRange {
    le64 reserved0;
    le64 start;
    /// 0-based.
    le16 blocks;
    std::array<std::byte, 14> reserved18;
};
ERNIC_WIRE(CopyRange, 32);
ERNIC_WIRE_AT(CopyRange, blocks, 16);

/// Asynchronous events (Base 5.2): what stands in the result of the request.
namespace event {
inline constexpr std::uint8_t kNotice = 2;
inline constexpr std::uint8_t kCommandSet = 6;
inline constexpr std::uint8_t kNoticeNamespaces = 0x00;
inline constexpr std::uint8_t kNoticeAna = 0x03;
inline constexpr std::uint8_t kNoticeDiscovery = 0xf0;
inline constexpr std::uint8_t kReservationLog = 0x00;
/// Bits of the feature Asynchronous Event Configuration, and of OAES.
inline constexpr std::uint32_t kEnableNamespaces = 1U << 8U;
inline constexpr std::uint32_t kEnableAna = 1U << 11U;
inline constexpr std::uint32_t kEnableDiscovery = 1U << 31U;
}  // namespace event

/// Feature identifiers (Base 5.27.1).
enum class Feature : std::uint8_t {
    Arbitration = 0x01,
    PowerManagement = 0x02,
    TemperatureThreshold = 0x04,
    ErrorRecovery = 0x05,
    VolatileWriteCache = 0x06,
    NumberOfQueues = 0x07,
    WriteAtomicity = 0x0a,
    AsyncEvents = 0x0b,
    Timestamp = 0x0e,
    KeepAliveTimer = 0x0f,
    HostBehavior = 0x16,
    HostIdentifier = 0x81,
    ReservationMask = 0x82,
    ReservationPersistence = 0x83,
    WriteProtection = 0x84,
};

}  // namespace ernic::wire::nvme
