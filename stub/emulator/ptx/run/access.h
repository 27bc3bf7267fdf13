// A memory instruction's addresses: converts lanes of addresses to checked addresses in this process.
#pragma once

#include "stub/emulator/ptx/run/handlers.h"

namespace vgpu::emulator {

// How an address operand is read. `shared32`: a 32-bit register with an offset in shared memory.
enum class AddressKind : uint8_t { generic, shared, shared32, local, param };

// op[7] of a memory instruction.
struct AccessForm {
  AddressKind kind;
  uint8_t elements;     // of a vector access
  uint8_t address;      // index of the address operand in op
  bool orders = false;  // for atomics: acquires or releases
  static AccessForm of(const Inst* inst) {
    const auto bits = static_cast<uint32_t>(inst->op[7]);
    return {static_cast<AddressKind>(bits & 0xff), static_cast<uint8_t>(bits >> 8), static_cast<uint8_t>(bits >> 16),
            (bits >> 24) != 0};
  }
  int32_t bits() const { return static_cast<int32_t>(kind) | elements << 8 | address << 16 | orders << 24; }
};

enum class Pattern { failed, contiguous, scattered };

// Fills `host` with the place of each active lane's `bytes`; if all 32 are adjacent, in lane order, fills only host[0] and returns
// `contiguous`. `failed`: a fault has been reported.
// Also makes the launch's checks of shared memory, except for plain writes, for which the values are needed: see checkWrites().
Pattern resolve(Warp&, const Inst*, AccessForm, uint32_t bytes, Access, std::byte* (&host)[laneCount]);

// An ordered or atomic access may be part of a wait for another thread: shortens the warp's slice, so that other warps run sooner.
inline void spinning(Warp& warp) { warp.budget -= 64; }
// The warp probably waits: its attempt failed, or it reads the place that it read last. A slice allows only a few such accesses.
inline void waiting(Warp& warp) { warp.budget -= 4096; }
inline void polling(Warp& warp, const std::byte* place) {
  place == warp.polled ? waiting(warp) : spinning(warp);
  warp.polled = place;
}

Handler findLoad(uint32_t bytes, bool isSigned, uint32_t registerBytes, bool ordered);
Handler findStore(uint32_t bytes, uint32_t registerBytes, bool ordered);
Handler findParameterLoad(uint32_t bytes, bool isSigned, uint32_t registerBytes);
// `name` is the operation and its type: `add.u32`, `cas.b64`. Operands: output, address, then `inputs` values.
struct AtomicRow {
  std::string_view name;
  uint32_t bytes;
  uint8_t inputs;
  Handler handler;
  void (*reduce)(std::byte* place, const std::byte* value) = nullptr;  // the same on one element; nullptr for cas and exch
};
const AtomicRow* findAtomic(std::string_view name);

}  // namespace vgpu::emulator
