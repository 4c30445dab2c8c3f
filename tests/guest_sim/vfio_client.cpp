// SPDX-License-Identifier: MIT
#include "guest_sim/vfio_client.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "guest_sim/error.hpp"

namespace ernic::guest_sim {
namespace {

namespace w = wire::vfio_user;

/// What QEMU 11.1 proposes.
constexpr std::string_view kCapabilities =
    R"({"capabilities":{"pgsizes":4096,"max_msg_fds":16,"max_dma_maps":65535,"max_data_xfer_size":1048576,)"
    R"("write_multiple":true,"migration":{"max_bitmap_size":268435456,"pgsize":4096}}})";

constexpr std::size_t kMaxParts = 4;

}  // namespace

VfioClient::VfioClient(UniqueFd socket) : socket_(std::move(socket)) {
    const w::Version version{le16(w::kMajor), le16(w::kMinor)};
    const std::string text(kCapabilities);
    const std::array<Bytes, 2> payload = {bytes_of(version),
                                          std::as_bytes(std::span(text.c_str(), text.size() + 1))};
    const Bytes answer = call(Command::Version, payload);
    const auto agreed = ernic::read_value<w::Version>(answer);
    require(agreed && agreed->major.get() == w::kMajor && agreed->minor.get() == w::kMinor,
            "version refused");
}

void VfioClient::send(Command command, std::uint32_t flags, std::span<const Bytes> payload, int fd) {
    w::Header header{};
    std::size_t size = sizeof(header);
    std::array<iovec, kMaxParts> parts{};
    require(payload.size() < parts.size(), "too many parts");
    for (std::size_t i = 0; i < payload.size(); ++i) {
        parts[i + 1] = {const_cast<std::byte*>(payload[i].data()), payload[i].size()};
        size += payload[i].size();
    }
    header.id.set(next_id_++);
    header.command.set(static_cast<std::uint16_t>(command));
    header.size.set(static_cast<std::uint32_t>(size));
    header.flags.set(flags);
    parts[0] = {&header, sizeof(header)};

    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = payload.size() + 1;
    if (fd >= 0) {
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        cmsghdr* part = CMSG_FIRSTHDR(&message);
        part->cmsg_level = SOL_SOCKET;
        part->cmsg_type = SCM_RIGHTS;
        part->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(part), &fd, sizeof(fd));
    }
    // A blocking stream socket takes a message of this size whole or fails.
    if (::sendmsg(socket_.get(), &message, MSG_NOSIGNAL) != static_cast<ssize_t>(size)) {
        throw_errno("send to the server");
    }
}

void VfioClient::receive_exactly(MutableBytes into) {
    while (!into.empty()) {
        const ssize_t size = ::recv(socket_.get(), into.data(), into.size(), MSG_WAITALL);
        if (size == 0) {
            throw GuestError("the server closed the connection");
        }
        if (size < 0) {
            if (errno == EINTR) {
                continue;
            }
            throw_errno("receive from the server");
        }
        into = into.subspan(static_cast<std::size_t>(size));
    }
}

Bytes VfioClient::call(Command command, std::span<const Bytes> payload, int fd) {
    const std::uint16_t id = next_id_;
    send(command, w::Header::kTypeCommand, payload, fd);
    for (;;) {
        w::Header header;
        receive_exactly(mutable_bytes_of(header));
        require(header.size.get() >= sizeof(header), "reply shorter than its header");
        reply_.resize(header.size.get() - sizeof(header));
        receive_exactly(reply_);
        if (header.type() == w::Header::kTypeCommand) {
            // The server asks for memory (DMA_READ): a client may refuse.
            w::Header refusal = header;
            refusal.size.set(sizeof(refusal));
            refusal.flags.set(w::Header::kTypeReply | w::Header::kFlagError);
            refusal.error.set(EINVAL);
            ::send(socket_.get(), &refusal, sizeof(refusal), MSG_NOSIGNAL);
            continue;
        }
        require(header.id.get() == id, "reply to another request");
        if (header.failed()) {
            throw GuestError("vfio-user command " + std::to_string(static_cast<unsigned>(command)) +
                             " failed: " + std::strerror(static_cast<int>(header.error.get())));
        }
        return reply_;
    }
}

void VfioClient::dma_map(int fd, std::uint64_t offset, std::uint64_t iova, std::uint64_t size) {
    const w::DmaMap request{le32(sizeof(w::DmaMap)), le32(w::DmaMap::kRead | w::DmaMap::kWrite), le64(offset),
                            le64(iova), le64(size)};
    const Bytes payload = bytes_of(request);
    call(Command::DmaMap, std::span(&payload, 1), fd);
}

void VfioClient::dma_unmap(std::uint64_t iova, std::uint64_t size) {
    const w::DmaUnmap request{le32(sizeof(w::DmaUnmap)), le32(0), le64(iova), le64(size)};
    const Bytes payload = bytes_of(request);
    call(Command::DmaUnmap, std::span(&payload, 1));
}

void VfioClient::read(std::uint32_t region, std::uint64_t offset, MutableBytes into) {
    const w::RegionAccess access{le64(offset), le32(region), le32(static_cast<std::uint32_t>(into.size()))};
    const Bytes payload = bytes_of(access);
    const Bytes answer = call(Command::RegionRead, std::span(&payload, 1));
    require(answer.size() == sizeof(access) + into.size(), "region read of another size");
    std::memcpy(into.data(), answer.data() + sizeof(access), into.size());
}

void VfioClient::write(std::uint32_t region, std::uint64_t offset, Bytes data) {
    const w::RegionAccess access{le64(offset), le32(region), le32(static_cast<std::uint32_t>(data.size()))};
    const std::array<Bytes, 2> payload = {bytes_of(access), data};
    call(Command::RegionWrite, payload);
}

void VfioClient::post_write(std::uint32_t region, std::uint64_t offset, Bytes data) {
    const w::RegionAccess access{le64(offset), le32(region), le32(static_cast<std::uint32_t>(data.size()))};
    const std::array<Bytes, 2> payload = {bytes_of(access), data};
    send(Command::RegionWrite, w::Header::kTypeCommand | w::Header::kFlagNoReply, payload, -1);
}

std::uint64_t VfioClient::region_size(std::uint32_t region) {
    w::RegionInfo request{};
    request.argsz.set(sizeof(request));
    request.index.set(region);
    const Bytes payload = bytes_of(request);
    const auto answer =
        ernic::read_value<w::RegionInfo>(call(Command::DeviceGetRegionInfo, std::span(&payload, 1)));
    require(answer.has_value(), "short region info");
    return answer->size.get();
}

void VfioClient::set_msix(std::uint32_t vector, int eventfd) {
    const w::IrqSet request{le32(sizeof(w::IrqSet)),
                            le32(w::IrqSet::kDataEventfd | w::IrqSet::kActionTrigger), le32(w::kIrqMsix),
                            le32(vector), le32(1)};
    const Bytes payload = bytes_of(request);
    call(Command::DeviceSetIrqs, std::span(&payload, 1), eventfd);
}

void VfioClient::disable_msix() {
    const w::IrqSet request{le32(sizeof(w::IrqSet)), le32(w::IrqSet::kDataNone | w::IrqSet::kActionTrigger),
                            le32(w::kIrqMsix), le32(0), le32(0)};
    const Bytes payload = bytes_of(request);
    call(Command::DeviceSetIrqs, std::span(&payload, 1));
}

void VfioClient::reset_device() {
    call(Command::DeviceReset, {});
}

}  // namespace ernic::guest_sim
