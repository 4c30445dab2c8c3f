// SPDX-License-Identifier: MIT
#include "ionic/admin_queue.hpp"

namespace ernic::ionic {

using wire::ionic::Command;
using wire::ionic::Completion;

bool AdminQueue::process(AdminCommandHandler& handler, std::uint32_t budget) {
    if (!enabled_ || broken_ || !memory_.enabled()) {
        return false;
    }
    while (!commands_.empty()) {
        if (budget-- == 0) {
            return true;
        }
        const auto command = commands_.fetch<Command>(memory_);
        if (!command) {
            broken_ = true;
            return false;
        }
        Completion completion{};
        handler.execute(*command, completion);
        completion.comp_index.set(commands_.consumer());
        commands_.consume();
        if (!completions_.write(memory_, completion)) {
            broken_ = true;
            return false;
        }
        if (config_.raises_interrupts) {
            interrupts_.post_completion(config_.interrupt);
        }
    }
    return false;
}

}  // namespace ernic::ionic
