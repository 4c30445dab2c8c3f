// SPDX-License-Identifier: MIT
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "guest_sim/guest.hpp"

namespace ernic::guest_sim {

/// Fills memory with bytes that differ from offset to offset (also 256 and 4096 apart) and from seed to seed.
inline std::uint8_t pattern_at(std::size_t offset, std::uint32_t seed) {
    const std::uint64_t mixed =
        (offset + 1) * 0x9e3779b97f4a7c15ULL ^ (std::uint64_t{seed} + 1) * 0xc2b2ae3d27d4eb4fULL;
    return static_cast<std::uint8_t>(mixed >> 32U);
}
inline void fill_pattern(const Buffer& buffer, std::uint32_t seed) {
    for (std::size_t i = 0; i < buffer.size; ++i) {
        buffer.host[i] = std::byte{pattern_at(i, seed)};
    }
}
/// Offset of the first byte that is not the pattern's, or -1.
inline std::int64_t first_mismatch(const Buffer& buffer, std::uint32_t seed) {
    for (std::size_t i = 0; i < buffer.size; ++i) {
        if (buffer.host[i] != std::byte{pattern_at(i, seed)}) {
            return static_cast<std::int64_t>(i);
        }
    }
    return -1;
}
/// True when every byte is `value`.
inline bool all_bytes(const Buffer& buffer, std::uint8_t value) {
    for (std::size_t i = 0; i < buffer.size; ++i) {
        if (buffer.host[i] != std::byte{value}) {
            return false;
        }
    }
    return true;
}

inline constexpr std::int64_t kNoMismatch = -1;

/// A fresh server and guest for every test. The server must survive the test and end in good order.
class GuestTest : public ::testing::Test {
  protected:
    GuestTest() : cq(guest.create_cq()) {}

    void TearDown() override {
        EXPECT_TRUE(server.running()) << "the server has died";
        if (HasFailure()) {
            ADD_FAILURE() << "log of the server:\n" << server.log();
        }
        EXPECT_EQ(server.stop(), 0);
    }

    /// Completes one request and expects `status`.
    void expect_send(CompletionQueue& queue, std::uint64_t wr_id, Status status = Status::Ok) {
        const WorkCompletion wc = queue.wait();
        EXPECT_FALSE(wc.receive);
        EXPECT_EQ(wc.wr_id, wr_id);
        EXPECT_EQ(wc.status, status);
    }
    /// Drains what a dead QP still owes: exactly one flush announcement per side, however long one waits.
    static void expect_one_flush_each(CompletionQueue& queue, const QueuePair& qp) {
        wait_until([&] {
            WorkCompletion ignored;
            queue.poll(std::span(&ignored, 1));
            return qp.entries().send_flush != 0 && qp.entries().receive_flush != 0;
        });
        WorkCompletion ignored;
        const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(5);
        while (std::chrono::steady_clock::now() < until) {
            queue.poll(std::span(&ignored, 1));
        }
        EXPECT_EQ(qp.entries().send_flush, 1U);
        EXPECT_EQ(qp.entries().receive_flush, 1U);
    }

    ServerProcess server;
    Guest guest{server};
    CqPtr cq;
};

}  // namespace ernic::guest_sim
