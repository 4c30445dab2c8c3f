// SPDX-License-Identifier: MIT
#include "ionic/device_command.hpp"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstddef>
#include <string>

#include "base/clock.hpp"
#include "ionic/identity.hpp"

namespace ernic::ionic {
namespace {

namespace w = wire::ionic;
using w::Opcode;
using w::Status;

constexpr std::uint8_t kLifTypeClassic = 0;

template <WireValue T>
T as(const w::Command& command) {
    static_assert(sizeof(T) == sizeof command);
    return *read_value<T>(bytes_of(command));
}

template <WireValue T>
void answer(MutableBytes data, const T& value) {
    static_assert(sizeof(T) == w::kCommandDataSize);
    std::copy_n(bytes_of(value).begin(), std::min(sizeof(T), data.size()), data.begin());
}

/// At most once a second, because a guest may identify itself in a loop.
bool due(log::Limiter& limiter) {
    const Nanoseconds now = SystemClock().now();
    if (limiter.last != 0 && now - limiter.last < 1'000'000'000) {
        return false;
    }
    limiter.last = now;
    return true;
}

/// Text of a guest for a log line: ends at the first NUL, other unprintable bytes become dots.
template <std::size_t N>
std::string printable(const std::array<char, N>& field) {
    std::string text(field.begin(), std::find(field.begin(), field.end(), '\0'));
    std::replace_if(
        text.begin(), text.end(), [](char c) { return std::isprint(static_cast<unsigned char>(c)) == 0; },
        '.');
    return text;
}

}  // namespace

void DeviceCommands::execute(const w::Command& command, w::Completion& completion, MutableBytes data) {
    const Status status = dispatch(command, completion, data);
    completion.status = static_cast<std::uint8_t>(status);
    (status == Status::Success ? succeeded_ : failed_).add();
    if (status != Status::Success) {
        log_.warn_limited(limiter_, "device command failed opcode={} status={}", command.opcode,
                          completion.status);
    } else {
        log_.debug("device command opcode={}", command.opcode);
    }
}

Status DeviceCommands::dispatch(const w::Command& command, w::Completion& completion, MutableBytes data) {
    switch (static_cast<Opcode>(command.opcode)) {
        case Opcode::Identify:
            return identify(data);
        case Opcode::Init:
            return Status::Success;
        case Opcode::Reset:
            hooks_.reset_card();
            return Status::Success;
        case Opcode::PortIdentify:
            return port_.identify(as<w::PortInitCommand>(command).index, data);
        case Opcode::PortInit:
            return port_.init(as<w::PortInitCommand>(command), data);
        case Opcode::PortReset:
            port_.reset();
            return Status::Success;
        case Opcode::PortSetAttribute:
            return port_.set_attribute(as<w::PortSetAttributeCommand>(command));
        case Opcode::LifIdentify:
            return identify_lif(command, data);
        case Opcode::LifInit:
            return init_lif(command, completion);
        case Opcode::LifReset:
            if (command.lif_index.get() != 0) {
                return Status::Invalid;
            }
            hooks_.reset_lif();
            return Status::Success;
        case Opcode::QueueIdentify:
            return identify_queue(command, completion, data);
        case Opcode::QueueInit:
            return admin_.init_queue(command, completion);
        case Opcode::VfGetAttribute:
        case Opcode::VfSetAttribute:
        case Opcode::VfControl:
        case Opcode::DiscoverCmb:
        case Opcode::FirmwareDownload:
        case Opcode::FirmwareControl:
        case Opcode::FirmwareDownloadV1:
        case Opcode::FirmwareControlV1:
        case Opcode::PortGetAttribute:
            return Status::NotSupported;
        default:
            return admin_.execute_common(command, completion);
    }
}

Status DeviceCommands::identify(MutableBytes data) {
    const auto driver = read_value<w::DriverIdentity>(data);
    if (driver && due(identity_limiter_)) {
        log_.info("driver identified itself os_type={} version={}", driver->os_type.get(),
                  printable(driver->driver_version_text));
    }
    answer(data, make_device_identity(profile_));
    return Status::Success;
}

Status DeviceCommands::identify_lif(const w::Command& command, MutableBytes data) {
    if (as<w::LifIdentifyCommand>(command).type != kLifTypeClassic) {
        return Status::Invalid;
    }
    answer(data, make_lif_identity(profile_, lif_.permanent_mac(), hooks_.has_rdma()));
    return Status::Success;
}

Status DeviceCommands::identify_queue(const w::Command& command, w::Completion& completion,
                                      MutableBytes data) {
    w::QueueIdentity identity{};
    const Status status = make_queue_identity(as<w::QueueIdentifyCommand>(command), identity);
    if (status == Status::Success) {
        answer(data, identity);
        w::QueueIdentifyCompletion version{};
        version.version = identity.version;
        completion = std::bit_cast<w::Completion>(version);
    }
    return status;
}

Status DeviceCommands::init_lif(const w::Command& command, w::Completion& completion) {
    const auto init = as<w::LifInitCommand>(command);
    if (init.type != kLifTypeClassic || init.index.get() != 0) {
        return Status::Invalid;
    }
    completion =
        std::bit_cast<w::Completion>(w::LifInitCompletion{});  // hw_index 0: doorbell page 0 is the first
    return lif_.init({init.info_address.get()}, port_.link());
}

void DeviceCommands::register_in(metrics::Registry& registry) const {
    registry.add(
        {"ionic.device_commands.succeeded", "commands", "Commands of the register block that were executed."},
        succeeded_);
    registry.add(
        {"ionic.device_commands.failed", "commands",
         "Commands of the register block answered with an error: the guest asked for something wrong."},
        failed_);
}

}  // namespace ernic::ionic
