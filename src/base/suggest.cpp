// SPDX-License-Identifier: MIT
#include "base/suggest.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace ernic {
namespace {

char lower(char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

bool starts_with(std::string_view word, std::string_view prefix) {
    return !prefix.empty() && word.size() >= prefix.size() &&
           std::equal(prefix.begin(), prefix.end(), word.begin(),
                      [](char a, char b) { return lower(a) == lower(b); });
}

}  // namespace

// Optimal string alignment, three rows of the usual table:
//
//            candidate ->
//   before_last   d(i-2, *)     needed for the swap of neighbours
//   last          d(i-1, *)
//   current       d(i,   *)     being filled
std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before_last(b.size() + 1);
    std::vector<std::size_t> last(b.size() + 1);
    std::vector<std::size_t> current(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) {
        last[j] = j;
    }
    for (std::size_t i = 1; i <= a.size(); ++i) {
        current[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t replaced = last[j - 1] + (lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1);
            current[j] = std::min({last[j] + 1, current[j - 1] + 1, replaced});
            const bool swapped =
                i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]);
            if (swapped) {
                current[j] = std::min(current[j], before_last[j - 2] + 1);
            }
        }
        std::swap(before_last, last);
        std::swap(last, current);
    }
    return last[b.size()];
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
    std::string_view best = candidates.front();
    std::size_t best_distance = SIZE_MAX;
    for (const std::string_view candidate : candidates) {
        // In half errors: a shortened word is nearer than any mistyped one, a lengthened one than two errors.
        std::size_t distance = 2 * edit_distance(word, candidate);
        if (distance > 1 && starts_with(candidate, word)) {
            distance = 1;
        } else if (distance > 3 && starts_with(word, candidate)) {
            distance = 3;
        }
        if (distance < best_distance) {
            best = candidate;
            best_distance = distance;
        }
    }
    return best;
}

std::string unknown_word(std::string_view what, std::string_view word,
                         std::span<const std::string_view> candidates) {
    return fmt::format("unknown {} '{}': did you mean '{}'? (valid: {})", what, word,
                       nearest(word, candidates), fmt::join(candidates, ", "));
}

}  // namespace ernic
