// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace ernic {

/// The closed set of things that can go wrong on the host side. Guest and peer faults use the status of their
/// protocol.
enum class Errc {
    InvalidArgument,
    OutOfRange,
    AlreadyExists,
    NoSpace,
    PermissionDenied,
    Unsupported,
    Io,
    Busy,
};

/// What went wrong, and one sentence for a person.
struct Error {
    Errc code;
    std::string message;
};

/// The Error for something a person has written: `sentence` says what is wrong and what to write instead.
inline Error invalid(std::string sentence) {
    return {Errc::InvalidArgument, std::move(sentence)};
}

/// A value or an Error; cannot be ignored. Both convert to it, so that a function just returns either.
template <typename T>
class [[nodiscard]] Result {
  public:
    // NOLINTNEXTLINE(google-explicit-constructor)
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    // NOLINTNEXTLINE(google-explicit-constructor)
    Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

    [[nodiscard]] bool ok() const { return state_.index() == 0; }
    explicit operator bool() const { return ok(); }

    /// Precondition: ok().
    T& value() { return std::get<0>(state_); }
    const T& value() const { return std::get<0>(state_); }
    T& operator*() { return value(); }
    T* operator->() { return &value(); }

    /// Precondition: !ok().
    [[nodiscard]] const Error& error() const { return std::get<1>(state_); }

  private:
    std::variant<T, Error> state_;
};

/// Success without a value.
struct Done {};
using Status = Result<Done>;

}  // namespace ernic
