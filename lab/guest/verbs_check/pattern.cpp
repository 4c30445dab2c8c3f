// SPDX-License-Identifier: MIT
#include "pattern.hpp"

#include <algorithm>
#include <cstring>

namespace {

/// Eight bytes at a time: an emulated processor has to produce every byte twice.
std::uint64_t pattern_word(std::uint64_t seed, std::uint64_t index) {
    std::uint64_t word = (seed + 1) * 0x9e3779b97f4a7c15U + index * 0xd1b54a32d192ed03U;
    word ^= word >> 32U;
    word *= 0xbf58476d1ce4e5b9U;
    return word ^ (word >> 29U);
}

/// Calls use(position, bytes, count) for consecutive stretches of at most eight bytes until it returns false.
template <typename Use>
void for_each_word(std::size_t size, std::uint64_t seed, std::uint64_t first, Use use) {
    for (std::size_t done = 0; done < size;) {
        const std::uint64_t at = first + done;
        const std::uint64_t word = pattern_word(seed, at / 8);
        const std::size_t skip = at % 8;
        const std::size_t count = std::min<std::size_t>(8 - skip, size - done);
        if (!use(done, reinterpret_cast<const unsigned char*>(&word) + skip, count)) {
            return;
        }
        done += count;
    }
}

}  // namespace

void fill_pattern(void* to, std::size_t size, std::uint64_t seed, std::uint64_t first) {
    auto* bytes = static_cast<unsigned char*>(to);
    for_each_word(size, seed, first, [&](std::size_t at, const unsigned char* from, std::size_t count) {
        memcpy(bytes + at, from, count);
        return true;
    });
}

std::optional<std::size_t> find_difference(const void* at, std::size_t size, std::uint64_t seed,
                                           std::uint64_t first) {
    const auto* bytes = static_cast<const unsigned char*>(at);
    std::optional<std::size_t> found;
    for_each_word(size, seed, first,
                  [&](std::size_t position, const unsigned char* expected, std::size_t count) {
                      if (memcmp(bytes + position, expected, count) == 0) {
                          return true;
                      }
                      std::size_t i = 0;
                      while (bytes[position + i] == expected[i]) {
                          ++i;
                      }
                      found = position + i;
                      return false;
                  });
    return found;
}

std::size_t count_differences(const void* at, std::size_t size, std::uint64_t seed, std::uint64_t first) {
    const auto* bytes = static_cast<const unsigned char*>(at);
    std::size_t different = 0;
    for_each_word(size, seed, first,
                  [&](std::size_t position, const unsigned char* expected, std::size_t count) {
                      for (std::size_t i = 0; i < count; ++i) {
                          different += bytes[position + i] != expected[i] ? 1 : 0;
                      }
                      return true;
                  });
    return different;
}

unsigned char pattern_byte(std::uint64_t seed, std::uint64_t position) {
    return static_cast<unsigned char>(pattern_word(seed, position / 8) >> (position % 8 * 8));
}
