// Special registers, and handlers that read a thread's identity and position.
#pragma once

#include <string_view>

#include "stub/emulator/ptx/run/handlers.h"

namespace vgpu::emulator {

struct SpecialRow {
  std::string_view name;  // %tid.x
  uint32_t bytes;         // of each lane
  Handler handler;        // op[0]: its value
};
const SpecialRow* findSpecial(std::string_view name);  // nullptr if there is none

const Inst* localAddress(Warp&, const Inst*);  // op[0]; imm: offset in the function's local variables
const Inst* isGlobal(Warp&, const Inst*);      // op[0] predicate, op[1] generic address
const Inst* isShared(Warp&, const Inst*);  // of the block's own
const Inst* isInCluster(Warp&, const Inst*);
const Inst* isLocal(Warp&, const Inst*);
const Inst* isParam(Warp&, const Inst*);
const Inst* isConstant(Warp&, const Inst*);
const Inst* allocateLocal(Warp&, const Inst*);  // alloca: op[0] address, op[1] bytes; imm: alignment
const Inst* saveStack(Warp&, const Inst*);      // op[0]
const Inst* restoreStack(Warp&, const Inst*);   // op[0]

}  // namespace vgpu::emulator
