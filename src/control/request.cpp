// SPDX-License-Identifier: MIT
#include "control/request.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>

#include "base/suggest.hpp"
#include "control/limits.hpp"

namespace ernic::control {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 3> kMembers = {"id", "command", "arguments"};

/// Goes through a text without building anything and stops where it exceeds a limit. The parser proper keeps
/// no count: depth would become recursion when its result is destroyed.
class Gate final : public nlohmann::json_sax<json> {
  public:
    [[nodiscard]] const std::string& problem() const { return problem_; }

    bool null() override { return value(); }
    bool boolean(bool /*value*/) override { return value(); }
    bool number_integer(number_integer_t /*value*/) override { return value(); }
    bool number_unsigned(number_unsigned_t /*value*/) override { return value(); }
    bool number_float(number_float_t /*value*/, const string_t& /*text*/) override { return value(); }
    bool string(string_t& /*value*/) override { return value(); }
    bool binary(binary_t& /*value*/) override { return value(); }
    bool key(string_t& /*value*/) override { return true; }
    bool start_object(std::size_t /*elements*/) override { return open(); }
    bool start_array(std::size_t /*elements*/) override { return open(); }
    bool end_object() override { return close(); }
    bool end_array() override { return close(); }
    bool parse_error(std::size_t position, const std::string& /*token*/,
                     const json::exception& /*problem*/) override {
        return refuse(fmt::format("the line is no JSON, from byte {} on", position));
    }

  private:
    bool refuse(std::string problem) {
        problem_ = std::move(problem);
        return false;
    }
    bool value() {
        return ++values_ <= kMaxValues || refuse(fmt::format("more than {} values in one line", kMaxValues));
    }
    bool open() {
        return (++depth_ <= kMaxDepth || refuse(fmt::format("more than {} levels", kMaxDepth))) && value();
    }
    bool close() {
        --depth_;
        return true;
    }

    std::size_t depth_ = 0;
    std::size_t values_ = 0;
    std::string problem_;
};

bool valid_id(const json& id) {
    return id.is_null() || id.is_number_integer() ||
           (id.is_string() && id.get_ref<const std::string&>().size() <= kMaxId);
}

/// Takes the members of `line` over. Returns what is wrong, or nothing.
std::string take_members(json& line, Request& request) {
    if (!line.is_object()) {
        return R"(a request is an object such as {"id": 1, "command": "status"})";
    }
    if (const auto id = line.find("id"); id != line.end()) {
        if (!valid_id(*id)) {
            return fmt::format("id must be a whole number or a string of at most {} bytes", kMaxId);
        }
        request.id = std::move(*id);
    }
    for (const auto& [name, value] : line.items()) {
        if (std::find(kMembers.begin(), kMembers.end(), name) == kMembers.end()) {
            return unknown_word("member", std::string_view(name).substr(0, kMaxId), kMembers);
        }
    }
    const auto command = line.find("command");
    if (command == line.end() || !command->is_string()) {
        return "command is missing or no string";
    }
    request.command = command->get_ref<const std::string&>().substr(0, kMaxId);
    if (const auto arguments = line.find("arguments"); arguments != line.end()) {
        if (!arguments->is_object()) {
            return R"(arguments must be an object such as {"match": "rdma."})";
        }
        request.arguments = std::move(*arguments);
    }
    return {};
}

}  // namespace

Request parse_request(std::string_view line) {
    Request request;
    Gate gate;
    if (!json::sax_parse(line, &gate)) {
        request.problem = gate.problem();
        return request;
    }
    json parsed = json::parse(line, nullptr, false);
    request.problem = parsed.is_discarded() ? "the line is no JSON" : take_members(parsed, request);
    return request;
}

}  // namespace ernic::control
