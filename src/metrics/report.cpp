// SPDX-License-Identifier: MIT
#include "metrics/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace ernic::metrics {
namespace {

/// About 30 µs of work.
constexpr std::size_t kTextPerStep = 8 * 1024;

}  // namespace

void Row::begin(std::string_view key) {
    if (open_) {
        out_ += ",\n";
    } else {
        out_ += first_ ? "\n    {\n" : ",\n    {\n";
        open_ = true;
    }
    out_ += "      \"";
    out_ += key;
    out_ += "\": ";
}

void Row::add(std::string_view key, std::uint64_t value) {
    begin(key);
    const fmt::format_int digits(value);
    out_.append(digits.data(), digits.size());
}

void Row::add(std::string_view key, std::string_view word) {
    begin(key);
    out_ += '"';
    out_ += word;
    out_ += '"';
}

bool Row::close() {
    if (open_) {
        out_ += "\n    }";
    }
    return open_;
}

void Report::add_head(std::string& out) {
    nlohmann::json root = nlohmann::json::object();
    for (const Registry::Number& number : registry_->numbers()) {
        std::string pointer = "/" + number.description.name;
        std::replace(pointer.begin(), pointer.end(), '.', '/');
        root[nlohmann::json::json_pointer(pointer)] = number.read();
    }
    for (const Registry::Section& section : registry_->sections()) {
        root[section.name] = section.make();
    }
    empty_ = root.empty();
    if (empty_) {
        out += '{';
        return;
    }
    // A socket's path need not be UTF-8, which is no reason to go without statistics.
    const std::string text = root.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
    constexpr std::size_t kEnd = 2;  // line feed and brace: lists follow
    out.append(text, 0, text.size() - kEnd);
}

bool Report::add_rows(std::string& out) {
    const std::size_t enough = out.size() + kTextPerStep;
    while (out.size() < enough) {
        Row row(out, first_row_);
        const bool more = rows_(row);
        if (row.close()) {
            first_row_ = false;
        }
        if (!more) {
            return false;
        }
    }
    return true;
}

bool Report::step(std::string& out) {
    if (!head_done_) {
        head_done_ = true;
        add_head(out);
        return true;
    }
    if (list_ == registry_->lists().end()) {
        out += empty_ ? "}\n" : "\n}\n";
        return false;
    }
    if (!rows_) {
        out += empty_ ? "\n  \"" : ",\n  \"";
        out += list_->name;
        out += "\": [";
        empty_ = false;
        first_row_ = true;
        rows_ = list_->open();
    }
    if (!add_rows(out)) {
        out += first_row_ ? "]" : "\n  ]";
        rows_ = nullptr;
        ++list_;
    }
    return true;
}

}  // namespace ernic::metrics
