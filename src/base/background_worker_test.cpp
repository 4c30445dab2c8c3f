// SPDX-License-Identifier: MIT
#include "base/background_worker.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <vector>

namespace ernic {
namespace {

class BackgroundWorkerTest : public testing::Test {
  protected:
    SystemClock clock;
    EventLoop loop{clock};
    std::thread::id self = std::this_thread::get_id();
};

TEST_F(BackgroundWorkerTest, JobsRunElsewhereInTheirOrderAndAreReportedHere) {
    std::thread::id first;
    BackgroundWorker worker(loop, [&first] { first = std::this_thread::get_id(); });
    EXPECT_NE(first, self);
    std::vector<int> worked;
    std::vector<int> told;
    for (int i = 0; i < 5; ++i) {
        worker.run(
            [&, i] {
                EXPECT_EQ(std::this_thread::get_id(), first);
                worked.push_back(i);
            },
            [&, i] {
                EXPECT_EQ(std::this_thread::get_id(), self);
                told.push_back(i);
            });
    }
    EXPECT_EQ(worker.pending(), 5U);
    while (worker.pending() != 0) {
        loop.run_once(true);
    }
    EXPECT_EQ(worked, (std::vector<int>{0, 1, 2, 3, 4}));
    EXPECT_EQ(told, worked);
}

TEST_F(BackgroundWorkerTest, AReportMayAskForMore) {
    BackgroundWorker worker(loop, {});
    int rounds = 0;
    std::function<void()> again = [&] {
        if (++rounds < 3) {
            worker.run([] {}, again);
        }
    };
    worker.run([] {}, again);
    while (worker.pending() != 0) {
        loop.run_once(true);
    }
    EXPECT_EQ(rounds, 3);
}

TEST_F(BackgroundWorkerTest, ItsEndWaitsForTheJobThatIsBeingDoneOnly) {
    std::atomic<bool> begun = false;
    std::atomic<bool> go_on = false;
    std::atomic<int> done = 0;
    bool told = false;
    auto worker = std::make_unique<BackgroundWorker>(loop, BackgroundWorker::Function());
    worker->run(
        [&] {
            begun = true;
            while (!go_on) {
                std::this_thread::yield();
            }
            ++done;
        },
        [&told] { told = true; });
    worker->run([&done] { ++done; }, {});
    while (!begun) {
        std::this_thread::yield();
    }
    std::thread let_go([&go_on] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        go_on = true;
    });
    worker.reset();
    let_go.join();
    EXPECT_EQ(done, 1);
    EXPECT_FALSE(told);
}

}  // namespace
}  // namespace ernic
