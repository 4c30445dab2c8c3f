// SPDX-License-Identifier: MIT
#include "vfio_user/dma_reader.hpp"

#include <utility>

#include "vfio_user/limits.hpp"

namespace ernic::vfio_user {

DmaReader::DmaReader(EventLoop& loop, Connection& connection)
    : loop_(loop), connection_(connection), timeout_(loop, [this] { finish(std::nullopt); }) {
}

bool DmaReader::read(mem::Iova address, std::uint32_t size, Done done) {
    if (done_ || size == 0 || size > kMaxDmaRead) {
        return false;
    }
    request_ = {le64(address.value), le64(size)};
    ++id_;
    if (!connection_.send_command(id_, Command::DmaRead, bytes_of(request_))) {
        return false;
    }
    done_ = std::move(done);
    timeout_.arm(loop_.clock().now() + kDmaReadTimeout);
    return true;
}

bool DmaReader::on_reply(const Header& header, Bytes payload) {
    if (!done_ || header.code() != Command::DmaRead || header.id.get() != id_) {
        return false;
    }
    const auto echo = read_value<wire::vfio_user::DmaAccess>(payload);
    const bool good = !header.failed() && echo && *echo == request_ &&
                      payload.size() == sizeof(request_) + request_.count.get();
    finish(good ? std::optional(payload.subspan(sizeof(request_))) : std::nullopt);
    return true;
}

void DmaReader::finish(std::optional<Bytes> data) {
    timeout_.cancel();
    // The handler may ask for the next read, so this one must be over before it runs.
    const Done done = std::exchange(done_, nullptr);
    done(data);
}

}  // namespace ernic::vfio_user
