// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

#include "app/fault_control.hpp"
#include "net/faults.hpp"

namespace ernic::app {

/// The faults of the segment, for the operator. Thread: device.
class SegmentFaults final : public FaultControl {
  public:
    /// `faults` must outlive this.
    explicit SegmentFaults(net::Faults& faults) : faults_(faults) {}

    Result<std::uint64_t> add(const std::string& spec) override {
        const auto id = faults_.add(spec);
        return id ? Result<std::uint64_t>(id.value()) : Result<std::uint64_t>(id.error());
    }
    nlohmann::json list() override {
        nlohmann::json all = nlohmann::json::array();
        for (const net::Faults::Status& fault : faults_.list()) {
            all.push_back(
                {{"id", fault.id}, {"spec", fault.text}, {"seen", fault.seen}, {"hits", fault.hits}});
        }
        return all;
    }
    bool clear(std::uint64_t id) override {
        return id <= UINT32_MAX && faults_.clear(static_cast<net::Faults::Id>(id));
    }
    std::uint64_t clear_all() override { return faults_.clear_all(); }

  private:
    net::Faults& faults_;
};

}  // namespace ernic::app
