// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

/// Test data: an endless byte sequence per seed in which no two places look alike, so that bytes which are
/// stale, shifted, swapped or from another transfer never pass for the right ones.

/// Writes bytes first, first + 1, ... of sequence `seed`.
void fill_pattern(void* to, std::size_t size, std::uint64_t seed, std::uint64_t first = 0);
/// Position within `size` of the first byte that is not what fill_pattern() writes.
std::optional<std::size_t> find_difference(const void* at, std::size_t size, std::uint64_t seed,
                                           std::uint64_t first = 0);
std::size_t count_differences(const void* at, std::size_t size, std::uint64_t seed, std::uint64_t first = 0);
unsigned char pattern_byte(std::uint64_t seed, std::uint64_t position);
