// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "check.hpp"
#include "endpoint.hpp"

/// Bytes before and after every target that must not change.
constexpr std::size_t kGuard = 256;

/// Where the bytes of one message lie in a buffer: pieces in address order with gaps between them.
class Layout {
  public:
    struct Piece {
        std::size_t offset;
        std::size_t size;
    };
    /// `count` pieces of odd sizes that together hold `size` bytes, the first at `offset`.
    Layout(std::size_t offset, std::size_t size, std::size_t count = 1);

    [[nodiscard]] const std::vector<Piece>& pieces() const { return pieces_; }
    [[nodiscard]] std::vector<ibv_sge> sges(const Buffer& buffer) const;
    [[nodiscard]] std::size_t begin() const { return pieces_.front().offset; }
    [[nodiscard]] std::size_t end() const { return pieces_.back().offset + pieces_.back().size; }
    /// Keeps the pieces that the first `size` bytes reach.
    void shorten(std::size_t size);
    /// Where byte `position` of the message lies.
    [[nodiscard]] std::size_t place(std::size_t position) const;

  private:
    std::vector<Piece> pieces_;
};

/// A wrong byte in a message, found by verify().
class Corrupted : public Failure {
  public:
    Corrupted(const std::string& text, std::size_t position) : Failure(text), position_(position) {}
    [[nodiscard]] std::size_t position() const { return position_; }

  private:
    std::size_t position_;
};

/// Writes sequence `seed` into the pieces.
void fill(const Buffer& buffer, const Layout& layout, std::uint64_t seed);
/// Fills the layout, its gaps and its guards with the background, which is what verify() looks for around the
/// data.
void fill_background(const Buffer& buffer, const Layout& layout);
/// The first `size` bytes of the pieces hold sequence `seed`; everything else up to the guards' ends is still
/// background. Throws Corrupted for wrong data and Failure for touched surroundings.
void verify(const Buffer& buffer, const Layout& layout, std::uint64_t seed, std::size_t size);

enum class Op { Send, SendImm, SendInv, Write, WriteImm, Read };
const char* name_of(Op op);
ibv_wr_opcode request_opcode(Op op);
ibv_wc_opcode completion_opcode(Op op);
constexpr bool takes_receive(Op op) {
    return op != Op::Write && op != Op::Read;
}
constexpr bool scatters_to_receive(Op op) {
    return op == Op::Send || op == Op::SendImm || op == Op::SendInv;
}

struct Transfer {
    Op op = Op::Send;
    std::size_t size = 0;
    std::size_t source_at = 4096;
    std::size_t target_at = 4096;
    std::size_t source_pieces = 1;  ///< not for READ
    std::size_t target_pieces = 1;  ///< not for WRITE
    unsigned flags = 0;
    std::optional<std::size_t>
        plant{};  ///< this byte of the source is made wrong once its right value is fixed
};

/// Moves one message from `source` to `target` (whoever of the two reaches them), `by` being the requester,
/// and checks data, surroundings and both completions.
void run_transfer(const Buffer& source, const Buffer& target, Endpoint& by, Endpoint& peer,
                  const Transfer& transfer);

/// A number never used before in this run.
std::uint64_t fresh_seed();
