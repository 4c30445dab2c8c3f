// SPDX-License-Identifier: MIT
#include "ionic/device_registers.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>

namespace ernic::ionic {
namespace {

using wire::ionic::DeviceCommandRegisters;
using wire::ionic::DeviceInfoRegisters;

constexpr std::uint8_t kInfoVersion = 1;
/// Firmware restarts are not emulated, so the generation in fw_status never moves. It is not 0, so that a
/// driver which mistakes generation 0 for "none" is not confused.
constexpr std::uint8_t kFirmwareGeneration = 1;

/// Copies `text` into a zero-padded field, cutting what does not fit.
void fill_text(std::span<char> field, std::string_view text) {
    std::fill(field.begin(), field.end(), '\0');
    std::copy_n(text.begin(), std::min(text.size(), field.size()), field.begin());
}

/// The part of [offset, offset + size) that overlaps a block at `start`, copied by `copy(at in block, at in
/// access, size)`.
template <typename Copy>
void overlap(std::size_t offset, std::size_t size, std::size_t start, std::size_t length, Copy copy) {
    const std::size_t from = std::max(offset, start);
    const std::size_t to = std::min(offset + size, start + length);
    if (from < to) {
        copy(from - start, from - offset, to - from);
    }
}

}  // namespace

DeviceRegisters::DeviceRegisters(const Profile& profile, const Clock& clock, DeviceCommandHandler& handler)
    : clock_(clock), handler_(handler) {
    info_.signature.set(wire::ionic::kSignature);
    info_.version = kInfoVersion;
    info_.asic_type = profile.asic_type;
    info_.asic_rev = profile.asic_rev;
    info_.fw_status = wire::ionic::kFirmwareRunning |
                      static_cast<std::uint8_t>(kFirmwareGeneration << wire::ionic::kFirmwareGenerationShift);
    // fw_heartbeat stays 0, which means "none": it would have to move every 5 s, a wake-up of an idle card.
    fill_text(info_.fw_version, profile.firmware_version);
    fill_text(info_.serial_number, profile.serial_number);
}

void DeviceRegisters::read(std::uint32_t offset, MutableBytes out) {
    std::fill(out.begin(), out.end(), std::byte{0});
    overlap(offset, out.size(), wire::ionic::kDeviceInfoOffset, sizeof info_,
            [&](auto at, auto in, auto size) {
                constexpr std::size_t kTicks = offsetof(DeviceInfoRegisters, tick_low);
                if (at + size > kTicks && at < kTicks + 8) {
                    // Nanoseconds. The driver reads low, high, low, high and sees a step back of the low word
                    // itself.
                    const Nanoseconds now = clock_.now();
                    info_.tick_low.set(static_cast<std::uint32_t>(now));
                    info_.tick_high.set(static_cast<std::uint32_t>(now >> 32U));
                }
                std::memcpy(out.data() + in, bytes_of(info_).data() + at, size);
            });
    overlap(offset, out.size(), wire::ionic::kDeviceCommandOffset, sizeof command_,
            [&](auto at, auto in, auto size) {
                std::memcpy(out.data() + in, bytes_of(command_).data() + at, size);
            });
}

void DeviceRegisters::write(std::uint32_t offset, Bytes data) {
    overlap(offset, data.size(), wire::ionic::kDeviceCommandOffset, sizeof command_,
            [&](auto at, auto in, auto size) {
                std::memcpy(mutable_bytes_of(command_).data() + at, data.data() + in, size);
                // Zero does nothing: ionic_dev_cmd_clean of ionic 7.2 writes it before it reads the results.
                if (at < sizeof command_.doorbell && (command_.doorbell.get() & 1U) != 0) {
                    run_command();
                }
            });
}

void DeviceRegisters::run_command() {
    command_.doorbell.set(0);
    const auto command = *read_value<wire::ionic::Command>(command_.command);
    wire::ionic::Completion completion{};
    handler_.execute(command, completion, command_.data);
    std::memcpy(command_.completion.data(), &completion, sizeof completion);
    command_.done.set(1);
}

}  // namespace ernic::ionic
