// Copies between global and shared memory: cp.async.bulk, cp.reduce.async.bulk, and their tensor forms. A copy is made at once, which PTX
// allows: its transactions are complete then, and waiting for a group of copies does nothing.
#pragma once

#include <bit>

#include "stub/emulator/ptx/run/access.h"

namespace vgpu::emulator {

// Inst::imm of copyBulk and copyTensor.
struct BulkForm {
  uint8_t rank = 0;        // of a tensor copy
  bool toShared = false;   // otherwise from shared to global memory
  bool completes = false;  // has an mbarrier
  bool multicast = false;
  bool offsets = false;   // im2col: has pixel offsets
  uint8_t reduction = 0;  // 0: none; otherwise the index into bulkReductions plus one
  uint8_t type = 0;       // for reductions without a tensor: index into bulkTypes
  uint8_t unused = 0;
};
static_assert(sizeof(BulkForm) == 8);
inline uint64_t bitsOf(BulkForm form) { return std::bit_cast<uint64_t>(form); }

constexpr std::string_view bulkReductions[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor"};
constexpr std::string_view bulkTypes[] = {"u32", "s32", "u64", "s64", "b32", "b64", "f16", "bf16", "f32", "f64"};
// A reduction (index into bulkReductions plus one) on elements of a type; nullptr if there is none.
const AtomicRow* findReduction(uint8_t reduction, std::string_view type);

// ins: target (64 bits), source (64), bytes (32), mbarrier (64), blocks of a multicast (32). Addresses include their offsets.
const Inst* copyBulk(Warp&, const Inst*);
// ins: address in shared memory (64), tensor map (64), mbarrier (64), blocks of a multicast (32), coordinates, offsets (32 each).
const Inst* copyTensor(Warp&, const Inst*);
// tensormap.replace: op[0] address, op[1] value (64 bits); imm: TensorField, and from bit 8 on the index of its element.
enum class TensorField : uint8_t { address, rank, box, extent, stride, step, type, interleave, swizzle, atomicity, fill };
const Inst* replaceTensorField(Warp&, const Inst*);

}  // namespace vgpu::emulator
