// Handlers that decoders name directly: all except lane operations (registry.h).
#pragma once

#include "stub/emulator/ptx/lanes/instruction.h"
#include "stub/emulator/ptx/run/warp.h"

namespace vgpu::emulator {

// ---- lane operations with inactive living lanes, whose outputs are restored afterwards
const Inst* masked4(Warp&, const Inst*);
const Inst* masked8(Warp&, const Inst*);
const Inst* masked16(Warp&, const Inst*);

// ---- control; op[7]: the number of instructions executed to get here
const Inst* branch(Warp&, const Inst*);
const Inst* branchIf(Warp&, const Inst*);       // op[0]: predicate, op[1]: all ones if it is negated
const Inst* branchIndexed(Warp&, const Inst*);  // op[0]: index, aux: IndexedTargets, imm: the join
const Inst* guard(Warp&, const Inst*);          // op[0], op[1] as for branchIf: executes the next instruction under the predicate
const Inst* joinWhole(Warp&, const Inst*);
const Inst* joinMasked(Warp&, const Inst*);
const Inst* callDirect(Warp&, const Inst*);
const Inst* callIndirect(Warp&, const Inst*);
const Inst* returnCall(Warp&, const Inst*);
const Inst* exitThread(Warp&, const Inst*);
const Inst* trap(Warp&, const Inst*);
const Inst* noMulticast(Warp&, const Inst*);
const Inst* nothing(Warp&, const Inst*);
const Inst* sleepNow(Warp&, const Inst*);
const Inst* fence(Warp&, const Inst*);

// ---- barriers: op[0] barrier, op[1] thread count, op[2] predicate; imm: the bits below
constexpr uint64_t barrierHasCount = 1, barrierArrives = 2, barrierReduces = 4, barrierNegated = 8;
const Inst* barrier(Warp&, const Inst*);
const Inst* barrierCount(Warp&, const Inst*);  // op[0] output, op[1] barrier
const Inst* barrierAll(Warp&, const Inst*);
const Inst* barrierAny(Warp&, const Inst*);

// Converts lanes of a predicate to a mask, and back.
uint32_t maskOf(const uint32_t* predicate);
void spread(uint32_t* out, uint32_t mask, uint32_t writeMask);

// Writes `value(lane)` for the active lanes.
template <class T, class F>
void writeLanes(Warp& warp, int32_t slot, F value) {
  T* out = warp.lanes<T>(slot);
  if (warp.active == ~0u) {
    for (int lane = 0; lane < laneCount; ++lane) out[lane] = value(lane);
    return;
  }
  for (uint32_t left = warp.active; left; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    out[lane] = value(lane);
  }
}

}  // namespace vgpu::emulator
