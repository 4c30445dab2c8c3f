// SPDX-License-Identifier: MIT
#include "app/nvmeof_control.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "app/target_spec.hpp"

namespace ernic::app {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class NvmeofControl : public testing::Test {
  protected:
    void open(std::initializer_list<const char*> specs) {
        for (const char* spec : specs) {
            auto parsed = parse_target(spec);
            ASSERT_TRUE(parsed.ok()) << parsed.error().message;
            options_.targets.push_back(std::move(parsed.value()));
        }
        auto opened = NvmeofTargets::open(loop_, options_, log::Logger(log::null_sink(), "nvmeof"));
        ASSERT_TRUE(opened.ok());
        targets_ = std::move(opened.value());
        add_nvmeof_commands(commands_, *targets_);
    }
    json result(const std::string& name, const json& arguments = json::object()) {
        control::Call call{arguments, {}};
        const control::Answer answer = commands_.run(name, call);
        if (const auto* error = std::get_if<Error>(&answer)) {
            ADD_FAILURE() << error->message;
            return {};
        }
        return std::get<json>(answer);
    }
    std::string error(const std::string& name, const json& arguments = json::object()) {
        control::Call call{arguments, {}};
        const control::Answer answer = commands_.run(name, call);
        const auto* error = std::get_if<Error>(&answer);
        return error != nullptr ? error->message : std::string();
    }

    FakeClock clock_;
    EventLoop loop_{clock_};
    ServiceOptions options_;
    std::unique_ptr<NvmeofTargets> targets_;
    control::Commands commands_;
};

TEST_F(NvmeofControl, NamespacesComeGrowAndGo) {
    open({"nvmeof:size=1M"});
    EXPECT_EQ(result("nvme-add", {{"size", "2M"}, {"bs", 4096}}).at("nsid"), 2);
    EXPECT_EQ(result("nvme-add", {{"size", "64K"}, {"nsid", 7}}).at("nsid"), 7);
    json spaces = result("nvme-list").at("namespaces");
    ASSERT_EQ(spaces.size(), 3U);
    EXPECT_EQ(spaces[1].at("bytes"), 2U << 20U);
    EXPECT_EQ(spaces[1].at("block"), 4096);
    result("nvme-resize", {{"nsid", 2}, {"size", "4M"}});
    result("nvme-remove", {{"nsid", 7}});
    spaces = result("nvme-list").at("namespaces");
    ASSERT_EQ(spaces.size(), 2U);
    EXPECT_EQ(spaces[1].at("bytes"), 4U << 20U);
}

TEST_F(NvmeofControl, PathsOfOneSubsystemAreListedAndSet) {
    open({"nvmeof:path-of=nvmet-test,ip=10.0.0.9,ana=non-optimized", "nvmeof:size=1M"});
    json all = result("nvme-list");
    EXPECT_EQ(all.at("namespaces").size(), 1U) << "they share it";
    ASSERT_EQ(all.at("paths").size(), 2U);
    EXPECT_EQ(all.at("paths")[0].at("address"), "10.0.0.9");
    EXPECT_EQ(all.at("paths")[0].at("ana"), "non-optimized");
    EXPECT_EQ(all.at("paths")[1].at("ana"), "optimized");
    EXPECT_EQ(result("nvme-ana", {{"address", "10.0.0.9"}, {"state", "inaccessible"}}).at("ana"),
              "inaccessible");
    EXPECT_EQ(result("nvme-list").at("paths")[0].at("ana"), "inaccessible");
    EXPECT_EQ(result("nvme-add", {{"size", "64K"}}).at("nsid"), 2) << "there is only one subsystem";

    EXPECT_THAT(error("nvme-ana", {{"address", "10.0.0.8"}, {"state", "change"}}), HasSubstr("'10.0.0.8'"));
    EXPECT_THAT(error("nvme-ana", {{"address", "x"}, {"state", "change"}}), HasSubstr("'x'"));
    EXPECT_THAT(error("nvme-ana", {{"address", "10.0.0.9"}, {"state", "optimised"}}),
                HasSubstr("did you mean 'optimized'?"));
    EXPECT_THAT(error("nvme-ana", {{"address", "10.0.0.9"}}), HasSubstr("'state' is missing"));
    EXPECT_THAT(error("nvme-ana", {{"state", "change"}}), HasSubstr("'address' is missing"));
}

TEST_F(NvmeofControl, ANewNamespaceIsNotTakenForTheOneThatHadItsNumber) {
    open({"nvmeof:size=1M"});
    const auto uuid = [this] {
        clock_.advance(2);
        result("nvme-add", {{"size", "64K"}, {"nsid", 7}});
        const auto made = targets_->target(0).nvm().find(7)->uuid();
        result("nvme-remove", {{"nsid", 7}});
        return made;
    };
    EXPECT_NE(uuid(), uuid());
}

TEST_F(NvmeofControl, MistakesAreNamed) {
    open({"nvmeof:size=1M"});
    EXPECT_THAT(error("nvme-add"), HasSubstr("'size' is missing"));
    EXPECT_THAT(error("nvme-add", {{"size", "1M"}, {"nsid", 1}}), HasSubstr("namespace 1 already"));
    EXPECT_THAT(error("nvme-add", {{"size", "1000"}}), HasSubstr("no multiple"));
    EXPECT_THAT(error("nvme-add", {{"size", "1M"}, {"bs", 1000}}), HasSubstr("512, 1024"));
    EXPECT_THAT(error("nvme-remove"), HasSubstr("'nsid' is missing"));
    EXPECT_THAT(error("nvme-remove", {{"nsid", 3}}), HasSubstr("no namespace 3"));
    EXPECT_THAT(error("nvme-resize", {{"nsid", 1}, {"size", "1000"}}), HasSubstr("no multiple"));
    EXPECT_THAT(error("nvme-remove", {{"nsid", 1}, {"nqn", "other"}}), HasSubstr("'other'"));
}

TEST_F(NvmeofControl, OneOfSeveralTargetsIsNamed) {
    open({"nvmeof:ip=10.0.0.1,nqn=a", "nvmeof:ip=10.0.0.2,nqn=b"});
    EXPECT_THAT(error("nvme-remove", {{"nsid", 1}}), HasSubstr("several subsystems"));
    EXPECT_EQ(result("nvme-remove", {{"nsid", 1}, {"nqn", "b"}}).at("nqn"), "b");
    EXPECT_EQ(result("nvme-list").at("namespaces").size(), 1U);
}

TEST_F(NvmeofControl, WithoutATargetThereIsNothing) {
    open({});
    EXPECT_TRUE(result("nvme-list").at("namespaces").empty());
    EXPECT_THAT(error("nvme-add", {{"size", "1M"}}), HasSubstr("no NVMe-oF target"));
}

}  // namespace
}  // namespace ernic::app
