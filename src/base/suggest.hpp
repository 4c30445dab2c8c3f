// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace ernic {

/// Typing errors between two words: insert, delete, replace, swap of neighbours. Upper and lower case are the
/// same. Thread: any. Fails: never.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate nearest to `word`, the first one among equals. People also shorten (`loop`) and lengthen
/// (`warning`), so a candidate that starts with `word` beats one with a typing error, and one that `word`
/// starts with beats one with two of them. Thread: any. Precondition: `candidates` is not empty; the result
/// lives as long as they do.
[[nodiscard]] std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

/// "unknown WHAT 'WORD': did you mean 'NEAREST'? (valid: A, B, C)", the sentence for a closed set of words.
[[nodiscard]] std::string unknown_word(std::string_view what, std::string_view word,
                                       std::span<const std::string_view> candidates);

}  // namespace ernic
