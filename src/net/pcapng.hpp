// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"

/// Blocks of a pcapng file (draft-ietf-opsawg-pcapng, sections 3 and 4), little-endian. Each function gives
/// bytes, whoever calls it writes them. Times are nanoseconds since 1970. Thread: any. Fails: never.
namespace ernic::net::pcapng {

/// Section header and the description of the one interface, an Ethernet link: the start of a file.
/// `snaplen` is the most bytes kept of a packet.
struct Start {
    std::string_view application;
    std::string_view interface_name;
    std::uint32_t snaplen = 0;
};
[[nodiscard]] std::vector<std::byte> start_of_file(const Start& start);

/// What goes in front of and behind the bytes of a packet in its Enhanced Packet Block.
///
///     | header | captured bytes | trailer.first(trailer_size): padding to 4, block length |
struct PacketFrame {
    std::array<std::byte, 28> header{};
    std::array<std::byte, 8> trailer{};
    std::size_t trailer_size = 0;
};
/// `captured` bytes are kept of a packet of `length`, seen at `time`.
[[nodiscard]] PacketFrame packet_frame(std::uint64_t time, std::size_t captured, std::size_t length);

/// Interface Statistics Block: the end of a capture.
struct Statistics {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t received = 0;
    std::uint64_t dropped = 0;
};
[[nodiscard]] std::vector<std::byte> statistics_block(const Statistics& statistics);

}  // namespace ernic::net::pcapng
