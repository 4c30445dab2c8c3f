// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "transfer.hpp"

/// What one end asks of the other: one request of which both know every byte.
struct Order {
    enum class Kind { Send, SendImm, Write, WriteImm, Read, Datagram, Add, Swap };
    Kind op;
    std::size_t size;    ///< bytes; of Add and Swap the operand
    std::size_t at;      ///< in the buffers of both ends
    std::size_t pieces;  ///< SGEs where the operation may have several
    std::uint64_t seed;  ///< of the data, and the request's id; of Add and Swap the word before

    [[nodiscard]] std::string text() const;
    static Order read(const std::string& text);
    /// Precondition: one of the first five.
    [[nodiscard]] Op transfer() const;
    [[nodiscard]] std::uint32_t immediate() const { return static_cast<std::uint32_t>(seed * 0x9e3779b9U); }
};

/// Lines of text between the two ends, over TCP. All throw Failure.
class OrderLine {
  public:
    /// Connects to `host`, an IPv4 address, or waits for somebody when it is "listen".
    explicit OrderLine(const std::string& host);
    ~OrderLine();
    OrderLine(const OrderLine&) = delete;
    OrderLine& operator=(const OrderLine&) = delete;

    [[nodiscard]] bool listened() const { return listened_; }
    [[gnu::format(printf, 2, 3)]] void say(const char* format, ...);
    std::string hear();
    void expect(const char* line);

  private:
    bool listened_;
    int socket_ = -1;
    FILE* in_ = nullptr;
};
