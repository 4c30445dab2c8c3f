// SPDX-License-Identifier: MIT
// The register file: BAR 0 in any width, configuration space, device commands, before and after the driver
// has brought the card up, with doorbells and guest memory changing in between.
#include "fuzz/driver.hpp"
#include "fuzz/world.hpp"
#include "ionic/profile.hpp"
#include "wire/ionic_device.hpp"

namespace ernic::fuzz {
namespace {

namespace w = wire::ionic;

constexpr std::array<w::Opcode, 30> kOpcodes = {w::Opcode::Nop,
                                                w::Opcode::Identify,
                                                w::Opcode::Init,
                                                w::Opcode::Reset,
                                                w::Opcode::PortIdentify,
                                                w::Opcode::PortInit,
                                                w::Opcode::PortReset,
                                                w::Opcode::PortGetAttribute,
                                                w::Opcode::PortSetAttribute,
                                                w::Opcode::LifIdentify,
                                                w::Opcode::LifInit,
                                                w::Opcode::LifReset,
                                                w::Opcode::LifGetAttribute,
                                                w::Opcode::LifSetAttribute,
                                                w::Opcode::LifSetPhc,
                                                w::Opcode::RxModeSet,
                                                w::Opcode::RxFilterAdd,
                                                w::Opcode::RxFilterDelete,
                                                w::Opcode::QueueIdentify,
                                                w::Opcode::QueueInit,
                                                w::Opcode::QueueControl,
                                                w::Opcode::RdmaResetLif,
                                                w::Opcode::RdmaCreateEventQueue,
                                                w::Opcode::RdmaCreateCompletionQueue,
                                                w::Opcode::RdmaCreateAdminQueue,
                                                w::Opcode::VfControl,
                                                w::Opcode::DiscoverCmb,
                                                w::Opcode::FirmwareDownload,
                                                w::Opcode::FirmwareControl,
                                                w::Opcode::FirmwareControlV1};

class Target {
  public:
    explicit Target(Input input)
        : input_(input),
          driver_({world_.ram(), world_.card(), [this] { world_.run_once(); },
                   [this](std::uint32_t offset, Bytes data) { world_.config_write(offset, data); }}) {}

    void run() {
        const std::uint8_t start = input_.u8() % 3U;
        if (start >= 1) {
            driver_.probe();
        }
        if (start == 2) {
            driver_.probe_rdma();
        }
        while (!input_.empty()) {
            operation();
        }
        world_.finish();
    }

  private:
    void operation() {
        switch (input_.u8() % 16U) {
            case 0:
            case 1:
            case 2:
                raw_command();
                break;
            case 3:
            case 4:
                queue_init();
                break;
            case 5:
                attribute();
                break;
            case 6:
                access_register();
                break;
            case 7:
                access_interrupts();
                break;
            case 8:
                access_config();
                break;
            case 9:
                driver_.doorbell(input_.below(9), input_.below(9), input_.u64());
                break;
            case 10:
                world_.run_once();
                break;
            case 11:
                world_.advance(input_.u32());
                break;
            case 12:
                world_.ram().store(GuestRam::address(input_), input_.bytes(input_.u8()));
                break;
            case 13:
                world_.card().set_link(input_.flag());
                break;
            case 14: {
                const auto region = static_cast<GuestRam::Id>(input_.below(GuestRam::kRegions));
                input_.flag() ? world_.ram().map(region) : world_.ram().unmap(region);
                break;
            }
            default:
                command_with_addresses();
                break;
        }
    }

    /// A command of 64 bytes from the input behind a likely opcode; its data area, too, when asked for.
    void raw_command() {
        auto command = input_.value<w::Command>();
        if (input_.u8() % 8U != 0) {
            command.opcode = static_cast<std::uint8_t>(input_.pick(kOpcodes));
        }
        if (input_.u8() % 4U != 0) {
            command.lif_index.set(0);
        }
        if (input_.flag()) {
            world_.card().bar_write(0, w::kDeviceCommandOffset + 0x88, input_.bytes(input_.u16() % 1913U));
        }
        driver_.device_command(command);
    }

    void command_with_addresses() {
        w::PortInitCommand init{};  // LIF_INIT keeps its address in the same place
        init.opcode = static_cast<std::uint8_t>(input_.flag() ? w::Opcode::PortInit : w::Opcode::LifInit);
        init.info_address.set(GuestRam::address(input_));
        driver_.device_command(init);
    }

    void queue_init() {
        w::QueueInitCommand init{};
        init.opcode = static_cast<std::uint8_t>(w::Opcode::QueueInit);
        init.type = input_.u8() % 6U;
        init.version = init.type == 3 ? 1 : input_.u8() % 8U == 0 ? 1 : 0;
        init.index.set(input_.below(6));
        init.pid.set(static_cast<std::uint16_t>(input_.below(10)));
        init.interrupt.set(static_cast<std::uint16_t>(input_.below(10)));
        init.flags.set(input_.u8() & 0x07U);
        init.ring_size_log2 = input_.u8() % 18U;
        const auto aligned = [this] { return GuestRam::address(input_) & ~std::uint64_t{4095}; };
        init.ring_base.set(aligned());
        init.completion_ring_base.set(aligned());
        init.sg_ring_base.set(aligned());
        driver_.device_command(init);
    }

    void attribute() {
        auto command = input_.value<w::LifAttributeCommand>();
        command.opcode = static_cast<std::uint8_t>(input_.flag() ? w::Opcode::LifSetAttribute
                                                                 : w::Opcode::LifGetAttribute);
        command.attribute %= 9U;
        command.index.set(0);
        if (static_cast<w::LifAttribute>(command.attribute) == w::LifAttribute::Rss) {
            auto rss = *read_value<w::RssAttribute>(command.value);
            rss.table_address.set(GuestRam::address(input_));
            std::memcpy(command.value.data(), &rss, sizeof rss);
        }
        driver_.device_command(command);
    }

    void access_register() {
        std::array<std::byte, 64> data{};
        // Whoever calls the function has checked offset and size against the BAR.
        const std::uint32_t offset = input_.u16() % (0x10000U - data.size() + 1);
        if (input_.flag()) {
            const MutableBytes out = MutableBytes(data).first(input_.below(65));
            world_.card().bar_read(input_.below(6), offset, out);
        } else {
            world_.card().bar_write(0, offset, input_.bytes(input_.below(65)));
        }
    }

    void access_interrupts() {
        const std::uint32_t offset = w::kInterruptControlOffset + input_.below(9) * 32U + input_.below(20);
        world_.card().bar_write(0, offset, input_.bytes(1 + input_.below(8)));
    }

    void access_config() {
        constexpr std::array<std::uint16_t, 8> kOffsets = {0x04, 0x10, 0x52, 0x53, 0x44, 0x68, 0x69, 0x104};
        const std::uint32_t offset = input_.u8() % 4U != 0 ? input_.pick(kOffsets) : input_.u16() % 4096U;
        if (input_.flag()) {
            std::array<std::byte, 8> data{};
            world_.card().config_read(offset, data);
        } else {
            world_.config_write(offset, input_.bytes(1 + input_.below(8)));
        }
    }

    Input input_;
    World world_;
    Driver driver_;
};

}  // namespace
}  // namespace ernic::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    ernic::fuzz::Target(ernic::fuzz::Input(data, size)).run();
    return 0;
}
