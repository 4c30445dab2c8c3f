// SPDX-License-Identifier: MIT
#include "net/digest.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace ernic::net {
namespace {

TEST(PayloadDigest, IsTheMd5OfTheBytesWhateverTheirPieces) {
    std::array<std::byte, 64> memory{};
    std::memcpy(memory.data(), "ab", 2);
    std::memcpy(memory.data() + 32, "cX", 2);
    mem::SpanList payload;
    payload.add(memory.data(), 2);
    payload.add(memory.data() + 32, 2);
    PayloadDigest digest(log::Logger(log::null_sink(), "test"));
    // The test vector of RFC 1321 for "abc".
    EXPECT_EQ(digest.add(payload, 3), "900150983cd24fb0d6963f7d28e17f72");
}

}  // namespace
}  // namespace ernic::net
