// SPDX-License-Identifier: MIT
#include "app/ana_words.hpp"

#include <array>
#include <utility>
#include <vector>

#include "base/suggest.hpp"

namespace ernic::app {
namespace {

using wire::nvme::AnaState;

constexpr std::array<std::pair<std::string_view, AnaState>, 5> kWords = {
    {{"optimized", AnaState::Optimized},
     {"non-optimized", AnaState::NonOptimized},
     {"inaccessible", AnaState::Inaccessible},
     {"persistent-loss", AnaState::PersistentLoss},
     {"change", AnaState::Change}}};

}  // namespace

Result<AnaState> parse_ana(std::string_view text) {
    std::vector<std::string_view> words;
    for (const auto& [word, state] : kWords) {
        if (word == text) {
            return state;
        }
        words.push_back(word);
    }
    return invalid(unknown_word("ANA state", text, words));
}

std::string_view to_string(AnaState state) {
    for (const auto& [word, known] : kWords) {
        if (known == state) {
            return word;
        }
    }
    return "unknown";
}

}  // namespace ernic::app
