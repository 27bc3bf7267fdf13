// The memory accesses of one lane of a bulk copy.
#pragma once

#include <string>

#include "stub/emulator/ptx/run/block.h"
#include "stub/emulator/ptx/run/bulk-copy.h"
#include "stub/emulator/ptx/run/mbarrier.h"

namespace vgpu::emulator {

class BulkLane {
 public:
  BulkLane(Warp& warp, const Inst* inst, int lane)
      : form(std::bit_cast<BulkForm>(inst->imm)),
        warp(warp),
        inst(inst),
        lane(lane),
        ins(static_cast<const WideOperands*>(inst->aux)->ins) {}

 protected:
  template <class T>
  T operand(size_t index) const {
    return warp.lanes<T>(ins[index])[lane];
  }
  // A range without alignment requirement; nullptr after a fault.
  std::byte* access(uint64_t address, uint32_t bytes, Access kind, uint32_t align = 1) {
    return warp.access(inst, lane, address, bytes, align, kind);
  }
  bool refuse(std::string what, Fault::Kind kind = Fault::Kind::misalignedAddress) {
    return warp.fault(kind, inst, lane, std::move(what)), false;
  }
  // Calls put(address) for each block of a multicast, at the same offset in its memory; without multicast only for the given address.
  template <class F>
  bool forBlocks(uint64_t address, uint32_t blocks, F put) {
    if (!form.multicast) return put(address);
    for (uint32_t left = blocks & 0xffff; left; left &= left - 1)
      if (!put(withRank(address, static_cast<uint32_t>(__builtin_ctz(left))))) return false;
    return true;
  }
  bool complete(uint64_t barrier, uint32_t blocks, uint32_t bytes) {
    if (!form.completes) return true;
    return forBlocks(barrier, blocks, [&](uint64_t each) { return completeTransaction(warp, inst, lane, each, bytes); });
  }

  const BulkForm form;
  Warp& warp;
  const Inst* const inst;
  const int lane;

 private:
  const std::vector<int32_t>& ins;
};

}  // namespace vgpu::emulator
