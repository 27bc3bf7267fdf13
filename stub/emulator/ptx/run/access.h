// A memory instruction's addresses: lanes of addresses become places in this process, checked.
#pragma once

#include "stub/emulator/ptx/run/handlers.h"

namespace vgpu::emulator {

// How an address operand is read. `shared32` is a 32-bit register that holds an offset in shared memory.
enum class AddressKind : uint8_t { generic, shared, shared32, local, param };

// op[7] of a memory instruction.
struct AccessForm {
  AddressKind kind;
  uint8_t elements;     // of a vector access
  uint8_t address;      // index of the address operand in op
  bool orders = false;  // of an atomic: acquires or releases
  static AccessForm of(const Inst* inst) {
    const auto bits = static_cast<uint32_t>(inst->op[7]);
    return {static_cast<AddressKind>(bits & 0xff), static_cast<uint8_t>(bits >> 8), static_cast<uint8_t>(bits >> 16),
            (bits >> 24) != 0};
  }
  int32_t bits() const { return static_cast<int32_t>(kind) | elements << 8 | address << 16 | orders << 24; }
};

enum class Pattern { failed, contiguous, scattered };

// Fills `host` for the active lanes with where each one's `bytes` lie; where all 32 lie side by side, in lane order,
// only host[0] is filled and the answer is `contiguous`. After `failed` a fault has been reported.
// The launch's checks of shared memory are done, but for plain writes, which need the values: see checkWrites().
Pattern resolve(Warp&, const Inst*, AccessForm, uint32_t bytes, Access, std::byte* (&host)[laneCount]);

// A program that changes or reads what others may change may wait for another thread, which gets its turn sooner.
inline void spinning(Warp& warp) { warp.budget -= 64; }
// It does wait, as far as can be seen: it has asked in vain, or reads where it has read last. A slice has a few of these.
inline void waiting(Warp& warp) { warp.budget -= 4096; }
inline void polling(Warp& warp, const std::byte* place) {
  place == warp.polled ? waiting(warp) : spinning(warp);
  warp.polled = place;
}

Handler findLoad(uint32_t bytes, bool isSigned, uint32_t registerBytes, bool ordered);
Handler findStore(uint32_t bytes, uint32_t registerBytes, bool ordered);
Handler findParameterLoad(uint32_t bytes, bool isSigned, uint32_t registerBytes);
// `name` is the operation and its type: `add.u32`, `cas.b64`. Its operands: output, address, then `inputs` values.
struct AtomicRow {
  std::string_view name;
  uint32_t bytes;
  uint8_t inputs;
  Handler handler;
  void (*reduce)(std::byte* place, const std::byte* value) = nullptr;  // the same on one element; nullptr of cas and exch
};
const AtomicRow* findAtomic(std::string_view name);

}  // namespace vgpu::emulator
