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

std::optional<std::uint64_t> value_of(const Registry& registry, std::string_view name) {
    for (const Registry::Number& number : registry.numbers()) {
        if (number.description.name == name) {
            return number.read();
        }
    }
    return std::nullopt;
}

void Row::begin(std::string_view key) {
    if (open_ || !first_) {
        out_ += ',';
    }
    if (!open_) {
        out_ += compact() ? "{" : "\n    {";
        open_ = true;
    }
    out_ += compact() ? "\"" : "\n      \"";
    out_ += key;
    out_ += compact() ? "\":" : "\": ";
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
        out_ += compact() ? "}" : "\n    }";
    }
    return open_;
}

void Report::add_head(std::string& out) {
    nlohmann::json root = nlohmann::json::object();
    for (const Registry::Number& number : registry_->numbers()) {
        if (!wanted(number.description.name)) {
            continue;
        }
        std::string pointer = "/" + number.description.name;
        std::replace(pointer.begin(), pointer.end(), '.', '/');
        root[nlohmann::json::json_pointer(pointer)] = number.read();
    }
    for (const Registry::Section& section : registry_->sections()) {
        if (wanted(section.name)) {
            root[section.name] = section.make();
        }
    }
    empty_ = root.empty();
    if (empty_) {
        out += '{';
        return;
    }
    // A socket's path need not be UTF-8, which is no reason to go without statistics.
    const std::string text =
        root.dump(compact() ? -1 : 2, ' ', false, nlohmann::json::error_handler_t::replace);
    const std::size_t end = compact() ? 1 : 2;  // brace, and the line feed before it: lists follow
    out.append(text, 0, text.size() - end);
}

bool Report::add_rows(std::string& out) {
    const std::size_t enough = out.size() + kTextPerStep;
    while (out.size() < enough) {
        Row row(out, first_row_, style_);
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
    while (list_ != registry_->lists().end() && !wanted(list_->name)) {
        ++list_;
    }
    if (list_ == registry_->lists().end()) {
        out += compact() ? "}" : empty_ ? "}\n" : "\n}\n";
        return false;
    }
    if (!rows_) {
        begin_list(out);
    }
    if (!add_rows(out)) {
        out += compact() || first_row_ ? "]" : "\n  ]";
        rows_ = nullptr;
        ++list_;
    }
    return true;
}

void Report::begin_list(std::string& out) {
    if (!empty_) {
        out += ',';
    }
    out += compact() ? "\"" : "\n  \"";
    out += list_->name;
    out += compact() ? "\":[" : "\": [";
    empty_ = false;
    first_row_ = true;
    rows_ = list_->open();
}

}  // namespace ernic::metrics
