// SPDX-License-Identifier: MIT
//
// Soft-RoCE (rdma_rxe of Linux 7.2) is the second opinion for everything else; these are the cases in which
// it is known not to do what InfiniBand says.
#include <fnmatch.h>

#include "cases.hpp"

namespace {

struct Gap {
    const char* pattern;
    const char* reason;
};

constexpr Gap kGaps[] = {
    {"*/send-inv*", "it reports an invalidated key with another flag than user space knows"},
    {"window/2/invalidated-by-peer", "it reports an invalidated key with another flag than user space knows"},
    {"window/?/reaches", "it checks the region, not the window"},
    {"window/?/starts-exactly", "it checks the region, not the window"},
    {"window/?/region-without-the-right", "what fails on its own side it calls flushed"},
    {"window/?/beyond-the-region", "what fails on its own side it calls flushed"},
    {"window/?/write-without-local-write", "what fails on its own side it calls flushed"},
    {"window/1/not-as-local-key", "what fails on its own side it calls flushed"},
    {"window/2/bound-twice", "what fails on its own side it calls flushed"},
    {"error/lkey/send/*", "what fails on its own side it calls flushed, with what is still under way"},
    {"error/lkey/write/*", "what fails on its own side it calls flushed, with what is still under way"},
    {"error/range/local-write/*",
     "what fails on its own side it calls flushed, with what is still under way"},
    {"error/rkey/write-imm/*", "it uses up a receive for an immediate write that it refuses"},
    {"error/receive-too-short/*", "it answers with a remote operation error"},
    {"error/receive-lkey/*", "it calls it a local QP operation error"},
    {"error/atomic-unaligned", "its library refuses to post it"},
    {"event/error-wakes-solicited", "a flush raises no solicited event"},
    {"ud/too-long", "it sends it"},
    {"extended/*", "its library adds up lists of pieces wrongly (rdma-core 65, wr_set_sge_list)"},
    {"async/request-error", "it answers with a remote operation error"},
    {"async/established", "it has no such event"},
};

}  // namespace

bool is_soft_roce(const Device& device) {
    constexpr unsigned kVendor = 0xffffff;
    return device.attributes().vendor_id == kVendor;
}

const char* soft_roce_gap(const std::string& name) {
    for (const Gap& gap : kGaps) {
        if (fnmatch(gap.pattern, name.c_str(), 0) == 0) {
            return gap.reason;
        }
    }
    return nullptr;
}
