// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/byte_order.hpp"
#include "base/bytes.hpp"

/// Byte layouts between the RDMA half of the card and the stock `ionic_rdma` driver (Linux 7.2) and the
/// rdma-core 65 `ionic` provider: doorbells, work queue entries, completions, events, admin commands. Layouts
/// only, no behaviour.
namespace ernic::wire::ionic_rdma {

/// The eight opaque bytes a work queue entry carries and its completion returns unchanged.
using WqeId = std::uint64_t;

// ---------------------------------------------------------------------------------------------------------------
// Doorbells (driver: ionic_dbell_ring; provider: ionic_dbell_ring)

/// One 64-bit store to a doorbell page.
///
///   63      48 47          24 23   19 18  16 15            0
///  +----------+--------------+-------+------+---------------+
///  |    0     |   queue id   |   0   | ring |     index     |
///  +----------+--------------+-------+------+---------------+
class Doorbell {
  public:
    explicit constexpr Doorbell(std::uint64_t value) : value_(value) {}
    static constexpr Doorbell make(std::uint32_t queue_id, std::uint8_t ring, std::uint16_t index) {
        return Doorbell(std::uint64_t{queue_id & 0xffffffU} << 24U | std::uint64_t{ring & 7U} << 16U | index);
    }
    [[nodiscard]] constexpr std::uint16_t index() const { return static_cast<std::uint16_t>(value_); }
    [[nodiscard]] constexpr std::uint8_t ring() const {
        return static_cast<std::uint8_t>(value_ >> 16U & 7U);
    }
    [[nodiscard]] constexpr std::uint32_t queue_id() const {
        return static_cast<std::uint32_t>(value_ >> 24U) & 0xffffffU;
    }
    [[nodiscard]] constexpr std::uint64_t value() const { return value_; }

  private:
    std::uint64_t value_;
};

/// Rings of a completion queue's doorbell; every other queue has only ring 0, its producer index.
inline constexpr std::uint8_t kRingConsumer = 0;
inline constexpr std::uint8_t kRingArm = 1;
inline constexpr std::uint8_t kRingArmSolicited = 2;

// ---------------------------------------------------------------------------------------------------------------
// Work queue entries

/// Version 2 opcodes: bit 5 = outbound payload, bit 6 = immediate, bit 7 = invalidate.
enum class SendOp : std::uint8_t {
    Read = 0x02,
    CompareSwap = 0x04,
    FetchAdd = 0x05,
    RegisterMr = 0x06,
    LocalInvalidate = 0x07,
    BindMw = 0x08,
    Send = 0x20,
    Write = 0x21,
    SendImmediate = 0x60,
    WriteImmediate = 0x61,
    SendInvalidate = 0xa0,
};

inline constexpr std::uint16_t kWqeFence = 1U << 0U;
inline constexpr std::uint16_t kWqeSolicited = 1U << 1U;
inline constexpr std::uint16_t kWqeInline = 1U << 2U;
inline constexpr std::uint16_t kWqeSignalled = 1U << 3U;
/// The 32 bytes after the body are copies of the SGE lengths (8 or 16 of them) and the SGEs start behind
/// them.
inline constexpr std::uint16_t kWqeSpec32 = 1U << 12U;
inline constexpr std::uint16_t kWqeSpec16 = 1U << 13U;

/// First 16 bytes of every send and receive entry.
struct WqeHeader {
    WqeId wqe_id;
    std::uint8_t op;
    std::uint8_t sge_count_or_key;
    be16 flags;
    be32 immediate_or_key;
};
ERNIC_WIRE(WqeHeader, 16);

struct Sge {
    be64 va;
    be32 length;
    be32 lkey;
};
ERNIC_WIRE(Sge, 16);

inline constexpr std::size_t kMaxSges = 8;
inline constexpr std::size_t kSglOffset = 32;
inline constexpr std::size_t kSpecSglOffset = 64;

struct SendBody {
    be32 ah_id;
    be32 dest_qpn;
    be32 dest_qkey;
    be32 length;
};
ERNIC_WIRE(SendBody, 16);

struct RdmaBody {
    be32 remote_va_high;
    be32 remote_va_low;
    be32 rkey;
    be32 length;
};
ERNIC_WIRE(RdmaBody, 16);

/// The kernel's (version 1) atomic entry, offsets from byte 16.
struct AtomicBodyV1 {
    be32 remote_va_high;
    be32 remote_va_low;
    be32 rkey;
    be32 swap_add_high;
    be32 swap_add_low;
    be32 compare_high;
    be32 compare_low;
    be32 reserved;
    Sge sge;
};
ERNIC_WIRE(AtomicBodyV1, 48);
ERNIC_WIRE_AT(AtomicBodyV1, sge, 32);

/// The provider's version 2 atomic entry, offsets from byte 16; always 8 bytes of local data.
struct AtomicBodyV2 {
    be32 remote_va_high;
    be32 remote_va_low;
    be32 rkey;
    be32 swap_add_high;
    be32 swap_add_low;
    be32 compare_high;
    be32 compare_low;
    be32 lkey;
    be64 local_va;
};
ERNIC_WIRE(AtomicBodyV2, 40);
ERNIC_WIRE_AT(AtomicBodyV2, local_va, 32);

struct RegisterMrBody {
    be64 va;
    be64 length;
    be64 offset;
    be64 dma_addr;
    be32 map_count;
    be16 flags;
    std::uint8_t dir_size_log2;
    std::uint8_t page_size_log2;
};
ERNIC_WIRE(RegisterMrBody, 40);

struct BindMwBody {
    be64 va;
    be64 length;
    be32 lkey;
    be16 flags;
    be16 reserved;
};
ERNIC_WIRE(BindMwBody, 24);

/// Bodies of receive entries start with 16 reserved bytes; the SGL follows at kSglOffset as in send entries.

// ---------------------------------------------------------------------------------------------------------------
// Completions

enum class CqeType : std::uint8_t { Admin = 0, Receive = 1, SendMsn = 2, SendNpg = 3 };

/// Status of a failed data-path completion.
enum class CqeStatus : std::uint32_t {
    Ok = 0,
    LocalLength = 1,
    LocalQpOperation = 2,
    LocalProtection = 3,
    Flushed = 4,
    MemoryManagement = 5,
    BadResponse = 6,
    LocalAccess = 7,
    RemoteInvalidRequest = 8,
    RemoteAccess = 9,
    RemoteOperation = 10,
    RetryExceeded = 11,
    RnrRetryExceeded = 12,
    LocalSglInvalid = 14,
};

enum class AdminStatus : std::uint32_t {
    Ok = 0,
    BadCommand = 1,
    BadIndex = 2,
    BadState = 3,
    BadType = 4,
    BadAttribute = 5,
    MessageTooBig = 6,
};

inline constexpr std::uint32_t kCqeColor = 1U << 0U;
inline constexpr std::uint32_t kCqeError = 1U << 1U;

/// qid_type_flags without the colour, which the ring adds.
constexpr std::uint32_t cqe_flags(std::uint32_t queue_id, CqeType type, bool error) {
    return queue_id << 8U | std::uint32_t{static_cast<std::uint8_t>(type)} << 5U | (error ? kCqeError : 0U);
}

struct AdminCqe {
    be16 command_index;
    std::uint8_t command_op;
    std::array<std::uint8_t, 17> reserved;
    le16 old_sq_index;
    le16 old_rq_index;
    be32 status_length;
    be32 qid_type_flags;
};
ERNIC_WIRE(AdminCqe, 32);
ERNIC_WIRE_AT(AdminCqe, status_length, 24);

inline constexpr std::uint32_t kReceiveIpv4 = 1U << 31U;
inline constexpr std::uint32_t kReceiveVlan = 1U << 30U;

enum class ReceiveOp : std::uint8_t { Send = 0, SendInvalidate = 1, SendImmediate = 2, WriteImmediate = 3 };

struct ReceiveCqe {
    WqeId wqe_id;
    be32 source_qpn_op;
    std::array<std::uint8_t, 6> source_mac;
    be16 vlan_tag;
    be32 immediate_or_rkey;
    be32 status_length;
    be32 qid_type_flags;
};
ERNIC_WIRE(ReceiveCqe, 32);
ERNIC_WIRE_AT(ReceiveCqe, immediate_or_rkey, 20);

struct SendCqe {
    be32 reserved;
    be32 msn;
    be64 reserved2;
    WqeId wqe_id;
    be32 status_length;
    be32 qid_type_flags;
};
ERNIC_WIRE(SendCqe, 32);
ERNIC_WIRE_AT(SendCqe, wqe_id, 16);

inline constexpr std::size_t kCqeSize = 32;

// ---------------------------------------------------------------------------------------------------------------
// Events

enum class EventType : std::uint8_t { Cq = 0, Qp = 1 };
enum class CqEvent : std::uint8_t { Notify = 0, Error = 8 };
enum class QpEvent : std::uint8_t {
    SqDrained = 1,
    CommunicationEstablished = 2,
    LastWqe = 3,
    Fatal = 8,
    RequestError = 9,
    AccessError = 10,
};

/// An event queue entry without its colour bit (bit 0).
constexpr std::uint32_t event_word(EventType type, std::uint8_t code, std::uint32_t object_id) {
    return object_id << 8U | std::uint32_t{code} << 4U | std::uint32_t{static_cast<std::uint8_t>(type)} << 1U;
}

// ---------------------------------------------------------------------------------------------------------------
// Admin queue commands (64-byte slots; 4-byte header, then the body)

enum class AdminOp : std::uint8_t {
    Noop = 0,
    CreateCq = 1,
    CreateQp = 2,
    CreateMr = 3,
    StatsHeaders = 4,
    StatsValues = 5,
    DestroyMr = 6,
    DestroyCq = 8,
    ModifyQp = 9,
    QueryQp = 10,
    DestroyQp = 11,
    CreateAh = 13,
    DestroyAh = 16,
    QpStatsHeaders = 17,
    QpStatsValues = 18,
};

inline constexpr std::size_t kAdminSlotSize = 64;
inline constexpr std::size_t kMaxAdminBody = 124;

struct AdminHeader {
    std::uint8_t op;
    std::uint8_t reserved;
    le16 length;
};
ERNIC_WIRE(AdminHeader, 4);

/// How a ring or region lies in memory: `map_count` 1 = one contiguous block at `dma_addr`, more = a table of
/// page addresses, 0 = nothing.
struct RingGeometry {
    std::uint8_t depth_log2;
    std::uint8_t stride_log2;
    std::uint8_t dir_size_log2;
    std::uint8_t page_size_log2;
};
ERNIC_WIRE(RingGeometry, 4);

struct CreateCq {
    le32 eq_id;
    RingGeometry ring;
    le32 cq_flags;
    le32 id_ver;
    le32 tbl_index;
    le32 map_count;
    le64 dma_addr;
    le16 dbid;
};
ERNIC_WIRE(CreateCq, 34);

struct CreateQp {
    le32 pd_id;
    be32 flags;
    le32 sq_cq_id;
    RingGeometry sq_ring;
    le32 sq_tbl_index;
    le32 sq_map_count;
    le64 sq_dma_addr;
    le32 rq_cq_id;
    RingGeometry rq_ring;
    le32 rq_tbl_index;
    le32 rq_map_count;
    le64 rq_dma_addr;
    le32 id_ver;
    le16 dbid;
    std::uint8_t type_state;
    std::uint8_t reserved;
};
ERNIC_WIRE(CreateQp, 64);
ERNIC_WIRE_AT(CreateQp, id_ver, 56);

struct CreateMr {
    le64 va;
    le64 length;
    le32 pd_id;
    le32 key;
    le32 tbl_index;
    le32 map_count;
    le64 dma_addr;
    le16 flags;
    std::uint8_t pt_type;
    std::uint8_t dir_size_log2;
    std::uint8_t page_size_log2;
};
ERNIC_WIRE(CreateMr, 45);

/// Body of every DESTROY command: one id or key.
struct Destroy {
    le32 id;
};
ERNIC_WIRE(Destroy, 4);

struct CreateAh {
    le64 dma_addr;
    le32 length;
    le32 pd_id;
    le32 id_ver;
    le16 dbid;
    std::uint8_t csum_profile;
    std::uint8_t crypto;
};
ERNIC_WIRE(CreateAh, 24);

struct Stats {
    le64 dma_addr;
    le32 length;
    le32 id_ver;
    std::uint8_t type_state;
};
ERNIC_WIRE(Stats, 17);

struct StatHeader {
    be32 type_offset;
    std::array<char, 28> name;
};
ERNIC_WIRE(StatHeader, 32);

inline constexpr std::size_t kStatsBufferSize = 4096;
inline constexpr std::uint32_t kStatTypeBe64 = 7;

struct QueryQp {
    le64 header_dma;
    le64 sq_dma;
    le64 rq_dma;
    le32 ah_id;
    le32 id_ver;
    le16 dbid;
};
ERNIC_WIRE(QueryQp, 34);

struct QuerySqRecord {
    std::uint8_t rnr_timer;
    std::uint8_t retry_timeout;
    be16 access_flags;
    be16 reserved;
    be16 pkey_id;
    be32 qkey_or_dest_qpn;
    be32 rate_limit_kbps;
    be32 rq_psn;
};
ERNIC_WIRE(QuerySqRecord, 20);

struct QueryRqRecord {
    std::uint8_t state_pmtu;
    std::uint8_t retry_rnr;
    std::uint8_t rrq_depth;
    std::uint8_t rsq_depth;
    be32 sq_psn;
    be16 access_flags;
    be16 reserved;
};
ERNIC_WIRE(QueryRqRecord, 12);

struct ModifyQp {
    be32 attr_mask;
    std::uint8_t dcqcn_profile;
    std::uint8_t csum_profile;
    be16 access_flags;
    le32 rq_psn;
    le32 sq_psn;
    le32 qkey_or_dest_qpn;
    le32 rate_limit_kbps;
    std::uint8_t pmtu_log2;
    std::uint8_t retry;
    std::uint8_t rnr_timer;
    std::uint8_t retry_timeout;
    std::uint8_t rsq_depth;
    std::uint8_t rrq_depth;
    le16 pkey_id;
    le32 ah_id_length;
    std::uint8_t service_level;
    std::uint8_t dscp;
    std::uint8_t reserved;
    std::uint8_t type_state;
    le32 rrq_index;
    le32 rsq_index;
    le64 dma_addr;
    le32 id_ver;
};
ERNIC_WIRE(ModifyQp, 60);
ERNIC_WIRE_AT(ModifyQp, type_state, 39);
ERNIC_WIRE_AT(ModifyQp, dma_addr, 48);

/// Bits of ModifyQp::attr_mask that the device acts on (Linux `enum ib_qp_attr_mask`).
inline constexpr std::uint32_t kAttrState = 1U << 0U;
inline constexpr std::uint32_t kAttrSqdNotify = 1U << 2U;
inline constexpr std::uint32_t kAttrAccess = 1U << 3U;
inline constexpr std::uint32_t kAttrQkey = 1U << 6U;
inline constexpr std::uint32_t kAttrAddressVector = 1U << 7U;
inline constexpr std::uint32_t kAttrPathMtu = 1U << 8U;
inline constexpr std::uint32_t kAttrTimeout = 1U << 9U;
inline constexpr std::uint32_t kAttrRetryCount = 1U << 10U;
inline constexpr std::uint32_t kAttrRnrRetry = 1U << 11U;
inline constexpr std::uint32_t kAttrRqPsn = 1U << 12U;
inline constexpr std::uint32_t kAttrMaxRdAtomic = 1U << 13U;
inline constexpr std::uint32_t kAttrMinRnrTimer = 1U << 15U;
inline constexpr std::uint32_t kAttrSqPsn = 1U << 16U;
inline constexpr std::uint32_t kAttrMaxDestRdAtomic = 1U << 17U;
inline constexpr std::uint32_t kAttrDestQpn = 1U << 20U;
inline constexpr std::uint32_t kAttrRateLimit = 1U << 25U;

/// QP flag word (be32 at creation, its low half be16 at modification).
inline constexpr std::uint32_t kQpRemoteWrite = 1U << 0U;
inline constexpr std::uint32_t kQpRemoteRead = 1U << 1U;
inline constexpr std::uint32_t kQpRemoteAtomic = 1U << 2U;
inline constexpr std::uint32_t kQpRemotePrivileged = 1U << 10U;
inline constexpr std::uint32_t kQpSqDraining = 1U << 11U;
inline constexpr std::uint32_t kQpSqdNotify = 1U << 12U;
inline constexpr std::uint32_t kQpSqCmb = 1U << 13U;
inline constexpr std::uint32_t kQpRqCmb = 1U << 14U;
inline constexpr std::uint32_t kQpPrivileged = 1U << 15U;

/// MR and MW flags (le16 in CREATE_MR, be16 in REG_MR and BIND_MW).
inline constexpr std::uint16_t kMrLocalWrite = 1U << 0U;
inline constexpr std::uint16_t kMrRemoteWrite = 1U << 1U;
inline constexpr std::uint16_t kMrRemoteRead = 1U << 2U;
inline constexpr std::uint16_t kMrRemoteAtomic = 1U << 3U;
inline constexpr std::uint16_t kMrWindowBind = 1U << 4U;
inline constexpr std::uint16_t kMrZeroBased = 1U << 5U;
inline constexpr std::uint16_t kMrUserKey = 1U << 13U;
inline constexpr std::uint16_t kMrIsWindow = 1U << 14U;
inline constexpr std::uint16_t kMrInvalidate = 1U << 15U;

}  // namespace ernic::wire::ionic_rdma
