// SPDX-License-Identifier: MIT
// The Ethernet data path: transmit descriptors with scatter lists and TSO runs, receive descriptors, filters,
// RSS tables, and frames from the wire. The sink reads every byte it is handed, as a real one would.
#include <algorithm>
#include <array>
#include <vector>

#include "fuzz/driver.hpp"
#include "fuzz/world.hpp"
#include "ionic/profile.hpp"
#include "net/segmentation.hpp"
#include "wire/ionic_ethernet.hpp"

namespace ernic::fuzz {
namespace {

namespace w = wire::ionic;

constexpr std::uint32_t kPairs = 2;
constexpr std::uint8_t kSizeLog2 = 4;
constexpr std::uint32_t kMask = (1U << kSizeLog2) - 1;

/// Reads everything, so that a dangling or short span is seen, and checks what the interface promises.
class ReadingSink final : public net::FrameSink, private net::WireFrameSink {
  public:
    void transmit(const net::Frame& frame) override {
        (void)finisher_.finish(frame, *this);
        if (frame.segmentation) {
            std::array<std::byte, net::kMaxHeader> buffer;
            if (const auto packet = net::super_frame(frame, buffer)) {
                require(packet->header.size() + frame.data.bytes() <= 65535, "a packet fits its IP length");
                require(packet->checksum.start + packet->checksum.offset + 2U <= packet->header.size(),
                        "the checksum lies in the headers");
            }
        }
        std::size_t size = 0;
        for (const mem::SpanList::Piece& piece : frame.data) {
            for (std::size_t i = 0; i < piece.size; ++i) {
                sum_ += std::to_integer<unsigned>(piece.data[i]);
            }
            size += piece.size;
        }
        require(size == frame.data.bytes(), "a span list knows its size");
        if (frame.segmentation) {
            const auto& cut = *frame.segmentation;
            for (const std::byte byte : cut.header) {
                sum_ += std::to_integer<unsigned>(byte);
            }
            require(cut.segment_size != 0, "segments have a size");
            require(cut.header.size() >= 14 && cut.header.size() <= 256,
                    "segments have a header of sane size");
            require(size <= 65536 + 9212, "a part of a segmented packet is bounded");
            return;
        }
        require(size >= 14 && size <= 9212, "frames have a legal size");
        if (frame.checksum) {
            require(std::size_t{frame.checksum->start} + frame.checksum->offset + 2 <= size,
                    "a checksum lies in its frame");
        }
    }
    [[nodiscard]] std::uint64_t sum() const { return sum_; }

  private:
    void take(const net::WireFrame& frame) override {
        require(frame.size() >= 14 && frame.size() <= 65535, "finished frames have a sane size");
        for (const Bytes part : {frame.head, frame.tail}) {
            for (const std::byte byte : part) {
                sum_ += std::to_integer<unsigned>(byte);
            }
        }
    }

    net::FrameFinisher finisher_;
    std::uint64_t sum_ = 0;
};

class Target {
  public:
    explicit Target(Input input)
        : input_(input),
          world_({.sink = &sink_}),
          driver_({world_.ram(), world_.card(), [this] { world_.run_once(); },
                   [this](std::uint32_t offset, Bytes data) { world_.config_write(offset, data); }}) {}

    void run() {
        driver_.probe();
        for (std::uint32_t i = 0; i < kPairs; ++i) {
            create(w::LogicalQueue::Tx, i);
            create(w::LogicalQueue::Rx, i);
        }
        receive_mode(w::rx_mode::kPromiscuous | w::rx_mode::kUnicast | w::rx_mode::kMulticast |
                     w::rx_mode::kBroadcast);
        while (!input_.empty()) {
            operation();
        }
        world_.finish();
    }

  private:
    /// Ring, completions and scatter lists of a queue: three pages.
    static std::uint64_t pages(w::LogicalQueue type, std::uint32_t index) {
        return page::at(page::kFree + 3 * (2 * index + (type == w::LogicalQueue::Tx ? 0 : 1)));
    }

    void create(w::LogicalQueue type, std::uint32_t index) {
        const std::uint64_t base = pages(type, index);
        w::QueueInitCommand init{};
        init.opcode = static_cast<std::uint8_t>(w::Opcode::QueueInit);
        init.type = static_cast<std::uint8_t>(type);
        init.version = type == w::LogicalQueue::Tx ? 1 : 0;
        init.index.set(index);
        init.interrupt.set(static_cast<std::uint16_t>(1 + index));
        init.flags.set(w::queue_flag::kInterrupt | w::queue_flag::kEnable | w::queue_flag::kScatterGather);
        init.ring_size_log2 = kSizeLog2;
        init.ring_base.set(base);
        init.completion_ring_base.set(base + GuestRam::kPage);
        init.sg_ring_base.set(base + 2 * GuestRam::kPage);
        driver_.admin(init);
        producers_[static_cast<std::size_t>(type) - 2][index] = 0;
    }

    void operation() {
        const std::uint32_t queue = input_.below(kPairs);
        switch (input_.u8() % 16U) {
            case 0:
            case 1:
                transmit(queue);
                break;
            case 2:
            case 3:
                segmented(queue);
                break;
            case 4:
            case 5:
                post_receive(queue);
                break;
            case 6:
            case 7:
                frame_from_wire();
                break;
            case 8:
                ring(input_.flag() ? w::LogicalQueue::Tx : w::LogicalQueue::Rx, queue, input_.u16());
                break;
            case 9:
                filter();
                break;
            case 10:
                rss();
                break;
            case 11:
                receive_mode(input_.u8());
                break;
            case 12:
                control(queue);
                break;
            case 13:
                world_.ram().store(GuestRam::address(input_), input_.bytes(input_.u8()));
                break;
            case 14: {
                const auto region = static_cast<GuestRam::Id>(input_.below(GuestRam::kRegions));
                world_.ram().mapped(region) ? world_.ram().unmap(region) : world_.ram().map(region);
                break;
            }
            default:
                other();
                break;
        }
    }

    void other() {
        switch (input_.u8() % 6U) {
            case 0:
                world_.advance(input_.u32());
                break;
            case 1:
                create(input_.flag() ? w::LogicalQueue::Tx : w::LogicalQueue::Rx, input_.below(kPairs));
                break;
            case 2:
                world_.card().set_link(input_.flag());
                break;
            case 3:
                driver_.config_write16(4, input_.flag() ? 6 : 2);
                break;
            case 4: {
                auto features = input_.value<w::LifAttributeCommand>();
                features.opcode = static_cast<std::uint8_t>(w::Opcode::LifSetAttribute);
                features.attribute = static_cast<std::uint8_t>(w::LifAttribute::Features);
                features.index.set(0);
                driver_.admin(features);
                break;
            }
            default:
                world_.run_once();
                break;
        }
    }

    std::uint64_t buffer() {
        return input_.u8() % 4U == 0 ? GuestRam::address(input_)
                                     : page::at(page::kFree + 40 + input_.below(32)) + input_.u8();
    }
    std::uint16_t length() { return input_.u8() % 8U == 0 ? input_.u16() : input_.u8(); }

    void ring(w::LogicalQueue type, std::uint32_t queue, std::uint16_t index) {
        const auto slot = type == w::LogicalQueue::Tx ? ionic::QueueType::Tx : ionic::QueueType::Rx;
        driver_.doorbell(0, static_cast<std::uint32_t>(slot), w::Doorbell::make(queue, 0, index).value());
    }

    std::uint32_t& producer(w::LogicalQueue type, std::uint32_t queue) {
        return producers_[static_cast<std::size_t>(type) - 2][queue];
    }

    void put_transmit(std::uint32_t queue, const w::TxDescriptor& descriptor) {
        const std::uint64_t base = pages(w::LogicalQueue::Tx, queue);
        const std::uint32_t slot = producer(w::LogicalQueue::Tx, queue)++ & kMask;
        world_.ram().put(base + slot * sizeof descriptor, descriptor);
        for (std::uint32_t i = 0; i < descriptor.sg_elements(); ++i) {
            const w::TxSgElement element{le64(buffer()), le16(length()), {}};
            world_.ram().put(base + 2 * GuestRam::kPage + slot * w::kTxSgStride + i * sizeof element,
                             element);
        }
    }
    void ring_transmit(std::uint32_t queue) {
        ring(w::LogicalQueue::Tx, queue,
             static_cast<std::uint16_t>(producer(w::LogicalQueue::Tx, queue) & kMask));
        world_.run_once();
    }

    void transmit(std::uint32_t queue) {
        w::TxDescriptor descriptor{};
        const std::uint8_t count = input_.flag() ? 0 : static_cast<std::uint8_t>(input_.below(16));
        descriptor.command.set(w::TxDescriptor::make_command(static_cast<w::TxOpcode>(input_.u8() % 5U),
                                                             static_cast<std::uint8_t>(input_.u8() & 0xfU),
                                                             count, buffer()));
        descriptor.length.set(length());
        descriptor.vlan_tci.set(input_.u16());
        descriptor.start_or_header.set(length());
        descriptor.offset_or_mss.set(length());
        put_transmit(queue, descriptor);
        ring_transmit(queue);
    }

    /// A TSO run of a few descriptors, often with one of them wrong.
    void segmented(std::uint32_t queue) {
        const std::uint32_t count = 1 + input_.below(12);
        const auto header = static_cast<std::uint16_t>(14 + input_.below(80));
        const auto segment = static_cast<std::uint16_t>(1 + input_.below(1500));
        const std::uint8_t odd = input_.u8();
        for (std::uint32_t i = 0; i < count; ++i) {
            w::TxDescriptor descriptor{};
            auto flags = static_cast<std::uint8_t>((i == 0 ? w::kTxFlagTsoStart : 0) |
                                                   (i + 1 == count ? w::kTxFlagTsoEnd : 0));
            std::uint16_t size = i == 0 ? static_cast<std::uint16_t>(header + segment) : segment;
            if (odd % 16U == i) {
                flags ^= static_cast<std::uint8_t>(input_.u8() & 0xfU);
                size = length();
            }
            const bool scattered = odd >= 0xe0;
            descriptor.command.set(w::TxDescriptor::make_command(
                w::TxOpcode::Tso, flags, scattered ? static_cast<std::uint8_t>(input_.below(4)) : 0,
                buffer()));
            descriptor.length.set(size);
            descriptor.start_or_header.set(header);
            descriptor.offset_or_mss.set(segment);
            put_transmit(queue, descriptor);
            if (input_.u8() >= 0xe0) {
                ring_transmit(queue);  // the run is cut between two doorbells
            }
        }
        ring_transmit(queue);
    }

    void post_receive(std::uint32_t queue) {
        const std::uint64_t base = pages(w::LogicalQueue::Rx, queue);
        const std::uint32_t slot = producer(w::LogicalQueue::Rx, queue)++ & kMask;
        w::RxDescriptor descriptor{};
        descriptor.opcode = static_cast<std::uint8_t>(input_.u8() % 3U);
        descriptor.length.set(length());
        descriptor.address.set(buffer());
        world_.ram().put(base + slot * sizeof descriptor, descriptor);
        for (std::uint32_t i = 0; i < input_.below(9); ++i) {
            const w::RxSgElement element{le64(buffer()), le16(length()), {}};
            world_.ram().put(base + 2 * GuestRam::kPage + slot * w::kRxSgStride + i * sizeof element,
                             element);
        }
        ring(w::LogicalQueue::Rx, queue,
             static_cast<std::uint16_t>(producer(w::LogicalQueue::Rx, queue) & kMask));
    }

    void frame_from_wire() {
        std::vector<std::byte> frame(input_.u8() % 8U == 0 ? input_.u16() : input_.u8());
        const Bytes own = input_.bytes(std::min<std::size_t>(frame.size(), 80));
        std::copy(own.begin(), own.end(), frame.begin());
        if (frame.size() >= 14 && input_.flag()) {  // to us, and of a type that is looked into
            std::memcpy(frame.data(), kCardMac.bytes.data(), 6);
            constexpr std::array<std::uint16_t, 3> kTypes = {0x0800, 0x86dd, 0x8100};
            const be16 type(input_.pick(kTypes));
            std::memcpy(frame.data() + 12, &type, sizeof type);
        }
        if (input_.flag()) {
            world_.card().receive(frame);
        } else {
            unfinished_from_wire(frame);
        }
    }

    /// With work that the sender left to us, which may make sense or not.
    void unfinished_from_wire(std::vector<std::byte>& bytes) {
        const std::size_t header = std::min<std::size_t>(input_.u8(), bytes.size());
        const bool segmented = input_.flag();
        mem::SpanList data;
        const std::size_t from = segmented ? header : 0;
        const std::size_t border = from + input_.below(static_cast<std::uint32_t>(bytes.size() - from + 1));
        data.add(bytes.data() + from, border - from);
        data.add(bytes.data() + border, bytes.size() - border);
        net::Frame frame{.data = data, .insert_vlan = {}, .checksum = {}, .segmentation = {}};
        if (input_.flag()) {
            frame.insert_vlan = input_.u16();
        }
        if (segmented) {
            frame.segmentation = net::Frame::Segmentation{.header = Bytes(bytes).first(header),
                                                          .segment_size = input_.u16(),
                                                          .first_segment = input_.u16(),
                                                          .last = input_.flag()};
        } else if (input_.flag()) {
            frame.checksum = {input_.u8(), input_.u8()};
        } else {
            frame.checksum_valid = input_.flag();
        }
        world_.card().receiver().transmit(frame);
    }

    void receive_mode(std::uint16_t mode) {
        w::RxModeSetCommand command{};
        command.opcode = static_cast<std::uint8_t>(w::Opcode::RxModeSet);
        command.rx_mode.set(mode);
        driver_.admin(command);
    }

    void filter() {
        if (input_.u8() % 4U == 0) {
            w::RxFilterDeleteCommand command{};
            command.opcode = static_cast<std::uint8_t>(w::Opcode::RxFilterDelete);
            command.filter_id.set(input_.below(32));
            driver_.admin(command);
            return;
        }
        auto command = input_.value<w::RxFilterAddCommand>();
        command.opcode = static_cast<std::uint8_t>(w::Opcode::RxFilterAdd);
        command.lif_index.set(0);
        command.match.set(input_.u8() % 4U);
        driver_.admin(command);
    }

    void rss() {
        const std::uint64_t table = input_.u8() % 4U == 0 ? GuestRam::address(input_) : page::kTables;
        std::vector<std::byte> entries(128);
        const Bytes own = input_.bytes(16);
        std::copy(own.begin(), own.end(), entries.begin());
        world_.ram().store(table, entries);
        w::RssAttribute attribute{};
        attribute.types.set(input_.u16());
        attribute.key.fill(input_.u8());
        attribute.table_address.set(table);
        w::LifAttributeCommand command{};
        command.opcode = static_cast<std::uint8_t>(w::Opcode::LifSetAttribute);
        command.attribute = static_cast<std::uint8_t>(w::LifAttribute::Rss);
        std::memcpy(command.value.data(), &attribute, sizeof attribute);
        driver_.admin(command);
    }

    void control(std::uint32_t queue) {
        w::QueueControlCommand command{};
        command.opcode = static_cast<std::uint8_t>(w::Opcode::QueueControl);
        command.type = static_cast<std::uint8_t>(2 + input_.below(2));
        command.index.set(queue);
        command.operation = static_cast<std::uint8_t>(input_.below(4));
        driver_.admin(command);
    }

    Input input_;
    ReadingSink sink_;
    World world_;
    Driver driver_;
    std::array<std::array<std::uint32_t, kPairs>, 2> producers_{};
};

}  // namespace
}  // namespace ernic::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    ernic::fuzz::Target(ernic::fuzz::Input(data, size)).run();
    return 0;
}
