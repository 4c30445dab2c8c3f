// SPDX-License-Identifier: MIT
#include "fuzz/world.hpp"

#include <ctime>

#include "rdma/limits.hpp"

namespace ernic::fuzz {
namespace {

/// Admin commands of one step: four queues with four each.
constexpr std::uint64_t kCommandsPerStep = 16;
/// The last fragment of a step may start just before the budget is spent.
constexpr std::uint64_t kMostBytesPerStep = rdma::kBytesPerStep + rdma::kFragment;
constexpr int kSettleRounds = 256;
constexpr int kRoundsPerProgressCheck = 64;

}  // namespace

Nanoseconds cpu_time() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<Nanoseconds>(time.tv_sec) * 1'000'000'000U + static_cast<Nanoseconds>(time.tv_nsec);
}

ionic::Profile small_profile() {
    ionic::Profile profile;
    profile.tx_queues = 4;
    profile.rx_queues = 4;
    profile.interrupts = 8;
    profile.doorbell_pages = 8;
    profile.max_mac_filters = 8;
    profile.max_vlan_filters = 8;
    profile.rdma.page_table_entries = 4096;
    profile.rdma.memory_regions = 64;
    profile.rdma.address_handles = 16;
    profile.rdma.queue_pairs = 64;
    profile.rdma.completion_queues = 64;
    profile.rdma.event_queues = 4;
    return profile;
}

Device::Device(const Options& options, pci::Host& host, EventLoop& loop, metrics::Registry& registry)
    : sink_(log::null_sink()),
      segment_(options.mode),
      card_({.mac = kCardMac, .profile = small_profile(), .sink = options.sink}, host, loop, registry,
            log::Logger(sink_, "fuzz")) {
    sink_->set_level(options.log_level);
    auto rdma = std::make_unique<ionic::RdmaCard>(card_.profile().rdma, kCardMac, host, card_.interrupts(),
                                                  loop, segment_, registry, log::Logger(sink_, "fuzz"));
    rdma_ = rdma.get();
    card_.attach_rdma(std::move(rdma));
    card_.set_link(true);
    segment_.register_metrics(registry);
}

bool Device::step() {
    const rdma::EngineCounters& engine = rdma_->engine().counters();
    const ionic::RdmaCounters& objects = rdma_->objects().counters();
    const std::uint64_t requests = engine.requests_started.value();
    const std::uint64_t bytes = engine.rx_bytes.value();
    const std::uint64_t commands = objects.admin_commands.value();
    const Nanoseconds begin = cpu_time();
    const bool more = card_.step();
    require(cpu_time() - begin < kLongestStep, "a step is short");
    require(engine.requests_started.value() - requests <= rdma::kRequestsPerStep,
            "a step runs few work requests");
    require(engine.rx_bytes.value() - bytes <= kMostBytesPerStep, "a step moves few bytes");
    require(objects.admin_commands.value() - commands <= kCommandsPerStep, "a step runs few admin commands");
    return more;
}

void Device::check_reset() {
    card_.reset();
    require(rdma_->engine().queue_pairs() == 0, "a reset destroys the queue pairs");
    require(rdma_->engine().memory_table().count() == 0, "a reset destroys the memory regions");
    require(rdma_->engine().memory_table().page_entries_used() == 0, "a reset gives page tables back");
    require(!step(), "a reset ends all work");
}

World::World(const Device::Options& options) : loop_(clock_), device_(options, *this, loop_, registry_) {
    loop_.set_worker([this] { return work_left_ = device_.step(); });
}

void World::run_once() {
    const Nanoseconds begin = cpu_time();
    loop_.run_once(false);
    require(cpu_time() - begin < kLongestStep, "a round of the loop is short");
}

void World::advance(Nanoseconds by) {
    clock_.advance(by);
    run_once();
}

std::uint64_t World::progress() const {
    std::uint64_t sum = 0;
    for (const auto& number : registry_.numbers()) {
        sum += number.read();
    }
    return sum;
}

void World::settle() {
    std::uint64_t before = 0;
    for (int round = 1; round <= kSettleRounds; ++round) {
        run_once();
        if (!work_left_) {
            return;
        }
        if (round % kRoundsPerProgressCheck == 0) {
            const std::uint64_t now = progress();
            require(now != before, "work that is left makes progress");
            before = now;
        }
    }
}

void World::finish() {
    settle();
    // Every local ACK timeout but the longest, and every RNR timer, several times over.
    constexpr std::array<Nanoseconds, 4> kPauses = {100'000, 100'000'000, 10'000'000'000, 10'000'000'000'000};
    for (const Nanoseconds pause : kPauses) {
        advance(pause);
        settle();
    }
    ram_.expect_access();
    device_.check_reset();
    require(!ram_.memory().enabled(), "a reset switches bus mastering off");
    ram_.follow_bus_master();
    // Nobody may touch memory any more, timers included.
    advance(10'000'000'000'000);
    require(!work_left_, "nothing happens after a reset");
    ram_.check_read_only();
}

void World::config_write(std::uint32_t offset, Bytes data) {
    ram_.expect_access();
    card().config_write(offset, data);
    ram_.follow_bus_master();
}

bool World::send_msix(std::uint16_t vector) {
    require(vector < card().msix_vectors(), "interrupts stay inside the MSI-X table");
    ++interrupts_;
    return true;
}

}  // namespace ernic::fuzz
