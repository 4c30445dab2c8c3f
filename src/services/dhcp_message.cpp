// SPDX-License-Identifier: MIT
#include "services/dhcp_message.hpp"

#include <algorithm>
#include <cstring>

#include "wire/ip_host.hpp"

namespace ernic::services {
namespace {

namespace dhcp = wire::dhcp;
namespace option = wire::dhcp::option;
using net::IpAddress;

/// Some clients drop what is shorter than a BOOTP message (RFC 1542 2.1).
constexpr std::size_t kShortest = 300;

std::optional<IpAddress> address_of(be32 value) {
    return value.get() == 0 ? std::nullopt : std::optional(IpAddress::v4(value.get()));
}

/// Reads one field of options. Fails: false.
class OptionReader {
  public:
    explicit OptionReader(DhcpRequest& request) : request_(request) {}

    bool read(Bytes field) {
        ByteReader reader(field);
        while (const auto code = reader.read<std::uint8_t>()) {
            if (*code == option::kPad) {
                continue;
            }
            if (*code == option::kEnd) {
                return true;
            }
            const auto size = reader.read<std::uint8_t>();
            const auto value = size ? reader.take(*size) : std::nullopt;
            if (!value || !apply(*code, *value)) {
                return false;
            }
        }
        return true;  // a missing end is forgiven
    }

    [[nodiscard]] bool has_type() const { return has_type_; }
    [[nodiscard]] std::uint8_t overload() const { return overload_; }

  private:
    bool apply(std::uint8_t code, Bytes value) {
        switch (code) {
            case option::kMessageType: {
                const auto type = exactly<std::uint8_t>(value);
                has_type_ =
                    type && *type >= 1 && *type <= static_cast<std::uint8_t>(dhcp::MessageType::Inform);
                if (has_type_) {
                    request_.type = static_cast<dhcp::MessageType>(*type);
                }
                return has_type_;
            }
            case option::kOverload: {
                const auto which = exactly<std::uint8_t>(value);
                overload_ = which.value_or(0);
                return which && *which >= 1 && *which <= 3;
            }
            case option::kRequestedAddress:
                return address(value, request_.requested_ip);
            case option::kServerIdentifier:
                return address(value, request_.server);
            default:
                return true;
        }
    }
    template <typename T>
    static std::optional<T> exactly(Bytes value) {
        return value.size() == sizeof(T) ? read_value<T>(value) : std::nullopt;
    }
    static bool address(Bytes value, std::optional<IpAddress>& target) {
        const auto raw = exactly<be32>(value);
        if (raw) {
            target = address_of(*raw);
        }
        return raw.has_value();
    }

    DhcpRequest& request_;
    bool has_type_ = false;
    std::uint8_t overload_ = 0;
};

class OptionWriter {
  public:
    explicit OptionWriter(std::vector<std::byte>& message) : message_(message) {}

    template <WireValue T>
    void put(std::uint8_t code, const T& value) {
        put_bytes(code, bytes_of(value));
    }
    void put(std::uint8_t code, const IpAddress& address) { put_bytes(code, address.bytes()); }
    void put_bytes(std::uint8_t code, Bytes value) {
        message_.push_back(static_cast<std::byte>(code));
        message_.push_back(static_cast<std::byte>(value.size()));
        message_.insert(message_.end(), value.begin(), value.end());
    }

  private:
    std::vector<std::byte>& message_;
};

}  // namespace

std::optional<DhcpRequest> parse_dhcp(Bytes message) {
    ByteReader reader(message);
    const auto header = reader.read<dhcp::Header>();
    if (!header || header->operation != dhcp::kRequest || header->hardware_type != wire::kArpEthernet ||
        header->hardware_size != sizeof(wire::MacAddress) || header->cookie.get() != dhcp::kCookie) {
        return std::nullopt;
    }
    DhcpRequest request;
    request.transaction = header->transaction.get();
    std::copy_n(header->client_hardware.begin(), sizeof(wire::MacAddress), request.client.bytes.begin());
    request.broadcast = (header->flags.get() & dhcp::kBroadcastFlag) != 0;
    request.relayed = header->gateway_ip.get() != 0;
    request.client_ip = address_of(header->client_ip);
    if (request.client.multicast() || request.client.zero()) {
        return std::nullopt;
    }
    OptionReader options(request);
    if (!options.read(reader.rest())) {
        return std::nullopt;
    }
    const std::uint8_t overload = options.overload();
    if (((overload & 1U) != 0 && !options.read(header->file)) ||
        ((overload & 2U) != 0 && !options.read(header->server_name)) || !options.has_type()) {
        return std::nullopt;
    }
    return request;
}

std::vector<std::byte> make_dhcp(const DhcpRequest& request, const DhcpReply& reply,
                                 const DhcpParameters& parameters) {
    dhcp::Header header{};
    header.operation = dhcp::kReply;
    header.hardware_type = static_cast<std::uint8_t>(wire::kArpEthernet);
    header.hardware_size = sizeof(wire::MacAddress);
    header.transaction.set(request.transaction);
    header.flags.set(request.broadcast ? dhcp::kBroadcastFlag : std::uint16_t{0});
    const bool nak = reply.type == dhcp::MessageType::Nak;
    if (request.client_ip && !nak) {
        header.client_ip.set(request.client_ip->value_v4());
    }
    if (reply.your_ip) {
        header.your_ip.set(reply.your_ip->value_v4());
    }
    std::copy(request.client.bytes.begin(), request.client.bytes.end(), header.client_hardware.begin());
    header.cookie.set(dhcp::kCookie);
    const Bytes fixed = bytes_of(header);
    std::vector<std::byte> message(fixed.begin(), fixed.end());
    OptionWriter options(message);
    options.put(option::kMessageType, static_cast<std::uint8_t>(reply.type));
    options.put(option::kServerIdentifier, reply.server);
    if (!nak) {
        if (reply.lease_seconds) {
            const std::uint32_t lease = *reply.lease_seconds;
            options.put(option::kLeaseTime, be32(lease));
            options.put(option::kRenewalTime, be32(lease / 2));
            options.put(option::kRebindingTime, be32(lease - lease / 8));
        }
        options.put(option::kSubnetMask, be32(parameters.subnet.mask_v4()));
        if (parameters.router) {
            options.put(option::kRouter, *parameters.router);
        }
        if (!parameters.name_servers.empty()) {
            std::vector<std::byte> servers;
            for (const IpAddress& server : parameters.name_servers) {
                const Bytes bytes = server.bytes();
                servers.insert(servers.end(), bytes.begin(), bytes.end());
            }
            options.put_bytes(option::kNameServers, servers);
        }
        if (parameters.mtu) {
            options.put(option::kMtu, be16(*parameters.mtu));
        }
    }
    message.push_back(static_cast<std::byte>(option::kEnd));
    message.resize(std::max(message.size(), kShortest));
    return message;
}

}  // namespace ernic::services
