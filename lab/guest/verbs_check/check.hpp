// SPDX-License-Identifier: MIT
#pragma once

#include <stdexcept>

/// A case saw something wrong.
class Failure : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The device, its driver or the machine cannot do what a case is about.
class Skip : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

[[noreturn]] [[gnu::format(printf, 1, 2)]] void fail(const char* format, ...);
[[noreturn]] [[gnu::format(printf, 1, 2)]] void skip(const char* format, ...);
[[gnu::format(printf, 2, 3)]] void require(bool condition, const char* format, ...);
/// For calls of the library that return an errno value.
void require_ok(int error, const char* call);
