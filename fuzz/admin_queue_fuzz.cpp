// SPDX-License-Identifier: MIT
// Admin commands of both halves after bring-up: the Ethernet admin queue (with RDMA queue creation, 50 to 53)
// and the RDMA admin queue (create, modify, query, destroy, statistics) with arbitrary page tables, in any
// order, while guest memory changes, regions vanish and queues are rung.
#include <bit>

#include "fuzz/driver.hpp"
#include "fuzz/world.hpp"
#include "ionic/profile.hpp"

namespace ernic::fuzz {
namespace {

namespace w = wire::ionic;
namespace rw = wire::ionic_rdma;

constexpr std::array<w::Opcode, 14> kEthernetOpcodes = {w::Opcode::Nop,
                                                        w::Opcode::LifGetAttribute,
                                                        w::Opcode::LifSetAttribute,
                                                        w::Opcode::RxModeSet,
                                                        w::Opcode::RxFilterAdd,
                                                        w::Opcode::RxFilterDelete,
                                                        w::Opcode::QueueInit,
                                                        w::Opcode::QueueControl,
                                                        w::Opcode::RdmaResetLif,
                                                        w::Opcode::RdmaCreateEventQueue,
                                                        w::Opcode::RdmaCreateCompletionQueue,
                                                        w::Opcode::RdmaCreateAdminQueue,
                                                        w::Opcode::LifInit,
                                                        w::Opcode::QueueIdentify};

class Target {
  public:
    explicit Target(Input input)
        : input_(input),
          driver_({world_.ram(), world_.card(), [this] { run_some(); },
                   [this](std::uint32_t offset, Bytes data) { world_.config_write(offset, data); }}) {}

    void run() {
        driver_.bring_up();
        while (!input_.empty()) {
            operation();
        }
        world_.finish();
    }

  private:
    void run_some() {
        for (int i = 0; i < 4; ++i) {
            world_.run_once();
            if (!world_.work_left()) {
                return;
            }
        }
    }

    void operation() {
        switch (input_.u8() % 20U) {
            case 0:
                ethernet_command();
                break;
            case 1:
                rdma_queue();
                break;
            case 2:
            case 3:
                create_cq();
                break;
            case 4:
            case 5:
                create_qp();
                break;
            case 6:
            case 7:
                create_mr();
                break;
            case 8:
                create_ah();
                break;
            case 9:
            case 10:
            case 11:
                modify_qp();
                break;
            case 12:
                query_or_stats();
                break;
            case 13:
                destroy();
                break;
            case 14:
                raw_rdma_command();
                break;
            case 15:
                page_table();
                break;
            case 16:
                world_.ram().store(GuestRam::address(input_), input_.bytes(input_.u8()));
                break;
            case 17:
                ring();
                break;
            case 18:
                change_machine();
                break;
            default:
                world_.advance(input_.u32());
                break;
        }
    }

    std::uint32_t id() { return input_.u8() % 16U == 0 ? input_.u32() : input_.below(8); }

    /// Where a ring or region lies: one block, or a table whose entries page_table() writes.
    template <typename Command>
    void pages(le32& count, le64& address, Command& geometry) {
        count.set(input_.u8() % 16U == 0 ? input_.u32() : input_.below(17));
        address.set(input_.flag() ? page::kTables + 8 * input_.below(1024) : GuestRam::address(input_));
        geometry.page_size_log2 =
            input_.u8() % 8U == 0 ? input_.u8() : static_cast<std::uint8_t>(12 + input_.below(3));
    }

    rw::RingGeometry geometry(std::uint8_t stride_log2) {
        rw::RingGeometry made{};
        made.depth_log2 = static_cast<std::uint8_t>(input_.u8() % 18U);
        made.stride_log2 = input_.u8() % 8U == 0 ? input_.u8() : stride_log2;
        return made;
    }

    void ethernet_command() {
        auto command = input_.value<w::Command>();
        if (input_.u8() % 8U != 0) {
            command.opcode = static_cast<std::uint8_t>(input_.pick(kEthernetOpcodes));
            command.lif_index.set(0);
        }
        driver_.admin(command);
    }

    void rdma_queue() {
        constexpr std::array<w::Opcode, 3> kOpcodes = {w::Opcode::RdmaCreateEventQueue,
                                                       w::Opcode::RdmaCreateCompletionQueue,
                                                       w::Opcode::RdmaCreateAdminQueue};
        constexpr std::array<std::uint8_t, 3> kStrides = {2, 5, 6};
        const std::uint32_t kind = input_.below(3);
        w::RdmaQueueCommand command{};
        command.opcode = static_cast<std::uint8_t>(kOpcodes[kind]);
        command.qid_ver.set(id());
        command.cid.set(id());
        command.dbid.set(input_.u8() % 4U);
        command.depth_log2 = input_.u8() % 18U;
        command.stride_log2 = input_.u8() % 8U == 0 ? input_.u8() : kStrides[kind];
        command.dma_addr.set(GuestRam::address(input_));
        driver_.admin(command);
    }

    void create_cq() {
        rw::CreateCq command{};
        command.eq_id.set(input_.below(3));
        command.ring = geometry(5);
        pages(command.map_count, command.dma_addr, command.ring);
        command.id_ver.set(id());
        command.dbid.set(input_.u8() % 3U);
        driver_.rdma_admin(rw::AdminOp::CreateCq, command);
    }

    void create_qp() {
        rw::CreateQp command{};
        command.pd_id.set(input_.below(3));
        command.flags.set(input_.u16());
        command.sq_cq_id.set(id());
        command.rq_cq_id.set(id());
        command.sq_ring = geometry(static_cast<std::uint8_t>(6 + input_.below(4)));
        command.rq_ring = geometry(static_cast<std::uint8_t>(6 + input_.below(4)));
        pages(command.sq_map_count, command.sq_dma_addr, command.sq_ring);
        pages(command.rq_map_count, command.rq_dma_addr, command.rq_ring);
        command.id_ver.set(id());
        command.dbid.set(input_.u8() % 3U);
        command.type_state = input_.flag() ? 0 : input_.u8() % 8U == 0 ? input_.u8() : 3;
        driver_.rdma_admin(rw::AdminOp::CreateQp, command);
    }

    void create_mr() {
        rw::CreateMr command{};
        command.va.set(input_.flag() ? GuestRam::address(input_) : input_.u16());
        command.length.set(input_.u8() % 4U == 0 ? input_.u64() : input_.u16());
        command.pd_id.set(input_.below(3));
        command.key.set(id() << 8U | input_.u8());
        pages(command.map_count, command.dma_addr, command);
        command.flags.set(input_.u16());
        driver_.rdma_admin(rw::AdminOp::CreateMr, command);
    }

    void store_header() {
        // Ethernet, IPv4, UDP to the RoCE port, with the input's bytes over it.
        std::array<std::byte, 66> header{};
        std::memcpy(header.data(), kCardMac.bytes.data(), 6);
        std::memcpy(header.data() + 6, kCardMac.bytes.data(), 6);
        header[12] = std::byte{0x08};
        header[14] = std::byte{0x45};
        header[23] = std::byte{17};
        header[36] = std::byte{0x12};
        header[37] = std::byte{0xb7};
        const std::uint8_t at = input_.u8() % 66U;
        const Bytes own = input_.bytes(std::min<std::size_t>(input_.u8() % 8U, header.size() - at));
        std::memcpy(header.data() + at, own.data(), own.size());
        world_.ram().store(page::kHeaders, header);
    }

    void create_ah() {
        store_header();
        rw::CreateAh command{};
        command.dma_addr.set(input_.u8() % 8U == 0 ? GuestRam::address(input_) : page::kHeaders);
        command.length.set(input_.u8() % 8U == 0 ? input_.u32() : 42);
        command.pd_id.set(input_.below(3));
        command.id_ver.set(id());
        driver_.rdma_admin(rw::AdminOp::CreateAh, command);
    }

    void modify_qp() {
        auto command = input_.value<rw::ModifyQp>();
        const bool likely = input_.u8() % 4U != 0;
        if (likely) {
            store_header();
            command.ah_id_length.set(42U << 24U | id());
            command.dma_addr.set(page::kHeaders);
            command.pmtu_log2 = static_cast<std::uint8_t>(8 + input_.below(5));
            command.rrq_depth &= 3U;
            command.rsq_depth &= 3U;
        }
        command.type_state = static_cast<std::uint8_t>(input_.below(8));
        command.attr_mask.set(command.attr_mask.get() | rw::kAttrState |
                              (likely ? rw::kAttrAddressVector : 0));
        command.id_ver.set(id());
        driver_.rdma_admin(rw::AdminOp::ModifyQp, command);
    }

    void query_or_stats() {
        if (input_.flag()) {
            rw::QueryQp command{};
            command.sq_dma.set(GuestRam::address(input_));
            command.rq_dma.set(GuestRam::address(input_));
            command.id_ver.set(id());
            driver_.rdma_admin(rw::AdminOp::QueryQp, command);
            return;
        }
        constexpr std::array<rw::AdminOp, 4> kOps = {rw::AdminOp::StatsHeaders, rw::AdminOp::StatsValues,
                                                     rw::AdminOp::QpStatsHeaders, rw::AdminOp::QpStatsValues};
        rw::Stats command{};
        command.dma_addr.set(GuestRam::address(input_));
        command.length.set(input_.flag() ? 4096 : input_.u32());
        command.id_ver.set(id());
        driver_.rdma_admin(input_.pick(kOps), command);
    }

    void destroy() {
        constexpr std::array<rw::AdminOp, 4> kOps = {rw::AdminOp::DestroyMr, rw::AdminOp::DestroyCq,
                                                     rw::AdminOp::DestroyQp, rw::AdminOp::DestroyAh};
        const rw::AdminOp op = input_.pick(kOps);
        const std::uint32_t which = id();
        driver_.rdma_admin(op, rw::Destroy{le32(op == rw::AdminOp::DestroyMr ? which << 8U : which)});
    }

    void raw_rdma_command() {
        const std::uint8_t op = input_.u8() % 24U;
        const std::uint16_t length = input_.flag() ? input_.u16() : input_.u8() % 128U;
        driver_.rdma_admin(op, input_.bytes(124), length);
    }

    /// Entries for the tables that pages() names.
    void page_table() {
        const std::uint64_t at = page::kTables + 8 * input_.below(1024);
        const std::uint32_t count = 1 + input_.below(16);
        for (std::uint32_t i = 0; i < count; ++i) {
            world_.ram().put(at + 8 * i, le64(GuestRam::address(input_)));
        }
    }

    void ring() {
        const std::uint32_t slot = static_cast<std::uint32_t>(ionic::QueueType::RdmaAdmin) + input_.below(5);
        const auto value =
            rw::Doorbell::make(id(), static_cast<std::uint8_t>(input_.below(4)), input_.u16()).value();
        driver_.doorbell(input_.below(4), slot, value);
        run_some();
    }

    void change_machine() {
        switch (input_.u8() % 8U) {
            case 0:
                driver_.bring_up();
                break;
            case 1:
                driver_.probe_rdma();
                break;
            case 2:
                driver_.config_write16(4, input_.flag() ? 6 : 2);
                break;
            case 3: {
                w::Command reset{};
                reset.opcode =
                    static_cast<std::uint8_t>(input_.flag() ? w::Opcode::LifReset : w::Opcode::Reset);
                driver_.device_command(reset);
                break;
            }
            case 4:
                driver_.config_write16(0x68, 0x8000);  // function level reset
                break;
            default: {
                const auto region = static_cast<GuestRam::Id>(input_.below(GuestRam::kRegions));
                input_.flag() ? world_.ram().map(region) : world_.ram().unmap(region);
                break;
            }
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
