// SPDX-License-Identifier: MIT
#include "net/pcapng.hpp"

#include <algorithm>
#include <cstring>

#include "base/byte_order.hpp"

namespace ernic::net::pcapng {
namespace {

constexpr std::uint32_t kSectionHeader = 0x0a0d0d0a;
constexpr std::uint32_t kInterfaceDescription = 1;
constexpr std::uint32_t kInterfaceStatistics = 5;
constexpr std::uint32_t kEnhancedPacket = 6;
constexpr std::uint32_t kByteOrderMagic = 0x1a2b3c4d;
constexpr std::uint16_t kLinkTypeEthernet = 1;
/// Section length not given: a reader goes on to the end of the file.
constexpr std::uint64_t kUnknownLength = ~std::uint64_t{0};

// Options (3.5, 4.1, 4.2, 4.6).
constexpr std::uint16_t kOptionEnd = 0;
constexpr std::uint16_t kUserApplication = 4;
constexpr std::uint16_t kInterfaceName = 2;
constexpr std::uint16_t kTimeResolution = 9;
constexpr std::uint16_t kStatisticsStart = 2;
constexpr std::uint16_t kStatisticsEnd = 3;
constexpr std::uint16_t kReceivedPackets = 4;
constexpr std::uint16_t kDroppedPackets = 5;
/// Time stamps count units of 10^-9 s.
constexpr std::uint8_t kNanoseconds = 9;

constexpr std::size_t padding_of(std::size_t size) {
    return (4 - size % 4) % 4;
}

/// A time stamp: the upper 32 bits come first.
struct TimeStamp {
    le32 high;
    le32 low;
};

TimeStamp time_stamp(std::uint64_t time) {
    return {le32(static_cast<std::uint32_t>(time >> 32U)), le32(static_cast<std::uint32_t>(time))};
}

/// Collects a block and gives it its two lengths.
class Block {
  public:
    explicit Block(std::uint32_t type) {
        put(le32(type));
        put(le32(0));
    }

    template <WireValue T>
    Block& put(const T& value) {
        append(bytes_of(value));
        return *this;
    }
    Block& option(std::uint16_t code, Bytes value) {
        put(le16(code));
        put(le16(static_cast<std::uint16_t>(value.size())));
        append(value);
        bytes_.resize(bytes_.size() + padding_of(value.size()));
        return *this;
    }
    std::vector<std::byte> finish() {
        option(kOptionEnd, {});
        const le32 length(static_cast<std::uint32_t>(bytes_.size() + sizeof(le32)));
        put(length);
        std::memcpy(bytes_.data() + sizeof(le32), &length, sizeof(length));
        return std::move(bytes_);
    }

  private:
    void append(Bytes value) { bytes_.insert(bytes_.end(), value.begin(), value.end()); }

    std::vector<std::byte> bytes_;
};

Bytes text(std::string_view value) {
    return std::as_bytes(std::span(value));
}

/// Enhanced Packet Block before the packet (4.3).
struct PacketHeader {
    le32 type;
    le32 block_length;
    le32 interface;
    TimeStamp time;
    le32 captured;
    le32 length;
};
ERNIC_WIRE(PacketHeader, 28);

}  // namespace

std::vector<std::byte> start_of_file(const Start& start) {
    Block section(kSectionHeader);
    section.put(le32(kByteOrderMagic)).put(le16(1)).put(le16(0)).put(le64(kUnknownLength));
    section.option(kUserApplication, text(start.application));
    std::vector<std::byte> bytes = section.finish();

    Block interface(kInterfaceDescription);
    interface.put(le16(kLinkTypeEthernet)).put(le16(0)).put(le32(start.snaplen));
    interface.option(kInterfaceName, text(start.interface_name));
    interface.option(kTimeResolution, bytes_of(kNanoseconds));
    const std::vector<std::byte> description = interface.finish();
    bytes.insert(bytes.end(), description.begin(), description.end());
    return bytes;
}

PacketFrame packet_frame(std::uint64_t time, std::size_t captured, std::size_t length) {
    PacketFrame frame;
    const std::size_t padding = padding_of(captured);
    frame.trailer_size = padding + sizeof(le32);
    const le32 block_length(static_cast<std::uint32_t>(sizeof(PacketHeader) + captured + frame.trailer_size));
    const PacketHeader header{le32(kEnhancedPacket),
                              block_length,
                              le32(0),
                              time_stamp(time),
                              le32(static_cast<std::uint32_t>(captured)),
                              le32(static_cast<std::uint32_t>(length))};
    std::memcpy(frame.header.data(), &header, sizeof(header));
    std::memcpy(frame.trailer.data() + padding, &block_length, sizeof(block_length));
    return frame;
}

std::vector<std::byte> statistics_block(const Statistics& statistics) {
    Block block(kInterfaceStatistics);
    block.put(le32(0)).put(time_stamp(statistics.end));
    block.option(kStatisticsStart, bytes_of(time_stamp(statistics.begin)));
    block.option(kStatisticsEnd, bytes_of(time_stamp(statistics.end)));
    block.option(kReceivedPackets, bytes_of(le64(statistics.received)));
    block.option(kDroppedPackets, bytes_of(le64(statistics.dropped)));
    return block.finish();
}

}  // namespace ernic::net::pcapng
