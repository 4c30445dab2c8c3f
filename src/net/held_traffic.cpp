// SPDX-License-Identifier: MIT
#include "net/held_traffic.hpp"

#include <algorithm>
#include <cstring>

namespace ernic::net {
namespace {

/// Keeps what a FrameFinisher makes of one frame.
class Collector final : public WireFrameSink {
  public:
    Collector(const Crossing& crossing, std::vector<HeldTraffic>& out) : crossing_(crossing), out_(out) {}
    void take(const WireFrame& frame) override { out_.emplace_back(frame, crossing_.port, crossing_.path); }

  private:
    const Crossing& crossing_;
    std::vector<HeldTraffic>& out_;
};

}  // namespace

HeldTraffic::HeldTraffic(const Crossing& crossing)
    : path_(crossing.path),
      size_(crossing.payload_bytes()),
      data_(std::make_unique_for_overwrite<std::byte[]>(size_)) {  // NOLINT(modernize-avoid-c-arrays)
    const MutableBytes all(data_.get(), size_);
    if (crossing.message != nullptr) {
        what_ = HeldMessage{*crossing.message, *crossing.message->route};
        if (crossing.message->payload != nullptr) {
            mem::copy(all, *crossing.message->payload);
        }
        return;
    }
    const Frame& frame = *crossing.frame;
    HeldFrame held{.port = crossing.port,
                   .insert_vlan = frame.insert_vlan,
                   .checksum = frame.checksum,
                   .checksum_valid = frame.checksum_valid,
                   .segmentation = frame.segmentation};
    if (frame.segmentation) {
        held.header = frame.segmentation->header.size();
        std::copy(frame.segmentation->header.begin(), frame.segmentation->header.end(), all.begin());
        held.segmentation->header = all.first(held.header);
    }
    mem::copy(all.subspan(held.header), frame.data);
    what_ = held;
}

HeldTraffic::HeldTraffic(const WireFrame& frame, MacTable::Port port, Path path)
    : path_(path),
      what_(HeldFrame{.port = port,
                      .insert_vlan = {},
                      .checksum = {},
                      .checksum_valid = frame.checksum_valid,
                      .segmentation = {}}),
      size_(frame.size()),
      data_(std::make_unique_for_overwrite<std::byte[]>(size_)) {  // NOLINT(modernize-avoid-c-arrays)
    std::copy(frame.head.begin(), frame.head.end(), data_.get());
    std::copy(frame.tail.begin(), frame.tail.end(), data_.get() + frame.head.size());
}

void HeldTraffic::flip(std::uint64_t bit) {
    std::size_t first = 0;
    if (auto* const held = std::get_if<HeldMessage>(&what_)) {
        if (size_ == 0) {
            held->message.swap_add ^= std::uint64_t{1} << (bit % 64);
            return;
        }
    } else {
        std::get<HeldFrame>(what_).checksum_valid = false;
        first = sizeof(wire::EthernetHeader);
    }
    if (size_ > first) {
        const std::size_t at = first + bit / 8 % (size_ - first);
        data_[at] ^= std::byte{1} << (bit % 8);
    }
}

void HeldTraffic::deliver(Segment& segment) {
    mem::SpanList data;
    if (auto* const held = std::get_if<HeldMessage>(&what_)) {
        data.add(data_.get(), size_);
        Message message = held->message;
        message.route = &held->route;
        message.payload = message.payload != nullptr ? &data : nullptr;
        segment.deliver(message);
        return;
    }
    const auto& held = std::get<HeldFrame>(what_);
    data.add(data_.get() + held.header, size_ - held.header);
    segment.bridge().deliver({.data = data,
                              .insert_vlan = held.insert_vlan,
                              .checksum = held.checksum,
                              .checksum_valid = held.checksum_valid,
                              .segmentation = held.segmentation},
                             held.port);
}

std::vector<HeldTraffic> copies_for_wire(const Crossing& crossing, FrameFinisher& finisher) {
    std::vector<HeldTraffic> copies;
    if (crossing.frame != nullptr) {
        Collector collector(crossing, copies);
        if (finisher.finish(*crossing.frame, collector)) {
            return copies;
        }
        copies.clear();  // makes no sense to us: whoever receives it may judge
    }
    copies.emplace_back(crossing);
    return copies;
}

}  // namespace ernic::net
