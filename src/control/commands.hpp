// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/fd.hpp"
#include "base/result.hpp"

namespace ernic::control {

/// What a command is handed: arguments with names it knows, and the descriptor that came with the request.
struct Call {
    nlohmann::json arguments = nlohmann::json::object();
    /// Not valid when none came. Whoever wants it moves it out; it is closed otherwise.
    UniqueFd fd{};

    /// An argument of one kind; nullopt when it is not given. Fails: InvalidArgument (another kind) or
    /// OutOfRange (more than kMaxText bytes) with one sentence.
    [[nodiscard]] Result<std::optional<std::string>> text(const char* name) const;
    /// Within `least` to `most`; OutOfRange otherwise.
    [[nodiscard]] Result<std::optional<std::uint64_t>> number(const char* name, std::uint64_t least,
                                                              std::uint64_t most) const;
    /// Whether it is given and true. Fails: InvalidArgument when it is neither true nor false.
    [[nodiscard]] Result<bool> flag(const char* name) const;
};

/// Whether `text` can be shown as it is: without control characters.
[[nodiscard]] bool can_be_shown(std::string_view text);

/// Makes a long result as JSON text without line feeds, a part of some tens of microseconds a call, appended
/// to `out`. Returns false when that was the last part. What it refers to must outlive the server.
using Producer = std::function<bool(std::string& out)>;

/// A result that is known later. The client's further requests wait for it. Thread: device.
class Later {
  public:
    /// Gives the result, once; nobody may be waiting any more.
    void answer(Result<nlohmann::json> result);

  private:
    friend class Client;
    std::optional<Result<nlohmann::json>> result_;
    std::function<void()> wake_;
};

/// A whole result, one that is made in steps, one that comes later, or why there is none.
using Answer = std::variant<nlohmann::json, Producer, std::shared_ptr<Later>, Error>;

/// The word of an error on the wire.
[[nodiscard]] std::string_view word_of(Errc code);

/// The commands of a server by name: who registers them decides what an operator can do, the server only
/// carries requests. Thread: device.
class Commands {
  public:
    /// Called with checked argument names; takes a few tens of microseconds at most.
    using Handler = std::function<Answer(Call& call)>;

    /// Precondition: `name` is new.
    void add(std::string name, std::vector<std::string_view> arguments, Handler handler);

    /// Fails: by an Error with code InvalidArgument that names the nearest command or argument;
    /// `known()` tells which of both it was.
    [[nodiscard]] Answer run(const std::string& name, Call& call) const;
    [[nodiscard]] bool known(const std::string& name) const { return commands_.contains(name); }
    [[nodiscard]] std::vector<std::string_view> names() const;

  private:
    struct Command {
        std::vector<std::string_view> arguments;
        Handler handler;
    };
    std::map<std::string, Command> commands_;
};

}  // namespace ernic::control
