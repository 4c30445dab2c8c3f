// SPDX-License-Identifier: MIT
//
// UD: one packet per message, an address per request, 40 bytes of network header before the data.
#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "cases.hpp"
#include "check.hpp"

namespace {

constexpr std::uint32_t kQkey = 0x11223344;
constexpr std::size_t kHeader = 40;

struct Ground {
    explicit Ground(Context& context, std::uint32_t inline_bytes = 0)
        : options(of(context, inline_bytes)), a(context.device(), options), b(context.device(), options) {
        a.start(kQkey);
        b.start(kQkey);
        ibv_ah_attr where{};
        where.is_global = 1;
        where.port_num = kPort;
        where.grh.dgid = context.device().gid(context.device().gid_index());
        where.grh.sgid_index = static_cast<std::uint8_t>(context.device().gid_index());
        where.grh.hop_limit = 64;
        address.reset(ibv_create_ah(context.device().pd(), &where));
        require(address != nullptr, "ibv_create_ah: %s", strerror(errno));
    }
    static EndpointOptions of(Context& context, std::uint32_t inline_bytes) {
        EndpointOptions options = context.options();
        options.type = IBV_QPT_UD;
        options.inline_bytes = inline_bytes;
        return options;
    }
    EndpointOptions options;
    Endpoint a;
    Endpoint b;
    Owned<ibv_ah> address;
};

unsigned sum_of_words(const unsigned char* at, std::size_t size) {
    unsigned sum = 0;
    for (std::size_t i = 0; i < size; i += 2) {
        sum += static_cast<unsigned>(at[i] << 8U | at[i + 1]);
    }
    return (sum & 0xffffU) + (sum >> 16U);
}

/// The network header of a datagram of `payload` bytes from our own address to our own address.
void check_header(Context& context, const unsigned char* header, std::size_t payload, bool immediate) {
    const ibv_gid gid = context.device().gid(context.device().gid_index());
    // BTH 12, DETH 8, immediate data 4, padding, ICRC 4, and the UDP header before all that.
    const std::size_t udp = 8 + 12 + 8 + (immediate ? 4 : 0) + (payload + 3) / 4 * 4 + 4;
    static const unsigned char mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    if (memcmp(gid.raw, mapped, sizeof mapped) == 0) {
        const unsigned char* ip = header + 20;
        const std::size_t total = static_cast<std::size_t>(ip[2] << 8U | ip[3]);
        require(ip[0] == 0x45, "the IPv4 header begins with 0x%02x", ip[0]);
        require(total == 20 + udp, "the IPv4 header says %zu bytes, not %zu", total, 20 + udp);
        require(ip[9] == 17, "the IPv4 header names protocol %u, not UDP", ip[9]);
        require(memcmp(ip + 12, gid.raw + 12, 4) == 0 && memcmp(ip + 16, gid.raw + 12, 4) == 0,
                "the IPv4 header has other addresses");
        // Soft-RoCE loops packets back before the network stack fills this in.
        require(is_soft_roce(context.device()) || sum_of_words(ip, 20) == 0xffff,
                "the IPv4 header's checksum is wrong");
    } else {
        require(header[0] >> 4U == 6, "the IPv6 header begins with 0x%02x", header[0]);
        require(static_cast<std::size_t>(header[4] << 8U | header[5]) == udp,
                "the IPv6 header has another length");
        require(header[6] == 17, "the IPv6 header names protocol %u, not UDP", header[6]);
        require(memcmp(header + 8, gid.raw, 16) == 0 && memcmp(header + 24, gid.raw, 16) == 0,
                "the IPv6 header has other addresses");
    }
}

void check_completion(const ibv_wc& completion, const Endpoint& from) {
    require(completion.src_qp == from.qpn(), "the sender is QP %u, not %u", completion.src_qp, from.qpn());
    require((completion.wc_flags & IBV_WC_GRH) != 0, "the completion tells of no header");
}

void send_one(Context& context, Endpoint& from, Endpoint& to, ibv_ah* address, std::size_t size,
              std::size_t pieces, bool immediate, unsigned flags = 0) {
    const Layout source(4096, size, pieces);
    // One layout for header and data together, so that cuts may fall into either.
    const Layout target(4096 + 3, kHeader + size, pieces);
    const std::uint64_t seed = fresh_seed();
    fill(context.source, source, seed);
    fill_background(context.target, target);
    const std::uint64_t id = from.next_id();
    to.receive(id, target.sges(context.target));
    SendRequest request(immediate ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND, id);
    request.local(source.sges(context.source)).datagram(address, to.qpn(), kQkey).flags(flags);
    if (immediate) {
        request.immediate(0xabcd1234);
    }
    from.post(request);
    from.finish_send(id, IBV_WC_SEND);
    const ibv_wc completion = to.finish_receive(id, kHeader + size);
    check_completion(completion, from);
    require(((completion.wc_flags & IBV_WC_WITH_IMM) != 0) == immediate, "flags 0x%x", completion.wc_flags);
    require(!immediate || ntohl(completion.imm_data) == 0xabcd1234, "immediate data 0x%x",
            ntohl(completion.imm_data));

    unsigned char header[kHeader];
    for (std::size_t i = 0; i < kHeader; ++i) {
        header[i] = *context.target.at(target.place(i));
    }
    check_header(context, header, size, immediate);
    std::vector<unsigned char> data(size);
    for (std::size_t i = 0; i < size; ++i) {
        data[i] = *context.target.at(target.place(kHeader + i));
    }
    fill(context.source, Layout(kMiB, kHeader + size), seed);
    for (std::size_t i = 0; i < size; ++i) {
        const unsigned char expected = *context.source.at(kMiB + i);
        require(data[i] == expected, "byte %zu of %zu is 0x%02x, not 0x%02x", i, size, data[i], expected);
    }
    // Gaps and guards: put the pattern over what has been checked.
    fill(context.target, target, seed);
    verify(context.target, target, seed, kHeader + size);
}

void sizes(Context& context, std::size_t size) {
    Ground ground(context);
    for (const bool immediate : {false, true}) {
        send_one(context, ground.a, ground.b, ground.address.get(), size, 1, immediate);
        send_one(context, ground.b, ground.a, ground.address.get(), size, 1, immediate);
    }
}

void split(Context& context) {
    Ground ground(context);
    for (std::size_t pieces = 1; pieces <= ground.options.sges; ++pieces) {
        for (const std::size_t size : {pieces, std::size_t{100}, std::size_t{701}, context.mtu()}) {
            send_one(context, ground.a, ground.b, ground.address.get(), size, pieces, pieces % 2 == 0);
        }
    }
}

void inline_data(Context& context) {
    Ground ground(context, 200);
    for (const std::size_t size : {0U, 1U, 100U, 200U}) {
        send_one(context, ground.a, ground.b, ground.address.get(), size, 1, false, IBV_SEND_INLINE);
    }
}

/// What came in tells where to send the answer.
void answer(Context& context) {
    Ground ground(context);
    ground.b.receive(1, {context.target.sge(4096, kHeader + 100)});
    ground.a.post(SendRequest(IBV_WR_SEND, 1)
                      .local({context.source.sge(4096, 100)})
                      .datagram(ground.address.get(), ground.b.qpn(), kQkey));
    ibv_wc completion = ground.b.finish_receive(1, kHeader + 100);
    ground.a.finish_send(1, IBV_WC_SEND);
    const Owned<ibv_ah> back(ibv_create_ah_from_wc(
        context.device().pd(), &completion, reinterpret_cast<ibv_grh*>(context.target.at(4096)), kPort));
    require(back != nullptr, "ibv_create_ah_from_wc: %s", strerror(errno));
    send_one(context, ground.b, ground.a, back.get(), 300, 1, false);
}

void wrong_qkey(Context& context) {
    Ground ground(context);
    ground.b.receive(1, {context.target.sge(4096, kHeader + 100)});
    ground.a.post(SendRequest(IBV_WR_SEND, 2)
                      .local({context.source.sge(4096, 100)})
                      .datagram(ground.address.get(), ground.b.qpn(), kQkey + 1));
    ground.a.finish_send(2, IBV_WC_SEND);
    ground.b.expect_silence(20);
    ground.a.post(SendRequest(IBV_WR_SEND, 3)
                      .local({context.source.sge(4096, 100)})
                      .datagram(ground.address.get(), ground.b.qpn(), kQkey));
    ground.a.finish_send(3, IBV_WC_SEND);
    ground.b.finish_receive(1, kHeader + 100);
}

/// Nobody listens, or there is no such queue pair: the datagram is lost and nobody is told.
void lost(Context& context) {
    Ground ground(context);
    const auto send = [&](std::uint64_t id, std::uint32_t qpn) {
        ground.a.post(SendRequest(IBV_WR_SEND, id)
                          .local({context.source.sge(4096, 100)})
                          .datagram(ground.address.get(), qpn, kQkey));
        ground.a.finish_send(id, IBV_WC_SEND);
    };
    send(1, ground.b.qpn());
    std::uint32_t nobody = 0;
    {
        Endpoint gone(context.device(), ground.options);
        nobody = gone.qpn();
    }
    send(2, nobody);
    ground.b.expect_silence(20);
    send_one(context, ground.a, ground.b, ground.address.get(), 100, 1, false);
    ground.b.receive(50, {context.target.sge(4096, kHeader + 100)});
    send(3, ground.b.qpn());
    ground.b.finish_receive(50, kHeader + 100);
    ground.b.expect_silence(5);
}

/// A datagram is one packet: what is longer than the MTU is refused here, in whatever way.
void too_long(Context& context) {
    Ground ground(context);
    ground.b.receive(1, {context.target.sge(4096, kHeader + 16384)});
    const int error = ground.a.try_post(SendRequest(IBV_WR_SEND, 1)
                                            .local({context.source.sge(4096, context.mtu() + 1)})
                                            .datagram(ground.address.get(), ground.b.qpn(), kQkey));
    if (error == 0) {
        ground.a.fail_send(1, IBV_WC_LOC_LEN_ERR);
    }
    ground.b.expect_silence(10);
}

void many(Context& context) {
    constexpr std::size_t kCount = 40;
    Ground ground(context);
    std::vector<SendRequest> requests;
    for (std::size_t i = 0; i < kCount; ++i) {
        const Layout to(4096 * (i + 1), kHeader + 500);
        fill(context.source, Layout(4096 * (i + 1), 500), 100 + i);
        fill_background(context.target, to);
        ground.b.receive(i, to.sges(context.target));
        requests.push_back(SendRequest(IBV_WR_SEND, i)
                               .local({context.source.sge(4096 * (i + 1), 500)})
                               .datagram(ground.address.get(), ground.b.qpn(), kQkey));
        if (i % 8 != 7) {
            requests.back().unsignalled();
        }
    }
    ground.a.post(std::move(requests));
    for (std::size_t i = 0; i < kCount; ++i) {
        ground.b.finish_receive(i, kHeader + 500);
        // The header is in front of the data like a piece of its own.
        require(
            memcmp(context.source.at(4096 * (i + 1)), context.target.at(4096 * (i + 1) + kHeader), 500) == 0,
            "datagram %zu has other data", i);
    }
    for (std::size_t i = 7; i < kCount; i += 8) {
        ground.a.finish_send(i, IBV_WC_SEND);
    }
}

void flushed(Context& context) {
    Ground ground(context);
    for (std::uint64_t id = 0; id < 5; ++id) {
        ground.b.receive(id, {context.target.sge(4096, 2000)});
    }
    ground.b.to_state(IBV_QPS_ERR);
    for (std::uint64_t id = 0; id < 5; ++id) {
        ground.b.fail_receive(id, IBV_WC_WR_FLUSH_ERR);
    }
    ground.b.expect_silence(10);
}

}  // namespace

void add_datagram_cases(Cases& cases) {
    for (const char* name : {"0", "1", "2", "63", "64", "65", "mtu-1", "mtu"}) {
        for (const SizeEdge& edge : size_edges()) {
            if (strcmp(edge.name, name) == 0) {
                cases.push_back({std::string("ud/size/") + name,
                                 [edge](Context& context) { sizes(context, edge.bytes(context.mtu())); }});
            }
        }
    }
    cases.push_back({"ud/sge", split});
    cases.push_back({"ud/inline", inline_data});
    cases.push_back({"ud/answer", answer});
    cases.push_back({"ud/wrong-qkey", wrong_qkey});
    cases.push_back({"ud/lost", lost});
    cases.push_back({"ud/too-long", too_long});
    cases.push_back({"ud/many", many});
    cases.push_back({"ud/flushed", flushed});
}
