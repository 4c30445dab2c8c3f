// SPDX-License-Identifier: MIT
#include "check.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <string>

namespace {

std::string formatted(const char* format, va_list arguments) {
    char text[512];
    vsnprintf(text, sizeof text, format, arguments);
    return text;
}

}  // namespace

void fail(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const std::string text = formatted(format, arguments);
    va_end(arguments);
    throw Failure(text);
}

void skip(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const std::string text = formatted(format, arguments);
    va_end(arguments);
    throw Skip(text);
}

void require(bool condition, const char* format, ...) {
    if (condition) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    const std::string text = formatted(format, arguments);
    va_end(arguments);
    throw Failure(text);
}

void require_ok(int error, const char* call) {
    // Some providers return the errno value, some its negative.
    require(error == 0, "%s: %s", call, strerror(error < 0 ? -error : error));
}
