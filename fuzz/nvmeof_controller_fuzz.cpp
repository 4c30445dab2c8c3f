// SPDX-License-Identifier: MIT
// A host that talks to an NVMe over Fabrics target without RDMA between them: capsules of any content,
// Connect data, SGLs, log pages, features, long commands, namespaces that come and go, time; over two paths,
// and with authentication. Every command is answered at most once, who has proved nothing gets nothing, and
// when all connections have ended nothing of them remains.
#include <array>
#include <fstream>
#include <memory>
#include <string_view>
#include <vector>

#include "fuzz/input.hpp"
#include "fuzz/socket_folder.hpp"
#include "nvmeof/fake_host.hpp"
#include "nvmeof/target.hpp"

namespace ernic::fuzz {
namespace {

namespace nvme = wire::nvme;
using namespace nvmeof;  // NOLINT(google-build-using-namespace): every name here is one of its
using nvme::SglDescriptor;
using nvme::SubmissionEntry;
using test::FakeChannel;
using test::kHostBase;
using test::kKey;

constexpr std::uint16_t kQueues = 4;
constexpr std::uint32_t kBlocks = 2048;
constexpr Nanoseconds kMillisecond = 1'000'000;

constexpr const char* kSecret = "DHHC-1:01:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";
constexpr std::uint16_t kTransaction = 77;

/// The secrets of the one host there is, in a file.
const std::string& secrets() {
    static const std::string path = [] {
        std::string name = socket_path() + "ecrets";
        std::ofstream(name) << "host " << kSecret << ' ' << kSecret << '\n';
        return name;
    }();
    return path;
}

/// Who may connect: anybody who gives the right name, or only who proves to be it, by whichever group.
enum class Trust : std::uint8_t { ByName, BySecret, ByGroup };

/// The end of the input says, so that its beginning means the same in each case.
Trust trust_of(const std::uint8_t* data, std::size_t size) {
    const unsigned last = size == 0 ? 0 : data[size - 1] % 16U;
    return last == 1 ? Trust::ByGroup : last == 2 || last == 3 ? Trust::BySecret : Trust::ByName;
}

TargetConfig config(Trust trust) {
    TargetConfig made;
    if (trust != Trust::ByName) {
        made.auth_file = secrets();
        made.auth_group = trust == Trust::ByGroup ? 1 : 0;
    }
    made.namespaces = {{1, kBlocks * 512, 512, "", false, false},
                       {2, kBlocks * 512, 4096, "", false, false},
                       {5, kBlocks * 512, 512, "", true, false}};
    made.hosts = {"host"};
    made.queues = kQueues - 1;
    made.max_transfer = 128U << 10U;
    made.faults = {{0x281, false, 7, 0x02, 100, 200}};
    made.latency = kMillisecond;
    return made;
}

/// One connection, and which of its slots are in use.
struct Connection {
    explicit Connection(test::HostRam& ram) : channel(ram) {}
    FakeChannel channel;
    std::vector<std::vector<std::byte>> capsules;
    std::vector<bool> in_use;
};

class World {
  public:
    World(Input input, Trust trust) : input_(input), trust_(trust) {
        const TargetConfig wanted = config(trust);
        auto made = Target::make(wanted, runtime_, directory_);
        require(made.ok(), "the target can be made");
        target_ = std::move(*made);
        path_ = Target::make_path(wanted, *target_, runtime_, directory_);
    }

    void run() {
        while (!input_.empty()) {
            switch (input_.u8() % 12U) {
                case 0:
                    open();
                    break;
                case 1:
                    connect();
                    break;
                case 2:
                    bring_up();
                    break;
                case 3:
                    property();
                    break;
                case 4:
                    send(input_.value<SubmissionEntry>(), input_.bytes(input_.below(200)));
                    break;
                case 5:
                case 6:
                    admin();
                    break;
                case 7:
                case 8:
                    io();
                    break;
                case 9:
                    clock_.advance(input_.u8() * 100 * kMillisecond);
                    loop_.run_once(false);
                    break;
                case 10:
                    change();
                    break;
                default:
                    settle();
                    break;
            }
            if (input_.flag()) {
                step();
            }
        }
        finish();
    }

  private:
    void open() {
        const auto id = static_cast<std::uint16_t>(input_.below(kQueues + 1));
        const std::uint16_t entries = input_.u16() % 300;
        open(id, entries, entries % 8U == 5 ? *path_ : *target_);
    }
    void open(std::uint16_t id, std::uint16_t entries, Target& target) {
        const QueueRequest request{id, entries, entries, 0, {}};
        const auto grant = target.consider(request);
        const std::size_t place = id % kQueues;
        if (!grant || connections_[place] != nullptr) {
            return;
        }
        auto connection = std::make_unique<Connection>(ram_);
        connection->capsules.resize(grant->entries);
        connection->in_use.resize(grant->entries);
        for (std::uint16_t slot = 0; slot < grant->entries; ++slot) {
            connection->channel.free_slots.push_back(slot);
        }
        connection->channel.handler = &target.accepted(request, connection->channel);
        connections_[place] = std::move(connection);
    }

    /// A connected queue, if the bytes have chosen one.
    Connection* some() { return connections_[input_.below(kQueues)].get(); }

    void send(const SubmissionEntry& entry, Bytes data) { send(some(), entry, data); }
    void send(Connection* connection, const SubmissionEntry& entry, Bytes data) {
        if (connection == nullptr || connection->channel.free_slots.empty()) {
            return;
        }
        const std::uint16_t slot = connection->channel.free_slots.front();
        connection->channel.free_slots.pop_front();
        connection->in_use[slot] = true;
        // Memory of just the right size, so that one byte too far is seen.
        connection->capsules[slot].assign(data.begin(), data.end());
        connection->capsules[slot].shrink_to_fit();
        const std::size_t short_by = input_.u8() == 0xff ? 1 : 0;
        connection->channel.handler->command(slot, bytes_of(entry).first(sizeof entry - short_by),
                                             connection->capsules[slot]);
    }

    SubmissionEntry entry(std::uint8_t opcode, std::uint32_t nsid) {
        SubmissionEntry made{};
        made.opcode = opcode;
        made.flags = SubmissionEntry::kPsdtSgl;
        made.command_id.set(input_.u8());
        made.nsid.set(nsid);
        return made;
    }
    SglDescriptor sgl(std::uint32_t length) {
        switch (input_.u8() % 8U) {
            case 0:
                return input_.value<SglDescriptor>();
            case 1:
                return SglDescriptor::in_capsule(input_.u8() % 3U, length);
            case 2:
                return SglDescriptor::keyed(kHostBase + input_.u16(), length, kKey, true);
            default:
                return SglDescriptor::keyed(kHostBase + input_.u8(), length, kKey, false);
        }
    }

    SubmissionEntry connect_entry(std::uint16_t id, std::uint16_t entries, std::uint32_t keep_alive) {
        SubmissionEntry made = entry(0x7f, 1);
        made.dwords[0].set(std::uint32_t{id} << 16U);
        made.dwords[1].set(entries - 1U);
        made.dwords[2].set(keep_alive);
        made.data = SglDescriptor::keyed(kHostBase, sizeof(nvme::ConnectData), kKey, false);
        return made;
    }
    void put_connect_data(std::string_view nqn, std::string_view host, std::uint16_t controller) {
        nvme::ConnectData data{};
        std::copy(nqn.begin(), nqn.end(), data.subsystem_nqn.begin());
        std::copy(host.begin(), host.end(), data.host_nqn.begin());
        data.controller_id.set(controller);
        std::memcpy(ram_.bytes.data(), &data, sizeof data);
    }
    void connect() {
        constexpr std::array<std::string_view, 4> kNames = {"nvmet-test", nvme::kDiscoveryNqn, "", "other"};
        constexpr std::array<std::string_view, 3> kHosts = {"host", "", "stranger"};
        put_connect_data(input_.pick(kNames), input_.pick(kHosts),
                         input_.flag() ? std::uint16_t{0xffff} : input_.u8());
        const Bytes own = input_.bytes(input_.below(40));
        std::memcpy(ram_.bytes.data() + input_.u16() % 900U, own.data(), own.size());
        SubmissionEntry made =
            connect_entry(static_cast<std::uint16_t>(input_.below(kQueues)), input_.u8(), input_.u16());
        made.data = sgl(input_.flag() ? 1024 : input_.u16());
        const Bytes data = Bytes(ram_.bytes).first(input_.flag() ? 1024 : 0);
        send(made, data);
    }
    /// By the rules: an admin queue, or the I/O queues of the controller that has it.
    void bring_up() {
        const std::string_view nqn = input_.u8() % 8U == 0 ? nvme::kDiscoveryNqn : "nvmet-test";
        const auto id = static_cast<std::uint16_t>(input_.below(kQueues));
        const Subsystem* const subsystem = target_->subsystem(std::string(nqn));
        const std::uint16_t controller =
            id == 0 || subsystem->controllers().empty() ? 0xffff : subsystem->controllers().back()->id();
        open(id, 32, *target_);
        put_connect_data(nqn, "host", controller);
        send(connections_[id].get(), connect_entry(id, 32, input_.u8() * 100), {});
        settle();
        if (trust_ != Trust::ByName && input_.u8() % 8U != 0) {
            prove(id);
        }
        if (id == 0) {
            SubmissionEntry enable = entry(0x7f, 0);
            enable.dwords[1].set(nvme::property::kConfiguration);
            enable.dwords[2].set(0x00460001);
            send(connections_[0].get(), enable, {});
        }
        settle();
    }
    /// The connection may end by it, so that it is named by its place.
    void authentication(std::size_t place, nvme::FabricsType type, std::uint32_t bytes) {
        SubmissionEntry made = entry(0x7f, static_cast<std::uint32_t>(type));
        made.data = SglDescriptor::keyed(kHostBase, bytes, kKey, false);
        made.dwords[0].set(0xe9010100U);
        made.dwords[1].set(bytes);
        send(connections_[place].get(), made, {});
        settle();
    }
    /// A conversation by the rules, up to bytes that the input changes and steps that it leaves out.
    void prove(std::size_t place) {
        namespace auth = nvme::auth;
        proved_ = true;
        const auto put = [this](Bytes message) {
            std::memcpy(ram_.bytes.data(), message.data(), message.size());
            if (input_.u8() % 8U == 0) {
                ram_.bytes[input_.below(128)] = static_cast<std::byte>(input_.u8());
            }
        };
        auth::Negotiate wish{};
        wish.header = {auth::kCommon, auth::kNegotiate, {}, le16(kTransaction)};
        wish.descriptors = 1;
        wish.descriptor = {auth::kDhChap, 0, 1, 2, {auth::kSha256}, {0, 1}};
        put(bytes_of(wish));
        if (input_.u8() % 16U != 0) {
            authentication(place, nvme::FabricsType::AuthenticationSend, sizeof wish);
        }
        authentication(place, nvme::FabricsType::AuthenticationReceive, input_.u8() % 16U == 0 ? 20 : 2048);
        const auto challenge = *read_value<auth::Challenge>(ram_.bytes);
        const Digest value(ram_.bytes.begin() + 16, ram_.bytes.begin() + 16 + 32);
        Digest augmented = value;
        Digest own_value;
        if (trust_ == Trust::ByGroup) {
            static const std::unique_ptr<DhExchange> exchange = DhExchange::make(1);
            const Digest secret = exchange->secret(Bytes(ram_.bytes).subspan(48, 256));
            augmented = hmac(auth::kSha256, digest(auth::kSha256, secret), {value});
            own_value = exchange->public_value();
        }
        const std::uint8_t zero = 0;
        const Digest response =
            hmac(auth::kSha256, *secret_key(kSecret, "host"),
                 {augmented, bytes_of(challenge.sequence), bytes_of(le16(kTransaction)), bytes_of(zero),
                  text_bytes("HostHost"), text_bytes("host"), bytes_of(zero), text_bytes("nvmet-test")});
        auth::Reply reply{};
        reply.header = {auth::kDhChap, auth::kReply, {}, le16(kTransaction)};
        reply.hash_length = 32;
        reply.challenge_valid = input_.u8() % 2U;
        reply.value_length.set(static_cast<std::uint16_t>(own_value.size()));
        reply.sequence.set(5);
        Digest message(bytes_of(reply).begin(), bytes_of(reply).end());
        message.insert(message.end(), response.begin(), response.end());
        message.resize(message.size() + 32);
        message.insert(message.end(), own_value.begin(), own_value.end());
        put(message);
        authentication(place, nvme::FabricsType::AuthenticationSend,
                       static_cast<std::uint32_t>(message.size()) - (input_.u8() % 16U == 0 ? 1 : 0));
        authentication(place, nvme::FabricsType::AuthenticationReceive, 2048);
    }
    void property() {
        if (trust_ != Trust::ByName && input_.flag()) {
            const std::size_t place = input_.below(kQueues);
            if (input_.flag()) {
                return prove(place);
            }
            const Bytes message = input_.bytes(input_.below(200));
            std::memcpy(ram_.bytes.data(), message.data(), message.size());
            return authentication(place,
                                  input_.flag() ? nvme::FabricsType::AuthenticationSend
                                                : nvme::FabricsType::AuthenticationReceive,
                                  input_.flag() ? static_cast<std::uint32_t>(message.size()) : input_.u16());
        }
        SubmissionEntry made = entry(0x7f, input_.flag() ? 4 : 0);
        made.dwords[0].set(input_.u8());
        constexpr std::array<std::uint32_t, 5> kOffsets = {0, 8, 0x14, 0x1c, 0x20};
        made.dwords[1].set(input_.flag() ? input_.pick(kOffsets) : input_.u32());
        made.dwords[2].set(input_.flag() ? 0x00460001 : input_.u32());
        send(connections_[0].get(), made, {});
    }
    void admin() {
        constexpr std::array<std::uint8_t, 8> kOpcodes = {0x02, 0x06, 0x08, 0x09, 0x0a, 0x0c, 0x18, 0x7f};
        SubmissionEntry made = entry(input_.flag() ? input_.pick(kOpcodes) : input_.u8(), input_.u8() % 8U);
        for (le32& dword : made.dwords) {
            dword.set(input_.flag() ? input_.u32() : input_.u8());
        }
        made.data = sgl(input_.flag() ? 4096 : input_.u16());
        send(connections_[0].get(), made, {});
    }
    void io() {
        constexpr std::array<std::uint8_t, 14> kOpcodes = {0x00, 0x01, 0x02, 0x04, 0x05, 0x08, 0x09,
                                                           0x0c, 0x0d, 0x0e, 0x11, 0x15, 0x19, 0x7f};
        SubmissionEntry made = entry(input_.pick(kOpcodes), input_.u8() % 6U);
        made.flags |= input_.u8() % 4U == 0 ? static_cast<std::uint8_t>(input_.u8() & 3U) : std::uint8_t{0};
        const std::uint64_t first =
            input_.flag() ? input_.u8() : (input_.flag() ? kBlocks - input_.u8() : input_.u64());
        const std::uint32_t blocks = input_.flag() ? input_.u8() : input_.u16();
        made.dwords[0].set(static_cast<std::uint32_t>(first));
        made.dwords[1].set(static_cast<std::uint32_t>(first >> 32U));
        made.dwords[2].set(blocks | std::uint32_t{input_.u8()} << 24U);
        if (made.opcode == 0x09 || made.opcode == 0x19) {
            const Bytes ranges = input_.bytes(input_.below(100));
            std::memcpy(ram_.bytes.data(), ranges.data(), ranges.size());
            made.dwords[0].set(made.opcode == 0x09 ? input_.u8() % 4U : 0U);
            made.dwords[1].set(made.opcode == 0x09 ? 4U : 0U);
        }
        made.data = sgl(input_.flag() ? (blocks + 1) * 512 : input_.u32() & 0x3ffffU);
        send(connections_[1 + input_.below(kQueues - 1)].get(), made, input_.bytes(input_.below(64)));
    }

    void change() {
        using nvme::AnaState;
        constexpr std::array<AnaState, 5> kStates = {AnaState::Optimized, AnaState::NonOptimized,
                                                     AnaState::Inaccessible, AnaState::PersistentLoss,
                                                     AnaState::Change};
        Subsystem& subsystem = target_->nvm();
        switch (input_.u8() % 5U) {
            case 0:
                subsystem.remove(1 + input_.below(6));
                break;
            case 1: {
                const NamespaceConfig made{1 + input_.below(6), kBlocks * 512, 512, "", false, false};
                auto store = make_store(made, runtime_);
                subsystem.put(std::make_shared<Namespace>(made, "nvmet-test", std::move(*store)));
                break;
            }
            case 2:
                (void)subsystem.resize(1 + input_.below(6), std::uint64_t{input_.u16()} * 512);
                break;
            case 3:
                (input_.flag() ? *path_ : *target_).set_ana_state(input_.pick(kStates));
                break;
            default:
                drop(input_.below(kQueues));
                break;
        }
    }

    void drop(std::size_t place) {
        if (connections_[place] != nullptr) {
            connections_[place]->channel.end();
            connections_[place].reset();
        }
    }

    void step() {
        (void)runtime_.step();
        for (std::size_t place = 0; place < kQueues; ++place) {
            Connection* const connection = connections_[place].get();
            if (connection == nullptr) {
                continue;
            }
            FakeChannel& channel = connection->channel;
            channel.pump();
            require(!channel.violated, "responses are whole, and none come behind the end");
            for (const std::uint16_t slot : channel.answered_slots) {
                require(connection->in_use[slot], "a command is answered once");
                connection->in_use[slot] = false;
            }
            channel.answered_slots.clear();
            channel.responses.clear();
            if (channel.broken || channel.closed) {
                drop(place);
            }
        }
    }
    void settle() {
        for (int i = 0; i < 64; ++i) {
            step();
            if (runtime_.in_background() != 0) {
                loop_.run_once(true);
            }
        }
    }

    void finish() {
        for (std::size_t place = 0; place < kQueues; ++place) {
            drop(place);
        }
        while (runtime_.in_background() != 0) {
            loop_.run_once(true);
        }
        for (int i = 0; i < 10000 && runtime_.step(); ++i) {
        }
        require(runtime_.work.empty(), "nothing is left to do");
        for (const auto& space : target_->nvm().namespaces()) {
            require(space == nullptr || trust_ == Trust::ByName || proved_ ||
                        space->counters.reads.value() + space->counters.writes.value() == 0,
                    "who has proved nothing reads and writes nothing");
        }
        require(target_->connections() == 0 && path_->connections() == 0, "connections are given back");
        require(target_->nvm().controllers().empty() && target_->discovery().controllers().empty(),
                "controllers end with their queues");
        require(path_->discovery().controllers().empty(), "those of the other path, too");
        require(runtime_.buffers.free_bytes() == runtime_.buffers.bytes(), "buffers are given back");
    }

    Input input_;
    Trust trust_;
    bool proved_ = false;
    FakeClock clock_;
    EventLoop loop_{clock_};
    Runtime runtime_{loop_, log::Logger(log::null_sink(), "nvmeof")};
    Directory directory_;
    std::unique_ptr<Target> target_;
    std::unique_ptr<Target> path_;
    test::HostRam ram_{256U << 10U};
    std::array<std::unique_ptr<Connection>, kQueues> connections_;
};

}  // namespace
}  // namespace ernic::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    ernic::fuzz::World(ernic::fuzz::Input(data, size), ernic::fuzz::trust_of(data, size)).run();
    return 0;
}
