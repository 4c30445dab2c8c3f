// SPDX-License-Identifier: MIT
#include "net/checksum.hpp"

#include <algorithm>

#include "base/byte_order.hpp"

namespace ernic::net {

std::uint16_t ones_complement_sum(Bytes data, std::uint16_t initial) {
    // Four 16-bit columns are summed at once; the end-around carries are folded at the end (RFC 1071, section
    // 2).
    std::uint64_t sum = initial;
    while (data.size() >= sizeof(std::uint64_t)) {
        const std::uint64_t word = read_value<le64>(data)->get();
        sum += word;
        sum += sum < word ? 1 : 0;
        data = data.subspan(sizeof word);
    }
    le64 last(0);
    std::copy(data.begin(), data.end(), mutable_bytes_of(last).begin());
    sum += last.get();
    sum += sum < last.get() ? 1 : 0;
    while (sum >> 16U != 0) {
        sum = (sum & 0xffffU) + (sum >> 16U);
    }
    return static_cast<std::uint16_t>(sum);
}

void ChecksumAccumulator::add(Bytes data) {
    std::uint16_t part = ones_complement_sum(data);
    if (odd_) {
        part = byte_swap(part);
    }
    sum_ = ones_complement_add(sum_, part);
    odd_ = odd_ != (data.size() % 2 != 0);
}

std::uint16_t pseudo_header_sum(Bytes addresses, std::uint8_t protocol, std::uint32_t length) {
    struct Rest {
        be32 length;
        be32 protocol;
    };
    const Rest rest{be32(length), be32(protocol)};
    return ones_complement_sum(bytes_of(rest), ones_complement_sum(addresses));
}

}  // namespace ernic::net
