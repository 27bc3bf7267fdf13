// A decoded instruction, one cache line: the data of the interpreter's inner loop.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vgpu::emulator {

class Warp;
struct Inst;

// Executes `inst` for the warp's active lanes and returns the next instruction; nullptr returns control to the warp's scheduler.
using Handler = const Inst* (*)(Warp&, const Inst* inst);

constexpr int laneCount = 32;
constexpr int mostOperands = 8;

// An operand consists of 32 lanes of 4, 8 or 16 bytes in the warp's frame; `op` holds byte offsets from the beginning of the frame. Outputs
// come first.
struct alignas(64) Inst {
  Handler run[2];  // [0]: executes all living lanes, other columns may be overwritten; [1]: only Warp::active
  int32_t op[mostOperands];
  union {
    uint64_t imm;
    const Inst* target;
  };
  union {
    const void* aux;
    const Inst* join;  // where lanes that diverge here reconverge; nullptr: nowhere
  };
};
static_assert(sizeof(Inst) == 64);

}  // namespace vgpu::emulator
