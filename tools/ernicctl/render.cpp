// SPDX-License-Identifier: MIT
#include "ernicctl/render.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace ernic::ctl {
namespace {

using nlohmann::json;

std::string word(const json& value) {
    switch (value.type()) {
        case json::value_t::string:
            return value.get<std::string>();
        case json::value_t::boolean:
            return value.get<bool>() ? "yes" : "no";
        case json::value_t::null:
            return "-";
        case json::value_t::number_float:
            return fmt::format("{:.3f}", value.get<double>());
        default:
            return value.dump(-1, ' ', false, json::error_handler_t::replace);
    }
}

/// Columns as wide as they need; numbers to the right.
class Table {
  public:
    explicit Table(std::vector<std::string> titles) { add(std::move(titles)); }

    void add(std::vector<std::string> row) {
        widths_.resize(std::max(widths_.size(), row.size()));
        for (std::size_t i = 0; i < row.size(); ++i) {
            widths_[i] = std::max(widths_[i], row[i].size());
        }
        rows_.push_back(std::move(row));
    }

    [[nodiscard]] std::string text() const {
        std::string out;
        for (const auto& row : rows_) {
            std::string line;
            for (std::size_t i = 0; i < row.size(); ++i) {
                line += i == 0 ? "" : "  ";
                line += is_number(i) ? fmt::format("{:>{}}", row[i], widths_[i])
                                     : fmt::format("{:<{}}", row[i], widths_[i]);
            }
            line.erase(line.find_last_not_of(' ') + 1);
            out += line + '\n';
        }
        return out;
    }

  private:
    [[nodiscard]] bool is_number(std::size_t column) const {
        return rows_.size() > 1 && std::all_of(rows_.begin() + 1, rows_.end(), [column](const auto& row) {
                   return column < row.size() && !row[column].empty() &&
                          row[column].find_first_not_of("0123456789.+") == std::string::npos;
               });
    }

    std::vector<std::vector<std::string>> rows_;
    std::vector<std::size_t> widths_;
};

/// A list of flat objects; the columns are the members of the first one, `order` in front.
std::string table_of(const json& rows, const std::vector<std::string>& order, const char* nothing) {
    if (!rows.is_array() || rows.empty() || !rows[0].is_object()) {
        return fmt::format("{}\n", nothing);
    }
    std::vector<std::string> columns;
    for (const std::string& name : order) {
        if (rows[0].contains(name)) {
            columns.push_back(name);
        }
    }
    for (const auto& [name, value] : rows[0].items()) {
        if (std::find(columns.begin(), columns.end(), name) == columns.end()) {
            columns.push_back(name);
        }
    }
    Table table(columns);
    for (const json& row : rows) {
        std::vector<std::string> cells;
        for (const std::string& name : columns) {
            cells.push_back(word(row.value(name, json())));
        }
        table.add(std::move(cells));
    }
    return table.text();
}

std::string link_text(const json& link) {
    if (link.value("up", false)) {
        return "up";
    }
    std::string text = "down";
    std::string_view before = " (by ";
    for (const json& source : link.value("down_by", json::array())) {
        text += fmt::format("{}{}", before, word(source));
        before = ", ";
    }
    return text + (before == ", " ? ")" : "");
}

std::string capture_text(const json& capture) {
    return capture.is_object()
               ? fmt::format("to {}: {} packets, {} dropped", word(capture.value("name", json())),
                             word(capture.value("packets", json())), word(capture.value("dropped", json())))
               : "none";
}

std::string status_text(const json& status) {
    std::string text;
    const auto line = [&text](std::string_view title, const std::string& value) {
        text += fmt::format("{:<15} {}\n", title, value.empty() ? "-" : value);
    };
    const auto member = [&status](const char* name) { return word(status.value(name, json())); };
    line("version", fmt::format("{}, protocol {}", member("version"), member("protocol")));
    line("process", fmt::format("{}, up for {} s", member("pid"), member("uptime_seconds")));
    line("socket", member("socket"));
    line("VMM connected", member("connected"));
    line("guest driver", status.value("driver", false) ? "running" : "not running");
    line("MAC address", member("mac"));
    line("backend", member("backend"));
    line("TAP", member("tap"));
    line("link", link_text(status.value("link", json::object())));
    line("queue pairs", member("queue_pairs"));
    line("memory regions", member("memory_regions"));
    line("capture", capture_text(status.value("capture", json())));
    line("log level", member("log_level"));
    return text;
}

/// Numbers under their dotted names; lists of objects behind them.
void flatten(const std::string& name, const json& value, Table& numbers, std::string& lists) {
    if (value.is_object()) {
        for (const auto& [key, inner] : value.items()) {
            flatten(name.empty() ? key : name + "." + key, inner, numbers, lists);
        }
    } else if (value.is_array()) {
        lists += fmt::format("\n{}\n{}", name, table_of(value, {"qpn", "type", "state"}, "none"));
    } else {
        numbers.add({name, word(value)});
    }
}

std::string stats_text(const json& stats) {
    Table numbers({"name", "value"});
    std::string lists;
    flatten("", stats, numbers, lists);
    return numbers.text() + lists;
}

std::string version_text(const json& version) {
    return fmt::format("rocm-ernic {}, control protocol {}\n", word(version.value("version", json())),
                       word(version.value("protocol", json())));
}

void add_changes(const std::string& name, const json& before, const json& now, double seconds, Table& table) {
    if (now.is_object()) {
        for (const auto& [key, inner] : now.items()) {
            const json& old = before.is_object() && before.contains(key) ? before[key] : inner;
            add_changes(name.empty() ? key : name + "." + key, old, inner, seconds, table);
        }
    } else if (now.is_number_integer() && before.is_number_integer() && now != before) {
        const auto grown = now.get<double>() - before.get<double>();
        table.add({name, word(now), fmt::format("{:.1f}", grown / seconds)});
    }
}

/// For results that nobody here knows.
std::string plain(const json& result) {
    return result.dump(2, ' ', false, json::error_handler_t::replace) + '\n';
}

std::string text_of(const std::string& command, const json& result) {
    if (command == "status") {
        return status_text(result);
    }
    if (command == "stats") {
        return stats_text(result);
    }
    if (command == "version") {
        return version_text(result);
    }
    if (command == "ports") {
        return table_of(result.value("ports", json()), {"name", "connected", "link"}, "no ports");
    }
    if (command == "peers") {
        return table_of(result.value("peers", json()),
                        {"number", "name", "state", "address", "round_trip_us", "queued_bytes", "reconnects"},
                        "no peers");
    }
    if (command == "mac-table") {
        return table_of(result.value("entries", json()), {"mac", "port", "age_seconds"},
                        "no addresses have been seen");
    }
    if (command == "link") {
        return fmt::format("link {}\n", link_text(result));
    }
    if (command == "pcap-start") {
        return fmt::format("capture to {} begins\n", word(result.value("name", json())));
    }
    if (command == "pcap-stop") {
        return fmt::format("capture {}\n", capture_text(result));
    }
    if (command == "fault-add") {
        return fmt::format("fault {} added\n", word(result.value("id", json())));
    }
    if (command == "fault-list") {
        return table_of(result.value("faults", json()), {"id", "spec"}, "no faults");
    }
    if (command == "fault-clear") {
        return fmt::format("{} cleared\n", word(result.value("cleared", json())));
    }
    if (command == "nvme-list") {
        return table_of(result.value("namespaces", json()),
                        {"nqn", "nsid", "bytes", "block", "medium", "reads", "writes"}, "no namespaces") +
               "\n" +
               table_of(result.value("paths", json()), {"nqn", "address", "port", "ana", "connections"},
                        "no paths") +
               "\n" +
               table_of(result.value("controllers", json()),
                        {"nqn", "controller", "address", "host", "io_queues", "ready", "errors"},
                        "no controllers");
    }
    if (command == "nvme-ana") {
        return fmt::format("path {} is {}\n", word(result.value("address", json())),
                           word(result.value("ana", json())));
    }
    if (command.starts_with("nvme-")) {
        return fmt::format("namespace {} of {}\n", word(result.value("nsid", json())),
                           word(result.value("nqn", json())));
    }
    if (command == "log-level") {
        return fmt::format("log level {}\n", word(result.value("level", json())));
    }
    return plain(result);
}

}  // namespace

std::string render(const std::string& command, const json& result) {
    try {
        return text_of(command, result);
    } catch (const json::exception&) {  // a member of another kind than ours
        return plain(result);
    }
}

std::string render_changes(const json& before, const json& now, double seconds) {
    Table table({"name", "value", "per second"});
    add_changes("", before, now, seconds, table);
    return table.text();
}

}  // namespace ernic::ctl
