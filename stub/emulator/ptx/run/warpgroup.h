// wgmma.mma_async: a matrix product by four warps; B and perhaps A lie in shared memory.
//
// The whole product is computed when the last of the four warps arrives, so waiting for a group of them does nothing. The operands are read
// then; a program must not change them before it has waited. Sums as in matrix-values.h.
#pragma once

#include <bit>

#include "stub/emulator/ptx/run/matrix-values.h"

namespace vgpu::emulator {

struct WarpgroupForm {
  uint16_t n, k;
  Element a : 4, b : 4, d : 4, unused : 4;
  uint8_t flags;     // below
  uint8_t selector;  // for a sparse A
};
constexpr uint8_t aInRegisters = 1, aTransposed = 2, bTransposed = 4, aNegated = 8, bNegated = 16, sumSaturates = 32,
                  aSparse = 64;
inline uint64_t bitsOf(WarpgroupForm form) { return std::bit_cast<uint64_t>(form); }

// outs D; ins D, B's descriptor, scale-d, then A's descriptor or registers, then the metadata of a sparse A; imm: WarpgroupForm.
const Inst* multiplyWarpgroup(Warp&, const Inst*);

}  // namespace vgpu::emulator
