// A decoded instruction: what the interpreter's inner loop reads, one cache line each.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vgpu::emulator {

class Warp;
struct Inst;

// Executes `inst` for the warp's active lanes and returns the next one; nullptr hands the warp back to its scheduler.
using Handler = const Inst* (*)(Warp&, const Inst* inst);

constexpr int laneCount = 32;
constexpr int mostOperands = 8;

// An operand is 32 lanes of 4, 8 or 16 bytes in the warp's frame; `op` holds byte offsets from the frame's beginning.
// Outputs come first.
struct alignas(64) Inst {
  Handler run[2];  // [0]: every living lane executes, the others' columns may be overwritten; [1]: Warp::active only
  int32_t op[mostOperands];
  union {
    uint64_t imm;
    const Inst* target;
  };
  union {
    const void* aux;
    const Inst* join;  // where lanes that part here come together again; nullptr: nowhere
  };
};
static_assert(sizeof(Inst) == 64);

}  // namespace vgpu::emulator
