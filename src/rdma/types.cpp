// SPDX-License-Identifier: MIT
#include "rdma/types.hpp"

namespace ernic::rdma {

const char* name_of(Opcode opcode) {
    switch (opcode) {
        case Opcode::Send:
            return "send";
        case Opcode::SendImmediate:
            return "send_imm";
        case Opcode::SendInvalidate:
            return "send_inv";
        case Opcode::Write:
            return "write";
        case Opcode::WriteImmediate:
            return "write_imm";
        case Opcode::Read:
            return "read";
        case Opcode::CompareSwap:
            return "cmp_swap";
        case Opcode::FetchAdd:
            return "fetch_add";
        case Opcode::RegisterMr:
            return "reg_mr";
        case Opcode::LocalInvalidate:
            return "local_inv";
        case Opcode::BindMw:
            return "bind_mw";
    }
    return "unknown";
}

const char* name_of(QpState state) {
    switch (state) {
        case QpState::Reset:
            return "RESET";
        case QpState::Init:
            return "INIT";
        case QpState::Rtr:
            return "RTR";
        case QpState::Rts:
            return "RTS";
        case QpState::Sqd:
            return "SQD";
        case QpState::Sqe:
            return "SQE";
        case QpState::Error:
            return "ERR";
    }
    return "unknown";
}

}  // namespace ernic::rdma
