// SPDX-License-Identifier: MIT
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "guest_sim/fixture.hpp"
#include "wire/roce.hpp"

/// What `--pcap` writes, read by tshark: somebody else's idea of RoCE v2.
namespace ernic::guest_sim {
namespace {

using testing::IsEmpty;
using Opcode = wire::roce::Opcode;

constexpr std::uint32_t kFirstPsn = 0xfffffd;  // the numbers wrap around soon
constexpr std::uint32_t kQkey = 0x11111111;
constexpr std::size_t kMtu = 1024;
/// Ethernet, IPv4, UDP, BTH, ICRC.
constexpr std::size_t kOverhead = 14 + 20 + 8 + 12 + 4;

/// A directory of its own for the capture, gone at the end.
class Directory {
  public:
    Directory() : path_((std::filesystem::temp_directory_path() / "ernic-pcap-XXXXXX").string()) {
        require(::mkdtemp(path_.data()) != nullptr, "mkdtemp");
    }
    ~Directory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    Directory(const Directory&) = delete;
    Directory& operator=(const Directory&) = delete;
    [[nodiscard]] std::string file() const { return path_ + "/capture.pcapng"; }

  private:
    std::string path_;
};

/// Lines tshark prints about a capture, checksums verified. Fails the test when tshark is missing.
std::vector<std::string> tshark(const std::string& file, const std::string& arguments) {
    const std::string command = "tshark -n -r '" + file +
                                "' -o ip.check_checksum:TRUE -o udp.check_checksum:TRUE " + arguments +
                                " 2>/dev/null";
    std::vector<std::string> lines;
    std::FILE* const pipe = ::popen(command.c_str(), "r");
    std::string line;
    for (int letter = std::fgetc(pipe); letter != EOF; letter = std::fgetc(pipe)) {
        if (letter == '\n') {
            lines.push_back(line);
            line.clear();
        } else {
            line += static_cast<char>(letter);
        }
    }
    const int status = ::pclose(pipe);
    EXPECT_EQ(WEXITSTATUS(status), 0)
        << "is tshark installed? './dev setup' does it; the command was: " << command;
    return lines;
}

/// One packet as tshark sees it. Numbers it did not find are -1.
struct Seen {
    long opcode, psn, length, dma_length, acknowledge, immediate, msn;
    std::string line;
};

std::vector<Seen> packets(const std::string& file, const std::string& filter = "infiniband") {
    std::string arguments = "-Y '" + filter + "' -T fields -E separator=/s -E occurrence=f";
    for (const char* field :
         {"infiniband.bth.opcode", "infiniband.bth.psn", "frame.len", "infiniband.reth.dmalen",
          "infiniband.bth.a", "infiniband.immdt", "infiniband.aeth.msn"}) {
        arguments += std::string(" -e ") + field;
    }
    arguments += " -E separator=,";
    std::vector<Seen> all;
    for (const std::string& line : tshark(file, arguments)) {
        std::istringstream words(line);
        std::array<long, 7> numbers{};
        for (long& number : numbers) {
            std::string word;
            std::getline(words, word, ',');
            // Immediate data are shown as plain hex bytes.
            const int base = &number == &numbers[5] ? 16 : 10;
            number = word.empty() ? -1 : std::stol(word, nullptr, base);
        }
        all.push_back(
            {numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5], numbers[6], line});
    }
    return all;
}

/// A server with `--pcap`, and what it should have seen so far.
class CaptureOfServer : public testing::Test {
  protected:
    void start(const std::string& options = "") {
        server_ = std::make_unique<ServerProcess>(ServerProcess::Options{
            .arguments = {"--backend", "loopback", "--pcap", directory_.file() + options}});
        guest_ = std::make_unique<Guest>(*server_);
        cq_ = guest_->create_cq();
    }
    void connect(bool ipv6 = false) {
        std::tie(client_, peer_) =
            guest_->create_pair(*cq_, {}, {.mtu_log2 = 10, .first_psn = kFirstPsn, .ipv6 = ipv6});
        from_ = guest_->register_memory(400 * 1024);
        to_ = guest_->register_memory(400 * 1024);
        fill_pattern(from_.memory, 9);
    }
    void stop() {
        client_.reset();
        peer_.reset();
        cq_.reset();
        guest_.reset();
        EXPECT_EQ(server_->stop(), 0) << server_->log();
    }

    /// Runs one request; sends and immediates find a receive.
    void run(SendRequest request, std::size_t size, bool receives) {
        if (receives) {
            peer_->post_receive({.wr_id = 1, .sges = to_.list()});
        }
        const bool to_local =
            request.op == Op::Read || request.op == Op::FetchAdd || request.op == Op::CompareSwap;
        request.sges = {to_local ? to_.sge(0, size) : from_.sge(0, size)};
        request.remote_va = to_local ? from_.va : to_.va;
        request.rkey = to_local ? from_.key : to_.key;
        client_->post_send(request);
        for (const WorkCompletion& wc : cq_->wait_for(receives ? 2 : 1)) {
            ASSERT_EQ(wc.status, Status::Ok);
        }
    }

    /// Packets of one message of `size` bytes: first, middle.., last or only, each with its extended headers.
    struct Cut {
        Opcode first, middle, last, only;
        std::size_t first_headers = 0, last_headers = 0;
    };
    void expect_cut(const Cut& cut, std::size_t size, std::uint32_t& psn) {
        const std::size_t count = size == 0 ? 1 : (size + kMtu - 1) / kMtu;
        for (std::size_t i = 0; i < count; ++i) {
            const bool first = i == 0;
            const bool last = i + 1 == count;
            const std::size_t payload = std::min(kMtu, size - i * kMtu);
            const std::size_t headers = (first ? cut.first_headers : 0) + (last ? cut.last_headers : 0);
            expect_packet(first && last ? cut.only
                          : first       ? cut.first
                          : last        ? cut.last
                                        : cut.middle,
                          psn, headers + (payload + 3) / 4 * 4);
            psn = (psn + 1) & 0xffffffU;
        }
    }
    void expect_packet(Opcode opcode, std::uint32_t psn, std::size_t behind_bth) {
        expected_.push_back({static_cast<long>(opcode),
                             static_cast<long>(psn),
                             static_cast<long>(kOverhead + behind_bth),
                             -1,
                             -1,
                             -1,
                             -1,
                             {}});
    }
    void expect_acknowledgement() { expect_packet(Opcode::RcAcknowledge, (psn_ - 1) & 0xffffffU, 4); }

    void send(std::size_t size) {
        run({.op = Op::Send}, size, true);
        expect_cut({Opcode::RcSendFirst, Opcode::RcSendMiddle, Opcode::RcSendLast, Opcode::RcSendOnly}, size,
                   psn_);
        expect_acknowledgement();
    }
    void write(std::size_t size) {
        run({.op = Op::Write}, size, false);
        expect_cut(
            {Opcode::RcWriteFirst, Opcode::RcWriteMiddle, Opcode::RcWriteLast, Opcode::RcWriteOnly, 16}, size,
            psn_);
        expect_acknowledgement();
    }
    void write_immediate(std::size_t size) {
        run({.op = Op::WriteImmediate, .immediate = 0xcafe}, size, true);
        expect_cut({Opcode::RcWriteFirst, Opcode::RcWriteMiddle, Opcode::RcWriteLastImmediate,
                    Opcode::RcWriteOnlyImmediate, 16, 4},
                   size, psn_);
        expect_acknowledgement();
    }
    void read(std::size_t size) {
        run({.op = Op::Read}, size, false);
        expect_packet(Opcode::RcReadRequest, psn_, 16);
        const bool one = size <= kMtu;
        expect_cut({Opcode::RcReadResponseFirst, Opcode::RcReadResponseMiddle, Opcode::RcReadResponseLast,
                    Opcode::RcReadResponseOnly, 4, one ? 0U : 4U},
                   size, psn_);
    }
    void atomic(Op op, Opcode opcode) {
        run({.op = op, .compare = 1, .swap_add = 2}, 8, false);
        expect_packet(opcode, psn_, 28);
        expect_packet(Opcode::RcAtomicAcknowledge, psn_, 12);
        psn_ = (psn_ + 1) & 0xffffffU;
    }

    void expect_seen(const std::vector<Seen>& seen) const {
        ASSERT_EQ(seen.size(), expected_.size());
        for (std::size_t i = 0; i < seen.size(); ++i) {
            EXPECT_EQ(seen[i].opcode, expected_[i].opcode) << i << ": " << seen[i].line;
            EXPECT_EQ(seen[i].psn, expected_[i].psn) << i << ": " << seen[i].line;
            EXPECT_EQ(seen[i].length, expected_[i].length) << i << ": " << seen[i].line;
        }
    }
    /// Nothing tshark would warn of: malformed packets, wrong lengths or checksums. Two of its guesses what
    /// the payload may be are left out: Wireshark 4.0 takes payloads of 0 and 1 bytes for RPC over RDMA and
    /// for Ethernet over InfiniBand, and then misses the rest.
    void expect_no_complaint() const {
        EXPECT_THAT(tshark(directory_.file(),
                           "--disable-protocol rpcordma --disable-protocol infiniband.eoib "
                           "-Y '_ws.malformed || _ws.expert.severity >= 0x600000'"),
                    IsEmpty());
    }

    Directory directory_;
    std::unique_ptr<ServerProcess> server_;
    std::unique_ptr<Guest> guest_;
    CqPtr cq_;
    QpPtr client_;
    QpPtr peer_;
    Region from_;
    Region to_;
    std::uint32_t psn_ = kFirstPsn;
    std::vector<Seen> expected_;
};

TEST_F(CaptureOfServer, TsharkSeesEveryPacketOfAConnectionWithItsOpcodeAndNumber) {
    start();
    connect();
    for (const std::size_t size : {0, 1, 1023, 1024, 1025, 3000}) {
        send(size);
    }
    for (const std::size_t size : {0, 7, 1024, 2049}) {
        write_immediate(size);
    }
    write(1);
    for (const std::size_t size : {1, 1024, 2500}) {
        read(size);
    }
    atomic(Op::FetchAdd, Opcode::RcFetchAdd);
    atomic(Op::CompareSwap, Opcode::RcCompareSwap);
    // More than one fragment of 256 KiB.
    write(300 * 1024 + 5);
    stop();
    const auto seen = packets(directory_.file());
    expect_seen(seen);
    expect_no_complaint();

    for (const Seen& packet : seen) {
        const auto opcode = static_cast<Opcode>(packet.opcode);
        const bool names_target = opcode == Opcode::RcWriteFirst || opcode == Opcode::RcWriteOnly ||
                                  opcode == Opcode::RcWriteOnlyImmediate || opcode == Opcode::RcReadRequest;
        EXPECT_EQ(packet.dma_length >= 0, names_target) << packet.line;
        const bool has_immediate =
            opcode == Opcode::RcWriteLastImmediate || opcode == Opcode::RcWriteOnlyImmediate;
        EXPECT_EQ(packet.immediate, has_immediate ? 0xcafe : -1) << packet.line;
        const bool answers = packet.opcode >= static_cast<long>(Opcode::RcReadResponseFirst) &&
                             packet.opcode <= static_cast<long>(Opcode::RcAtomicAcknowledge) &&
                             opcode != Opcode::RcReadResponseMiddle;
        EXPECT_EQ(packet.msn >= 0, answers) << packet.line;
    }
    // The length of the whole message, though it came in two fragments; the number of messages so far.
    EXPECT_EQ(seen[seen.size() - 302].dma_length, 300 * 1024 + 5);
    EXPECT_EQ(seen.back().msn, 17);
}

TEST_F(CaptureOfServer, DatagramsOverBothVersionsOfIpAndAVlan) {
    start();
    client_ = guest_->create_datagram_qp(*cq_, kQkey);
    peer_ = guest_->create_datagram_qp(*cq_, kQkey);
    const Region memory = guest_->register_memory(8192);
    fill_pattern(memory.memory, 3);
    Address tagged = guest_->own_address();
    tagged.vlan = 0x6064;
    const std::vector<Address> addresses = {guest_->own_address(), guest_->own_address(true), tagged};
    for (const Address& address : addresses) {
        const std::uint32_t ah = guest_->create_ah(address);
        for (const std::size_t size : {0, 1, 1000, 1024}) {
            peer_->post_receive({.wr_id = 1, .sges = {memory.sge(4096, 4096)}});
            client_->post_send({.op = size == 1 ? Op::SendImmediate : Op::Send,
                                .sges = {memory.sge(0, size)},
                                .immediate = 0x77,
                                .ah = ah,
                                .remote_qpn = peer_->qpn(),
                                .remote_qkey = kQkey});
            for (const WorkCompletion& wc : cq_->wait_for(2)) {
                ASSERT_EQ(wc.status, Status::Ok);
            }
            const std::size_t more = (address.ipv6 ? 20 : 0) + (address.vlan ? 4 : 0);
            expect_packet(size == 1 ? Opcode::UdSendOnlyImmediate : Opcode::UdSendOnly,
                          static_cast<std::uint32_t>(expected_.size()),
                          more + 8 + (size == 1 ? 4 : 0) + (size + 3) / 4 * 4);
        }
    }
    stop();
    auto seen = packets(directory_.file());
    ASSERT_EQ(seen.size(), expected_.size());
    // Where a datagram QP begins to count is its own business.
    const long first = seen[0].psn;
    for (Seen& packet : seen) {
        packet.psn -= first;
    }
    expect_seen(seen);
    expect_no_complaint();
    EXPECT_EQ(packets(directory_.file(), "ipv6 && udp.checksum.status == 1").size(), 4U);
    EXPECT_EQ(packets(directory_.file(), "vlan.id == 100 && vlan.priority == 3").size(), 4U);
    EXPECT_EQ(packets(directory_.file(), "infiniband.deth.q_key == 0x11111111").size(), 12U);
}

TEST_F(CaptureOfServer, SnaplenCutsAndTheHeadersStayReadable) {
    start(",snaplen=96");
    connect(true);
    send(5000);
    stop();
    const auto seen = packets(directory_.file());
    ASSERT_EQ(seen.size(), 6U);
    EXPECT_EQ(seen[0].opcode, static_cast<long>(Opcode::RcSendFirst));
    EXPECT_EQ(seen[0].length, 20 + static_cast<long>(kOverhead + kMtu));
    EXPECT_EQ(tshark(directory_.file(), "-Y 'frame.cap_len <= 96'").size(), 6U);
}

TEST_F(CaptureOfServer, TheWritingThreadIsInTheSandboxToo) {
    start();
    if (server_->log().find("sandbox on") == std::string::npos) {
        GTEST_SKIP() << "this build has no sandbox";
    }
    std::size_t threads = 0;
    const std::string tasks = "/proc/" + std::to_string(server_->pid()) + "/task";
    for (const auto& task : std::filesystem::directory_iterator(tasks)) {
        std::ifstream file(task.path() / "status");
        const std::string status{std::istreambuf_iterator<char>(file), {}};
        for (const char* line : {"NoNewPrivs:\t1\n", "Seccomp:\t2\n", "CapEff:\t0000000000000000\n",
                                 "CapPrm:\t0000000000000000\n"}) {
            EXPECT_THAT(status, testing::HasSubstr(line));
        }
        ++threads;
    }
    EXPECT_EQ(threads, 2U);
    stop();
}

}  // namespace
}  // namespace ernic::guest_sim
