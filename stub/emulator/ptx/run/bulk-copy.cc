#include "stub/emulator/ptx/run/bulk-copy.h"

#include <cstring>

#include "stub/emulator/ptx/run/block.h"
#include "stub/emulator/ptx/run/bulk-lane.h"

namespace vgpu::emulator {

// Bitwise operations have types of their own.
const AtomicRow* findReduction(uint8_t reduction, std::string_view type) {
  const std::string_view operation = bulkReductions[reduction - 1];
  std::string name(operation);
  const bool ofBits = operation == "and" || operation == "or" || operation == "xor";
  name += '.';
  name += !ofBits ? type : type.ends_with("64") ? "b64" : "b32";
  const AtomicRow* const row = findAtomic(name);
  return row && row->reduce ? row : nullptr;
}

namespace {

class BulkCopy : public BulkLane {
 public:
  using BulkLane::BulkLane;

  bool run() {
    const uint64_t to = operand<uint64_t>(0), from = operand<uint64_t>(1), bytes = operand<uint32_t>(2);
    if ((to | from | bytes) % 16) return refuse("a bulk copy whose addresses or size are not multiples of 16 bytes");
    if (bytes == 0) return true;
    std::byte* const source = access(from, static_cast<uint32_t>(bytes), Access::read);
    if (!source) return false;
    const auto put = [&](uint64_t target) { return write(target, source, static_cast<uint32_t>(bytes)); };
    return forBlocks(to, operand<uint32_t>(4), put) &&
           complete(operand<uint64_t>(3), operand<uint32_t>(4), static_cast<uint32_t>(bytes));
  }

 private:
  bool write(uint64_t to, const std::byte* source, uint32_t bytes) {
    std::byte* const target = access(to, bytes, Access::write);
    if (!target) return false;
    if (form.reduction == 0) return std::memmove(target, source, bytes), true;
    const AtomicRow* const row = findReduction(form.reduction, bulkTypes[form.type]);
    for (uint32_t at = 0; at < bytes; at += row->bytes) row->reduce(target + at, source + at);
    return true;
  }
};

}  // namespace

const Inst* copyBulk(Warp& warp, const Inst* inst) {
  for (uint32_t left = warp.active; left; left &= left - 1)
    if (!BulkCopy(warp, inst, __builtin_ctz(left)).run()) return nullptr;
  return inst + 1;
}

}  // namespace vgpu::emulator
