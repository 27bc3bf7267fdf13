#include "stub/emulator/ptx/run/cluster.h"

#include "stub/emulator/ptx/run/block.h"
#include "stub/emulator/ptx/run/handlers.h"

namespace vgpu::emulator {

void Cluster::completeIfAllArrived() {
  uint32_t living = 0;
  for (const Block* block : blocks) living += block->living();
  if (arrived == 0 || arrived < living) return;
  arrived = 0;
  for (Block* block : blocks) block->releaseFromCluster();
}

namespace {

template <class T>
const Inst* mapAddress(Warp& warp, const Inst* inst) {
  const T* address = warp.lanes<T>(inst->op[1]);
  const uint32_t* rank = warp.lanes<uint32_t>(inst->op[2]);
  writeLanes<T>(warp, inst->op[0], [&](int lane) { return withRank(address[lane], rank[lane]); });
  return inst + 1;
}

template <class T>
const Inst* rankOfAddress(Warp& warp, const Inst* inst) {
  const T* address = warp.lanes<T>(inst->op[1]);
  const uint32_t own = warp.block().rank();
  writeLanes<uint32_t>(warp, inst->op[0], [&](int lane) {
    const uint64_t rank = rankIn(address[lane]);
    return rank == ownRank ? own : static_cast<uint32_t>(rank);
  });
  return inst + 1;
}

}  // namespace

const Inst* mapAddress32(Warp& warp, const Inst* inst) { return mapAddress<uint32_t>(warp, inst); }
const Inst* mapAddress64(Warp& warp, const Inst* inst) { return mapAddress<uint64_t>(warp, inst); }
const Inst* rankOfAddress32(Warp& warp, const Inst* inst) { return rankOfAddress<uint32_t>(warp, inst); }
const Inst* rankOfAddress64(Warp& warp, const Inst* inst) { return rankOfAddress<uint64_t>(warp, inst); }

const Inst* clusterArrive(Warp& warp, const Inst* inst) {
  warp.arrivedAtCluster |= warp.active;
  warp.block().arriveAtCluster(static_cast<uint32_t>(__builtin_popcount(warp.active)));
  return inst + 1;
}

// If the phase is complete, its arrivals have been reset, and the lanes do not wait.
const Inst* clusterWait(Warp& warp, const Inst* inst) {
  return (warp.arrivedAtCluster & warp.active) == 0 ? inst + 1 : warp.waitAtBarrier(inst + 1, clusterBarrierIndex);
}

}  // namespace vgpu::emulator
