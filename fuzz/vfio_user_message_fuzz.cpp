// SPDX-License-Identifier: MIT
// A hostile client at the socket of a real server with a real card behind it: messages of any content in any
// chunks, file descriptors of any kind at any message, memory that comes and goes while the card works,
// clients that leave in the middle or come twice.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <memory>

#include "fuzz/driver.hpp"
#include "fuzz/socket_folder.hpp"
#include "fuzz/vfio_client.hpp"
#include "fuzz/world.hpp"
#include "vfio_user/server.hpp"

namespace ernic::fuzz {
namespace {

namespace w = wire::vfio_user;

/// The guest's main memory in a file, at the addresses the driver expects.
class SharedMemory final : public CpuMemory {
  public:
    SharedMemory() : fd_(make_fd(FdKind::SealableMemory, GuestRam::kMainSize)) {
        void* data = ::mmap(nullptr, GuestRam::kMainSize, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
        require(data != MAP_FAILED, "the harness has memory");
        bytes_ = MutableBytes(static_cast<std::byte*>(data), GuestRam::kMainSize);
    }
    ~SharedMemory() override { ::munmap(bytes_.data(), bytes_.size()); }
    SharedMemory(const SharedMemory&) = delete;
    SharedMemory& operator=(const SharedMemory&) = delete;

    [[nodiscard]] UniqueFd share() const { return UniqueFd(::dup(fd_.get())); }
    void store(std::uint64_t address, Bytes data) override {
        if (!data.empty() &&
            Range::make(GuestRam::kMainBase, bytes_.size())->contains(address, data.size())) {
            std::memcpy(bytes_.data() + (address - GuestRam::kMainBase), data.data(), data.size());
        }
    }
    void load(std::uint64_t address, MutableBytes out) const override {
        std::fill(out.begin(), out.end(), std::byte{0});
        if (!out.empty() && Range::make(GuestRam::kMainBase, bytes_.size())->contains(address, out.size())) {
            std::memcpy(out.data(), bytes_.data() + (address - GuestRam::kMainBase), out.size());
        }
    }

  private:
    UniqueFd fd_;
    MutableBytes bytes_;
};

class Target {
  public:
    explicit Target(Input input)
        : input_(input),
          first_free_(free_descriptor()),
          sink_(log::null_sink()),
          loop_(std::make_unique<EventLoop>(clock_)),
          server_(std::make_unique<vfio_user::Server>(*loop_, registry_, log::Logger(sink_, "fuzz"),
                                                      SocketOptions{.path = socket_path()})),
          device_(
              std::make_unique<Device>(Device::Options{.log_level = level()}, *server_, *loop_, registry_)),
          driver_(
              {memory_, device_->card(), [this] { run_loop(); },
               [this](std::uint32_t offset, Bytes data) { device_->card().config_write(offset, data); }}) {
        loop_->set_worker([this] { return device_->step(); });
        server_->attach(device_->card());
        require(server_->listen().ok(), "the harness can listen");
    }

    void run() {
        client_.connect(socket_path());
        if (input_.u8() % 8U != 0) {
            negotiate();
            run_loop();
        }
        while (!input_.empty()) {
            operation();
        }
        finish();
    }

  private:
    /// Debug makes the server trace every message.
    log::Level level() {
        const log::Level chosen = input_.u8() % 4U == 0 ? log::Level::Debug : log::Level::Info;
        sink_->set_level(chosen);
        return chosen;
    }

    void run_loop() {
        for (int i = 0; i < 3; ++i) {
            const Nanoseconds begin = cpu_time();
            loop_->run_once(false);
            require(cpu_time() - begin < kLongestStep, "a round of the loop is short");
        }
        client_.receive();
    }

    // ---- Messages

    static std::vector<std::byte> message(std::uint16_t id, std::uint16_t command, std::uint32_t flags,
                                          Bytes payload) {
        w::Header header{};
        header.id.set(id);
        header.command.set(command);
        header.size.set(static_cast<std::uint32_t>(sizeof(header) + payload.size()));
        header.flags.set(flags);
        std::vector<std::byte> bytes(sizeof(header) + payload.size());
        std::memcpy(bytes.data(), &header, sizeof(header));
        std::copy(payload.begin(), payload.end(), bytes.begin() + sizeof(header));
        return bytes;
    }

    /// Sends in the pieces the input wants, with the loop running in between or not.
    void deliver(const std::vector<std::byte>& bytes, std::vector<UniqueFd> fds) {
        if (!client_.open()) {
            client_.connect(socket_path());
        }
        const std::uint8_t how = input_.u8();
        pending_.insert(pending_.end(), bytes.begin(), bytes.end());
        if (how < 0x20 && fds.empty()) {
            return;  // goes out together with the next one
        }
        const std::size_t cut = how < 0x60 ? 1 + input_.u16() % pending_.size() : pending_.size();
        const bool late = how >= 0xf0;
        const std::vector<UniqueFd> none;
        client_.send(Bytes(pending_).first(cut), late ? none : fds);
        if (how % 2U == 0) {
            run_loop();
        }
        if (cut < pending_.size() && client_.open()) {
            client_.send(Bytes(pending_).subspan(cut), late ? fds : none);
        }
        pending_.clear();
        if (how % 4U != 3) {
            run_loop();
        }
    }

    template <WireValue T>
    void command(w::Command code, const T& body, Bytes tail = {}, std::vector<UniqueFd> fds = {}) {
        std::vector<std::byte> payload(sizeof(T) + tail.size());
        std::memcpy(payload.data(), &body, sizeof(T));
        std::copy(tail.begin(), tail.end(), payload.begin() + sizeof(T));
        const std::uint8_t odd = input_.u8();
        const std::uint32_t flags = odd >= 0xf0 ? input_.u32() : odd % 4U == 0 ? w::Header::kFlagNoReply : 0;
        auto bytes = message(next_id_++, static_cast<std::uint16_t>(code), flags, payload);
        if (odd >= 0xe0 && odd < 0xf0) {  // lies about its size, or is cut short
            const auto size = static_cast<std::uint32_t>(input_.u8());
            const le32 raw(size);
            std::memcpy(bytes.data() + offsetof(w::Header, size), &raw, sizeof(raw));
        }
        deliver(bytes, std::move(fds));
    }

    std::vector<UniqueFd> some_fds() {
        std::vector<UniqueFd> fds;
        const std::uint8_t count = input_.u8();
        for (std::uint32_t i = 0; i < (count >= 0xf0 ? count - 0xf0U + 3U : count % 3U); ++i) {
            fds.push_back(make_fd(static_cast<FdKind>(input_.below(kFdKinds)), 4096ULL * input_.below(32)));
        }
        return fds;
    }

    void negotiate() {
        static constexpr char kText[] =
            R"({"capabilities":{"max_msg_fds":8,"write_multiple":true}})";  // NOLINT
        command(w::Command::Version, w::Version{le16(w::kMajor), le16(w::kMinor)},
                std::as_bytes(std::span(kText)));
    }

    void operation() {
        switch (input_.u8() % 24U) {
            case 0:
                deliver(message(next_id_++, input_.u8() % 20U, input_.u8(), input_.bytes(input_.u8())),
                        some_fds());
                break;
            case 1: {
                const Bytes raw = input_.bytes(1 + input_.u8());
                if (!raw.empty()) {
                    deliver({raw.begin(), raw.end()}, some_fds());
                }
                break;
            }
            case 2: {
                const Bytes text = input_.bytes(input_.u16() % 512U);
                command(w::Command::Version, w::Version{le16(0), le16(input_.u8())}, text);
                break;
            }
            case 3:
            case 4:
            case 5:
                map();
                break;
            case 6:
                unmap();
                break;
            case 7:
            case 8:
                irqs();
                break;
            case 9:
            case 10:
                region_read();
                break;
            case 11:
            case 12:
            case 13:
                region_write();
                break;
            case 14:
                write_multi();
                break;
            case 15:
                ask();
                break;
            case 16:
                command(w::Command::DeviceReset, std::array<std::byte, 0>{});
                break;
            default:
                around_the_socket();
                break;
        }
    }

    void around_the_socket() {
        switch (input_.u8() % 9U) {
            case 0:
                answer_dma_read();
                break;
            case 1:
                client_.disconnect();
                pending_.clear();
                if (input_.flag()) {
                    run_loop();
                }
                break;
            case 2: {  // a second client at the same time
                VfioClient second;
                second.connect(socket_path());
                run_loop();
                break;
            }
            case 3:
                // Only through a client can a guest reach the card.
                if (server_->connected()) {
                    driver_.bring_up();
                }
                break;
            case 4:
                server_->verify_shared_memory({page::at(input_.below(page::kCount)) + input_.u8()});
                run_loop();
                break;
            case 5:
                clock_.advance(std::uint64_t{input_.u32()} * 4);
                run_loop();
                break;
            case 6:
                memory_.store(page::at(input_.below(page::kCount)) + input_.u8(), input_.bytes(input_.u8()));
                break;
            case 7:
                device_->card().set_link(input_.flag());
                break;
            default:
                run_loop();
                break;
        }
    }

    void map() {
        w::DmaMap request{};
        request.argsz.set(input_.u8() >= 0xf0 ? input_.u32() : sizeof(request));
        request.flags.set(input_.u8() >= 0xe0 ? input_.u8() : input_.u8() % 4U);
        if (input_.flag()) {  // the guest's main memory, or a part of it
            const std::uint64_t first = GuestRam::kPage * (input_.flag() ? 0 : input_.below(page::kCount));
            request.flags.set(3);
            request.offset.set(first);
            request.iova.set(GuestRam::kMainBase + first);
            request.size.set(GuestRam::kMainSize - first);
            std::vector<UniqueFd> fds;
            fds.push_back(memory_.share());
            command(w::Command::DmaMap, request, {}, std::move(fds));
            return;
        }
        request.offset.set(input_.u8() >= 0xe0 ? input_.u64() : 4096ULL * input_.below(8));
        request.iova.set(GuestRam::address(input_));
        request.size.set(input_.u8() >= 0xe0 ? input_.u64() : 4096ULL * input_.below(32));
        command(w::Command::DmaMap, request, {}, some_fds());
    }

    void unmap() {
        w::DmaUnmap request{};
        request.argsz.set(sizeof(request));
        request.flags.set(input_.u8() >= 0xe0 ? input_.u8() : 0);
        request.iova.set(GuestRam::kMainBase);
        request.size.set(GuestRam::kMainSize);
        if (input_.flag()) {
            request.iova.set(GuestRam::address(input_));
            request.size.set(4096ULL * input_.below(32));
        } else if (input_.u8() % 4U == 0) {
            request.flags.set(w::DmaUnmap::kAll);
            request.iova.set(0);
            request.size.set(0);
        }
        command(w::Command::DmaUnmap, request);
    }

    void irqs() {
        w::IrqSet request{};
        request.argsz.set(input_.u8() >= 0xf0 ? input_.u32() : sizeof(request));
        constexpr std::array<std::uint32_t, 5> kForms = {w::IrqSet::kDataEventfd | w::IrqSet::kActionTrigger,
                                                         w::IrqSet::kDataNone | w::IrqSet::kActionTrigger,
                                                         w::IrqSet::kDataBool | w::IrqSet::kActionTrigger,
                                                         w::IrqSet::kDataNone | w::IrqSet::kActionMask,
                                                         w::IrqSet::kDataNone | w::IrqSet::kActionUnmask};
        request.flags.set(input_.u8() >= 0xe0 ? input_.u8() : input_.pick(kForms));
        request.index.set(input_.u8() >= 0xe0 ? input_.u8() : w::kIrqMsix);
        request.start.set(input_.u8() >= 0xf0 ? input_.u32() : input_.below(9));
        std::vector<UniqueFd> fds;
        const std::uint32_t count = input_.u8() >= 0xf0 ? input_.u32() : input_.below(9);
        request.count.set(count);
        if ((request.flags.get() & w::IrqSet::kDataEventfd) != 0 && input_.u8() < 0xe0) {
            for (std::uint32_t i = 0; i < std::min(count, 8U); ++i) {
                fds.push_back(make_fd(static_cast<FdKind>(4 + input_.below(4)), 0));
            }
        }
        const bool chosen = (request.flags.get() & w::IrqSet::kDataBool) != 0;
        command(w::Command::DeviceSetIrqs, request, chosen ? input_.bytes(std::min(count, 8U)) : Bytes(),
                std::move(fds));
    }

    w::RegionAccess access(std::uint32_t most) {
        w::RegionAccess made{};
        constexpr std::array<std::uint32_t, 3> kRegions = {0, 2, w::kRegionConfig};
        made.region.set(input_.u8() >= 0xe0 ? input_.u8() : input_.pick(kRegions));
        made.offset.set(input_.u8() >= 0xf0 ? input_.u64()
                                            : input_.u16() % (made.region.get() == 7 ? 4096U : 65536U));
        made.count.set(input_.u8() >= 0xf0 ? input_.u32() : 1U << input_.below(most));
        return made;
    }
    void region_read() { command(w::Command::RegionRead, access(13)); }
    void region_write() {
        const w::RegionAccess to = access(7);
        const std::size_t wanted =
            input_.u8() >= 0xf0 ? input_.u8() : std::min<std::uint32_t>(to.count.get(), 64);
        std::vector<std::byte> data(wanted);
        const Bytes own = input_.bytes(wanted);
        std::copy(own.begin(), own.end(), data.begin());
        command(w::Command::RegionWrite, to, data);
    }
    void write_multi() {
        const std::uint32_t count = input_.below(9);
        std::vector<std::byte> entries;
        for (std::uint32_t i = 0; i < count; ++i) {
            const w::RegionAccess to = access(4);
            w::MultiWrite entry{to.offset, to.region, to.count, {}};
            const Bytes own = input_.bytes(entry.data.size());
            std::copy(own.begin(), own.end(), entry.data.begin());
            const Bytes raw = bytes_of(entry);
            entries.insert(entries.end(), raw.begin(), raw.end());
        }
        command(w::Command::RegionWriteMulti, w::WriteMulti{le64(input_.u8() >= 0xf0 ? input_.u64() : count)},
                entries);
    }
    void ask() {
        constexpr std::array<w::Command, 4> kQuestions = {
            w::Command::DeviceGetInfo, w::Command::DeviceGetRegionInfo, w::Command::DeviceGetRegionIoFds,
            w::Command::DeviceGetIrqInfo};
        auto body = input_.value<w::RegionInfo>();
        body.argsz.set(32);
        body.index.set(body.index.get() % 10U);
        command(input_.pick(kQuestions), body);
    }
    void answer_dma_read() {
        std::vector<std::byte> page(sizeof(w::DmaAccess) + 4096);
        const w::DmaAccess echo{le64(page::at(input_.below(page::kCount))), le64(4096)};
        std::memcpy(page.data(), &echo, sizeof(echo));
        memory_.load(echo.address.get(), MutableBytes(page).subspan(sizeof(echo)));
        if (input_.u8() >= 0xc0) {
            page.resize(input_.u16() % page.size());
        }
        const std::uint32_t flags = w::Header::kTypeReply | (input_.u8() >= 0xe0 ? w::Header::kFlagError : 0);
        deliver(message(input_.u8() >= 0xe0 ? input_.u16() : client_.server_command(),
                        static_cast<std::uint16_t>(w::Command::DmaRead), flags, page),
                {});
    }

    /// Everything is answered; when the client has gone, nothing of it is left.
    void finish() {
        for (int i = 0; i < 64 && !client_.settled(); ++i) {
            run_loop();
        }
        require(client_.settled(), "every request is answered");
        client_.disconnect();
        run_loop();
        require(!server_->connected(), "a client that left is gone");
        require(server_->dma_map().size() == 0 && server_->dma_map().files().files() == 0,
                "and its memory unmapped");
        require(!server_->memory().enabled(), "and the card quiet");
        device_->check_reset();
        server_->close();
        device_.reset();
        server_.reset();
        loop_.reset();
    }

  public:
    ~Target() = default;
    Target(const Target&) = delete;
    Target& operator=(const Target&) = delete;

    [[nodiscard]] int first_free() const { return first_free_; }

  private:
    Input input_;
    int first_free_;
    SharedMemory memory_;
    std::shared_ptr<log::Sink> sink_;
    FakeClock clock_;
    metrics::Registry registry_;
    std::unique_ptr<EventLoop> loop_;
    std::unique_ptr<vfio_user::Server> server_;
    std::unique_ptr<Device> device_;
    Driver driver_;
    VfioClient client_;
    std::vector<std::byte> pending_;
    std::uint16_t next_id_ = 1;
};

}  // namespace
}  // namespace ernic::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    int first_free = 0;
    {
        ernic::fuzz::Target target(ernic::fuzz::Input(data, size));
        first_free = target.first_free();
        target.run();
    }
    ernic::fuzz::require(ernic::fuzz::free_descriptor() == first_free, "no descriptor leaks");
    return 0;
}
