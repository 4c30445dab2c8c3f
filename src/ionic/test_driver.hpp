// SPDX-License-Identifier: MIT
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ionic/card.hpp"
#include "wire/ionic_ethernet.hpp"
#include "wire/pci.hpp"

/// For unit tests only: a machine made of one buffer, and the stock driver in miniature.
namespace ernic::ionic::test {

namespace w = wire::ionic;

/// RAM at kBase, and a record of the interrupts that arrived.
class FakeHost final : public pci::Host {
  public:
    static constexpr std::uint64_t kBase = 0x1'0000'0000;
    static constexpr std::size_t kSize = std::size_t{4} << 20U;

    FakeHost() : ram_(kSize) { publish(); }

    void publish() { memory_.publish({{*Range::make(kBase, kSize), ram_.data(), true, true}}); }

    mem::GuestMemory& memory() override { return memory_; }
    bool send_msix(std::uint16_t vector) override {
        ++interrupts[vector];
        return true;
    }

    /// Page-aligned zeroed memory; returns its bus address.
    std::uint64_t allocate(std::size_t size) {
        const std::size_t at = next_;
        next_ += (size + 4095) / 4096 * 4096;
        EXPECT_LE(next_, kSize);
        return kBase + at;
    }
    template <WireValue T>
    T load(std::uint64_t address) const {
        return *read_value<T>(Bytes(ram_).subspan(address - kBase));
    }
    template <WireValue T>
    void store(std::uint64_t address, const T& value) {
        std::memcpy(ram_.data() + (address - kBase), &value, sizeof value);
    }
    MutableBytes bytes(std::uint64_t address, std::size_t size) {
        return MutableBytes(ram_).subspan(address - kBase, size);
    }

    std::map<std::uint16_t, int> interrupts;

  private:
    std::vector<std::byte> ram_;
    std::size_t next_ = 4096;
    mem::GuestMemory memory_;
};

/// A ring pair as the driver sees it.
struct TestQueue {
    std::uint64_t ring = 0;
    std::uint64_t completions = 0;
    std::uint64_t sg = 0;
    std::uint32_t size = 0;
    std::uint8_t hw_type = 0;
    std::uint32_t hw_index = 0;
    std::uint32_t producer = 0;
    std::uint32_t consumer = 0;
    bool color = true;
};

/// Does what `ionic` 7.2 does at probe, open, close and remove (device reference, section 20), and checks the
/// answers.
class TestDriver {
  public:
    TestDriver(Card& card, FakeHost& host) : card_(card), host_(host) {}

    // Registers.
    template <WireValue T>
    T read(std::uint64_t offset) {
        T value;
        card_.bar_read(0, offset, mutable_bytes_of(value));
        return value;
    }
    template <WireValue T>
    void write(std::uint64_t offset, const T& value) {
        card_.bar_write(0, offset, bytes_of(value));
    }
    std::uint32_t read32(std::uint64_t offset) { return read<le32>(offset).get(); }
    void write32(std::uint64_t offset, std::uint32_t value) { write(offset, le32(value)); }
    void write_config16(std::uint32_t offset, std::uint16_t value) {
        const le16 raw(value);
        card_.config_write(offset, bytes_of(raw));
    }

    static constexpr std::uint64_t vector_register(std::uint16_t vector, std::uint32_t offset) {
        return w::kInterruptControlOffset + 32U * vector + offset;
    }
    static constexpr std::uint32_t kMask = 4;
    static constexpr std::uint32_t kCredits = 8;
    static constexpr std::uint32_t kMaskOnAssert = 12;

    // Device commands.
    template <WireValue T>
    w::Completion command(const T& raw) {
        static_assert(sizeof(T) == w::kCommandSize);
        write(w::kDeviceCommandOffset + 8, raw);
        write32(w::kDeviceCommandOffset + 4, 0);
        write32(w::kDeviceCommandOffset, 1);
        EXPECT_EQ(read32(w::kDeviceCommandOffset + 4), 1U);
        const auto status = read<std::uint8_t>(w::kDeviceCommandOffset + 0x48);
        if (status == 0) {  // the driver cleans up before it looks at the results
            write32(w::kDeviceCommandOffset, 0);
            write(w::kDeviceCommandOffset + 8, std::array<std::byte, w::kCommandSize>{});
        }
        return read<w::Completion>(w::kDeviceCommandOffset + 0x48);
    }
    w::Completion command(w::Opcode opcode) {
        w::Command raw{};
        raw.opcode = static_cast<std::uint8_t>(opcode);
        return command(raw);
    }
    template <WireValue T>
    T result() {
        static_assert(sizeof(T) == w::kCommandDataSize);
        return read<T>(w::kDeviceCommandOffset + 0x88);
    }

    // Queues.
    TestQueue allocate_queue(std::uint8_t size_log2, std::size_t descriptor, std::size_t sg_stride) {
        TestQueue queue;
        queue.size = 1U << size_log2;
        queue.ring = host_.allocate(queue.size * descriptor);
        queue.completions = host_.allocate(queue.size * w::kCompletionSize);
        queue.sg = sg_stride != 0 ? host_.allocate(queue.size * sg_stride) : 0;
        return queue;
    }
    static w::QueueInitCommand queue_init(const TestQueue& queue, w::LogicalQueue type, std::uint32_t index,
                                          std::uint16_t vector, std::uint16_t flags) {
        w::QueueInitCommand init{};
        init.opcode = static_cast<std::uint8_t>(w::Opcode::QueueInit);
        init.type = static_cast<std::uint8_t>(type);
        init.version = type == w::LogicalQueue::Tx ? 1 : 0;
        init.index.set(index);
        init.interrupt.set(vector);
        init.flags.set(flags);
        init.ring_size_log2 = static_cast<std::uint8_t>(std::countr_zero(queue.size));
        init.ring_base.set(queue.ring);
        init.completion_ring_base.set(queue.completions);
        init.sg_ring_base.set(queue.sg);
        return init;
    }
    static void remember(TestQueue& queue, const w::Completion& completion) {
        const auto answer = std::bit_cast<w::QueueInitCompletion>(completion);
        queue.hw_type = answer.hw_type;
        queue.hw_index = answer.hw_index.get();
    }
    void ring(const TestQueue& queue, std::uint32_t page = 0) {
        const le64 value(
            w::Doorbell::make(queue.hw_index, 0, static_cast<std::uint16_t>(queue.producer)).value());
        card_.bar_write(2, page * 4096U + queue.hw_type * 8U, bytes_of(value));
    }
    template <WireValue T>
    void post(TestQueue& queue, const T& descriptor) {
        host_.store(queue.ring + queue.producer * sizeof(T), descriptor);
        queue.producer = (queue.producer + 1) % queue.size;
    }
    /// The next completion, if its colour says that it is new.
    template <WireValue T = w::Completion>
    std::optional<T> poll(TestQueue& queue) {
        const auto entry = host_.load<w::Completion>(queue.completions + queue.consumer * w::kCompletionSize);
        if (((entry.color & w::kColor) != 0) != queue.color) {
            return std::nullopt;
        }
        queue.consumer = (queue.consumer + 1) % queue.size;
        queue.color = queue.consumer == 0 ? !queue.color : queue.color;
        return std::bit_cast<T>(entry);
    }
    void run() {
        while (card_.step()) {
        }
    }

    /// One admin command the way the driver does it: post, ring, wait for the interrupt, poll, return the
    /// credits.
    template <WireValue T>
    w::Completion admin(const T& raw) {
        static_assert(sizeof(T) == w::kCommandSize);
        const int before = host_.interrupts[0];
        const std::uint32_t slot = admin_queue.producer;
        post(admin_queue, raw);
        ring(admin_queue);
        run();
        EXPECT_GT(host_.interrupts[0], before) << "no interrupt for an admin completion";
        const auto completion = poll(admin_queue);
        EXPECT_TRUE(completion.has_value());
        EXPECT_EQ(completion ? completion->comp_index.get() : -1, static_cast<int>(slot));
        return_admin_credits(1);
        return completion.value_or(w::Completion{});
    }
    /// Consumes `events` notify events.
    void return_admin_credits(std::uint32_t events) {
        write32(vector_register(0, kCredits), events | w::kCreditsUnmask | w::kCreditsResetCoalesce);
    }
    w::Completion set_lif(w::LifAttribute attribute, Bytes value = {}) {
        w::LifAttributeCommand raw{};
        raw.opcode = static_cast<std::uint8_t>(w::Opcode::LifSetAttribute);
        raw.attribute = static_cast<std::uint8_t>(attribute);
        std::copy(value.begin(), value.end(), raw.value.begin());
        return admin(raw);
    }
    w::Completion get_lif(w::LifAttribute attribute) {
        w::LifAttributeCommand raw{};
        raw.opcode = static_cast<std::uint8_t>(w::Opcode::LifGetAttribute);
        raw.attribute = static_cast<std::uint8_t>(attribute);
        return admin(raw);
    }
    w::Completion add_mac_filter(const wire::MacAddress& mac) {
        w::RxFilterAddCommand raw{};
        raw.opcode = static_cast<std::uint8_t>(w::Opcode::RxFilterAdd);
        raw.match.set(static_cast<std::uint16_t>(w::RxFilterMatch::Mac));
        std::memcpy(raw.body.data(), mac.bytes.data(), 6);
        return admin(raw);
    }
    w::Completion set_rx_mode(std::uint16_t mode) {
        w::RxModeSetCommand raw{};
        raw.opcode = static_cast<std::uint8_t>(w::Opcode::RxModeSet);
        raw.rx_mode.set(mode);
        return admin(raw);
    }
    w::Completion control(w::LogicalQueue type, std::uint32_t index, w::QueueOperation operation) {
        w::QueueControlCommand raw{};
        raw.opcode = static_cast<std::uint8_t>(w::Opcode::QueueControl);
        raw.type = static_cast<std::uint8_t>(type);
        raw.index.set(index);
        raw.operation = static_cast<std::uint8_t>(operation);
        return admin(raw);
    }
    void set_features(std::uint64_t wanted) {
        const le64 raw(wanted);
        const auto answer = set_lif(w::LifAttribute::Features, bytes_of(raw));
        EXPECT_EQ(answer.status, 0);
        granted_features = read_value<le64>(answer.body)->get();
    }

    // Sequences.
    void probe();
    void open(std::uint32_t pairs, std::uint8_t size_log2 = 6);
    void fill_rx(TestQueue& queue, std::uint32_t count, std::uint16_t size);

    std::uint64_t lif_info = 0;
    std::uint64_t port_info = 0;
    std::uint64_t rss_table = 0;
    std::uint64_t notify_ring = 0;
    std::uint64_t granted_features = 0;
    wire::MacAddress mac{};
    TestQueue admin_queue;
    std::vector<TestQueue> rx;
    std::vector<TestQueue> tx;

    static constexpr std::uint64_t kWantedFeatures = 0x1FFBF;
    static constexpr std::uint16_t kCommandOffset = 4;
    /// COMMAND: memory, bus master.
    static constexpr std::uint16_t kMemoryAndMaster = 0x0006;

  private:
    void init_vectors(std::uint16_t vector);

    Card& card_;
    FakeHost& host_;
};

inline void TestDriver::init_vectors(std::uint16_t vector) {
    const std::uint32_t left = read32(vector_register(vector, kCredits));
    write32(vector_register(vector, kCredits), left | w::kCreditsResetCoalesce);
    write32(vector_register(vector, kMaskOnAssert), 1);
}

inline void TestDriver::probe() {
    // Device reference, section 20.1; RESET comes before bus mastering.
    EXPECT_EQ(read32(0), w::kSignature);
    EXPECT_EQ(read<std::uint8_t>(7) & w::kFirmwareRunning, w::kFirmwareRunning);
    EXPECT_EQ(command(w::Opcode::Reset).status, 0);
    write_config16(kCommandOffset, kMemoryAndMaster);
    write_config16(pci::ConfigSpace::kMsix + 2, wire::pci::kMsixEnable);

    EXPECT_EQ(command(w::Opcode::Identify).status, 0);
    EXPECT_EQ(command(w::Opcode::LifIdentify).status, 0);
    EXPECT_EQ(command(w::Opcode::Init).status, 0);
    EXPECT_EQ(command(w::Opcode::PortIdentify).status, 0);
    const auto port = result<w::PortIdentity>();
    write(w::kDeviceCommandOffset + 0x88, port.config);
    if (port_info == 0) {
        port_info = host_.allocate(sizeof(w::PortInfo));
        lif_info = host_.allocate(sizeof(w::LifInfo));
        rss_table = host_.allocate(128);
    }
    w::PortInitCommand port_init{};
    port_init.opcode = static_cast<std::uint8_t>(w::Opcode::PortInit);
    port_init.info_address.set(port_info);
    EXPECT_EQ(command(port_init).status, 0);
    w::PortSetAttributeCommand state{};
    state.opcode = static_cast<std::uint8_t>(w::Opcode::PortSetAttribute);
    state.attribute = static_cast<std::uint8_t>(w::PortAttribute::State);
    state.value.set(static_cast<std::uint32_t>(w::PortState::Up));
    EXPECT_EQ(command(state).status, 0);

    EXPECT_EQ(command(w::Opcode::LifIdentify).status, 0);
    init_vectors(0);
    w::LifInitCommand lif_init{};
    lif_init.opcode = static_cast<std::uint8_t>(w::Opcode::LifInit);
    lif_init.info_address.set(lif_info);
    EXPECT_EQ(command(lif_init).status, 0);
    admin_queue = allocate_queue(4, w::kCommandSize, 0);
    const std::uint16_t on = w::queue_flag::kInterrupt | w::queue_flag::kEnable;
    const auto answer = command(queue_init(admin_queue, w::LogicalQueue::Admin, 0, 0, on));
    EXPECT_EQ(answer.status, 0);
    remember(admin_queue, answer);
    write32(vector_register(0, kMask), 0);

    TestQueue notify = allocate_queue(6, sizeof(le32), 0);
    notify.ring = notify_ring = host_.allocate(2 * 4096);
    notify.completions = 0;
    EXPECT_EQ(admin(queue_init(notify, w::LogicalQueue::Notify, 0, 0, on)).status, 0);
    set_features(kWantedFeatures);
    const auto got = get_lif(w::LifAttribute::Mac);
    EXPECT_EQ(got.status, 0);
    std::memcpy(mac.bytes.data(), got.body.data(), 6);
    EXPECT_EQ(add_mac_filter(mac).status, 0);
}

inline void TestDriver::fill_rx(TestQueue& queue, std::uint32_t count, std::uint16_t size) {
    const std::uint64_t buffers = host_.allocate(std::size_t{count} * size);
    for (std::uint32_t i = 0; i < count; ++i) {
        w::RxDescriptor descriptor{};
        descriptor.length.set(size);
        descriptor.address.set(buffers + std::uint64_t{i} * size);
        post(queue, descriptor);
    }
    ring(queue);
}

inline void TestDriver::open(std::uint32_t pairs, std::uint8_t size_log2) {
    // Device reference, section 20.2: the RX ring is filled and rung before it is enabled.
    const std::uint16_t flags = w::queue_flag::kInterrupt | w::queue_flag::kScatterGather;
    tx.clear();
    rx.clear();
    for (std::uint32_t i = 0; i < pairs; ++i) {
        const auto vector = static_cast<std::uint16_t>(i + 1);
        init_vectors(vector);
        tx.push_back(allocate_queue(size_log2, sizeof(w::TxDescriptor), w::kTxSgStride));
        rx.push_back(allocate_queue(size_log2, sizeof(w::RxDescriptor), w::kRxSgStride));
        const auto tx_answer = admin(queue_init(tx[i], w::LogicalQueue::Tx, i, vector, flags));
        const auto rx_answer = admin(queue_init(rx[i], w::LogicalQueue::Rx, i, vector, flags));
        EXPECT_EQ(tx_answer.status, 0);
        EXPECT_EQ(rx_answer.status, 0);
        remember(tx[i], tx_answer);
        remember(rx[i], rx_answer);
    }
    EXPECT_EQ(set_rx_mode(w::rx_mode::kUnicast | w::rx_mode::kMulticast | w::rx_mode::kBroadcast).status, 0);
    for (std::uint32_t i = 0; i < pairs; ++i) {
        fill_rx(rx[i], rx[i].size - 1, 1518);
        EXPECT_EQ(control(w::LogicalQueue::Rx, i, w::QueueOperation::Enable).status, 0);
        write32(vector_register(static_cast<std::uint16_t>(i + 1), kMask), 0);
        EXPECT_EQ(control(w::LogicalQueue::Tx, i, w::QueueOperation::Enable).status, 0);
    }
}

/// A card in a machine, its driver not yet loaded.
class CardTest : public ::testing::Test {
  protected:
    static constexpr wire::MacAddress kMac{{0x02, 0x11, 0x22, 0x33, 0x44, 0x55}};

    explicit CardTest(net::FrameSink* sink = nullptr) : card(options(sink), host, loop, registry, log) {}

    static Card::Options options(net::FrameSink* sink) {
        Card::Options made;
        made.mac = kMac;
        made.sink = sink;
        return made;
    }
    /// A value of the registry by its name.
    std::uint64_t metric(const std::string& name) const {
        for (const auto& number : registry.numbers()) {
            if (number.description.name == name) {
                return number.read();
            }
        }
        ADD_FAILURE() << "no metric " << name;
        return 0;
    }
    void advance(Nanoseconds time) {
        clock.advance(time);
        loop.run_once(false);
    }

    FakeClock clock;
    EventLoop loop{clock};
    FakeHost host;
    metrics::Registry registry;
    log::Logger log{log::null_sink(), "test"};
    Card card;
    TestDriver driver{card, host};
};

}  // namespace ernic::ionic::test
