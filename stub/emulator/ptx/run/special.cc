#include "stub/emulator/ptx/run/special.h"

#include <chrono>

#include "stub/emulator/ptx/run/block.h"
#include "stub/emulator/ptx/run/device-graphs.h"

namespace vgpu::emulator {
namespace {

uint32_t linearThread(Warp& warp, int lane) { return warp.index() * laneCount + static_cast<uint32_t>(lane); }

template <int Axis>
const Inst* threadIndex(Warp& warp, const Inst* inst) {
  const auto& size = warp.block().launch().block;
  writeLanes<uint32_t>(warp, inst->op[0], [&](int lane) {
    const uint32_t linear = linearThread(warp, lane);
    if constexpr (Axis == 0)
      return size[1] == 1 && size[2] == 1 ? linear : linear % size[0];
    else if constexpr (Axis == 1)
      return linear / size[0] % size[1];
    else
      return linear / size[0] / size[1];
  });
  return inst + 1;
}

// A value that is the same for all lanes.
template <class T, T (*Read)(Warp&)>
const Inst* uniform(Warp& warp, const Inst* inst) {
  const T value = Read(warp);
  writeLanes<T>(warp, inst->op[0], [value](int) { return value; });
  return inst + 1;
}
template <uint32_t (*Read)(Warp&)>
constexpr Handler k32 = uniform<uint32_t, Read>;
template <uint64_t (*Read)(Warp&)>
constexpr Handler k64 = uniform<uint64_t, Read>;

template <int Axis>
uint32_t blockSize(Warp& warp) {
  return warp.block().launch().block[Axis];
}
template <int Axis>
uint32_t blockIndex(Warp& warp) {
  return warp.block().index()[Axis];
}
template <int Axis>
uint32_t gridSize(Warp& warp) {
  return warp.block().launch().grid[Axis];
}
template <int Axis>
uint32_t clusterSize(Warp& warp) {
  return warp.block().launch().cluster[Axis];
}
template <int Axis>
uint32_t clusterIndex(Warp& warp) {
  return blockIndex<Axis>(warp) / clusterSize<Axis>(warp);
}
template <int Axis>
uint32_t indexInCluster(Warp& warp) {
  return blockIndex<Axis>(warp) % clusterSize<Axis>(warp);
}
template <int Axis>
uint32_t gridOfClusters(Warp& warp) {
  return gridSize<Axis>(warp) / clusterSize<Axis>(warp);
}
uint32_t clusterRank(Warp& warp) { return warp.block().rank(); }
uint32_t clusterBlocks(Warp& warp) { return warp.block().grid().clusterBlocks(); }
uint32_t isExplicitCluster(Warp& warp) { return warp.block().launch().explicitCluster ? ~0u : 0; }
template <uint32_t Value>
uint32_t constant(Warp&) {
  return Value;
}
uint32_t warpIndex(Warp& warp) { return warp.index(); }
uint32_t warpsPerSm(Warp& warp) { return warp.block().launch().warpsPerSm; }
uint32_t smIndex(Warp& warp) {
  return static_cast<uint32_t>(warp.block().linear() % std::max(1u, warp.block().launch().smCount));
}
uint32_t smCount(Warp& warp) { return warp.block().launch().smCount; }
uint64_t gridId(Warp& warp) { return warp.block().grid().serial; }
uint64_t currentGraph(Warp& warp) {
  const DeviceGraphs* const graphs = warp.block().launch().graphs;
  return graphs ? graphs->current() : 0;
}
uint64_t workspace(Warp& warp) { return warp.block().launch().cooperative ? workspaceWindow : 0; }
uint32_t workspaceHigh(Warp& warp) { return static_cast<uint32_t>(workspace(warp) >> 32); }
uint32_t workspaceLow(Warp& warp) { return static_cast<uint32_t>(workspace(warp)); }
uint64_t clock(Warp&) {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}
uint32_t clockLow(Warp& warp) { return static_cast<uint32_t>(clock(warp)); }
uint32_t clockHigh(Warp& warp) { return static_cast<uint32_t>(clock(warp) >> 32); }
uint64_t wallClock(Warp&) {
  return static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}
uint32_t wallClockLow(Warp& warp) { return static_cast<uint32_t>(wallClock(warp)); }
uint32_t wallClockHigh(Warp& warp) { return static_cast<uint32_t>(wallClock(warp) >> 32); }
uint32_t dynamicShared(Warp& warp) { return warp.block().launch().dynamicSharedBytes; }
// Rounded up to the unit in which blocks get shared memory.
uint32_t totalShared(Warp& warp) { return (static_cast<uint32_t>(warp.block().sharedBytes()) + 127) / 128 * 128; }
uint32_t aggregateShared(Warp& warp) { return totalShared(warp) + reservedSharedBytes; }

template <uint32_t (*Read)(uint32_t lane)>
const Inst* byLane(Warp& warp, const Inst* inst) {
  writeLanes<uint32_t>(warp, inst->op[0], [](int lane) { return Read(static_cast<uint32_t>(lane)); });
  return inst + 1;
}
uint32_t laneIndex(uint32_t lane) { return lane; }
uint32_t maskEq(uint32_t lane) { return 1u << lane; }
uint32_t maskLt(uint32_t lane) { return (1u << lane) - 1; }
uint32_t maskLe(uint32_t lane) { return maskLt(lane) | 1u << lane; }
uint32_t maskGe(uint32_t lane) { return ~maskLt(lane); }
uint32_t maskGt(uint32_t lane) { return ~maskLe(lane); }

constexpr SpecialRow specialRows[] = {
    {"%tid.x", 4, threadIndex<0>},
    {"%tid.y", 4, threadIndex<1>},
    {"%tid.z", 4, threadIndex<2>},
    {"%ntid.x", 4, k32<blockSize<0>>},
    {"%ntid.y", 4, k32<blockSize<1>>},
    {"%ntid.z", 4, k32<blockSize<2>>},
    {"%ctaid.x", 4, k32<blockIndex<0>>},
    {"%ctaid.y", 4, k32<blockIndex<1>>},
    {"%ctaid.z", 4, k32<blockIndex<2>>},
    {"%nctaid.x", 4, k32<gridSize<0>>},
    {"%nctaid.y", 4, k32<gridSize<1>>},
    {"%nctaid.z", 4, k32<gridSize<2>>},
    {"%laneid", 4, byLane<laneIndex>},
    {"%warpid", 4, k32<warpIndex>},
    {"%nwarpid", 4, k32<warpsPerSm>},
    {"%smid", 4, k32<smIndex>},
    {"%nsmid", 4, k32<smCount>},
    {"%gridid", 8, k64<gridId>},
    {"%lanemask_eq", 4, byLane<maskEq>},
    {"%lanemask_lt", 4, byLane<maskLt>},
    {"%lanemask_le", 4, byLane<maskLe>},
    {"%lanemask_gt", 4, byLane<maskGt>},
    {"%lanemask_ge", 4, byLane<maskGe>},
    {"%clock", 4, k32<clockLow>},
    {"%clock_hi", 4, k32<clockHigh>},
    {"%clock64", 8, k64<clock>},
    {"%globaltimer", 8, k64<wallClock>},
    {"%globaltimer_lo", 4, k32<wallClockLow>},
    {"%globaltimer_hi", 4, k32<wallClockHigh>},
    {"%current_graph_exec", 8, k64<currentGraph>},
    {"%envreg1", 4, k32<workspaceHigh>},
    {"%envreg2", 4, k32<workspaceLow>},
    {"%dynamic_smem_size", 4, k32<dynamicShared>},
    {"%total_smem_size", 4, k32<totalShared>},
    {"%aggr_smem_size", 4, k32<aggregateShared>},
    {"%reserved_smem_offset_begin", 4, k32<constant<reservedSharedBase>>},
    {"%reserved_smem_offset_end", 4, k32<constant<reservedSharedBase + reservedSharedBytes>>},
    {"%reserved_smem_offset_cap", 4, k32<constant<reservedSharedBytes>>},
    {"%reserved_smem_offset_0", 4, k32<constant<reservedSharedBase>>},
    {"%reserved_smem_offset_1", 4, k32<constant<secondReservedArea>>},
    // A launch without clusters counts as one with clusters of one block.
    {"%is_explicit_cluster", 4, k32<isExplicitCluster>},
    {"%clusterid.x", 4, k32<clusterIndex<0>>},
    {"%clusterid.y", 4, k32<clusterIndex<1>>},
    {"%clusterid.z", 4, k32<clusterIndex<2>>},
    {"%nclusterid.x", 4, k32<gridOfClusters<0>>},
    {"%nclusterid.y", 4, k32<gridOfClusters<1>>},
    {"%nclusterid.z", 4, k32<gridOfClusters<2>>},
    {"%cluster_ctaid.x", 4, k32<indexInCluster<0>>},
    {"%cluster_ctaid.y", 4, k32<indexInCluster<1>>},
    {"%cluster_ctaid.z", 4, k32<indexInCluster<2>>},
    {"%cluster_nctaid.x", 4, k32<clusterSize<0>>},
    {"%cluster_nctaid.y", 4, k32<clusterSize<1>>},
    {"%cluster_nctaid.z", 4, k32<clusterSize<2>>},
    {"%cluster_ctarank", 4, k32<clusterRank>},
    {"%cluster_nctarank", 4, k32<clusterBlocks>},
};

template <bool (*Test)(Warp&, uint64_t)>
const Inst* testAddress(Warp& warp, const Inst* inst) {
  const uint64_t* address = warp.lanes<uint64_t>(inst->op[1]);
  writeLanes<uint32_t>(warp, inst->op[0], [&](int lane) { return Test(warp, address[lane]) ? ~0u : 0; });
  return inst + 1;
}
bool inConstants(Warp& warp, uint64_t address) {
  const auto& [begin, end] = warp.block().kernel().constantRange;
  return address >= begin && address < end;
}
// True for all addresses outside the other spaces, mapped or not, including kernel parameters.
bool inGlobal(Warp& warp, uint64_t address) {
  const uint64_t window = windowOf(address);
  return window != sharedWindow && window != localWindow && !inConstants(warp, address);
}
bool inBlock(Warp& warp, uint64_t address) {
  const uint64_t rank = rankIn(address);
  return windowOf(address) == sharedWindow && (rank == ownRank || rank == warp.block().rank());
}
template <uint64_t Window>
bool inWindow(Warp&, uint64_t address) {
  return windowOf(address) == Window;
}

}  // namespace

const SpecialRow* findSpecial(std::string_view name) {
  for (const SpecialRow& row : specialRows)
    if (row.name == name) return &row;
  // The fourth component of a vector, performance counters, and registers that only a driver uses are zero.
  static constexpr SpecialRow zeroRow{"", 4, k32<constant<0>>};
  if (name.ends_with(".w") && findSpecial(std::string(name.substr(0, name.size() - 1)) + "x")) return &zeroRow;
  const auto numbered = [&](std::string_view prefix) {
    return name.starts_with(prefix) && name.size() > prefix.size() && name[prefix.size()] >= '0' && name[prefix.size()] <= '9';
  };
  return numbered("%envreg") || numbered("%pm") ? &zeroRow : nullptr;
}

const Inst* localAddress(Warp& warp, const Inst* inst) {
  const uint64_t address = warp.activation().localBase + inst->imm;
  writeLanes<uint64_t>(warp, inst->op[0], [address](int) { return address; });
  return inst + 1;
}

const Inst* isGlobal(Warp& warp, const Inst* inst) { return testAddress<inGlobal>(warp, inst); }
const Inst* isShared(Warp& warp, const Inst* inst) { return testAddress<inBlock>(warp, inst); }
const Inst* isInCluster(Warp& warp, const Inst* inst) { return testAddress<inWindow<sharedWindow>>(warp, inst); }
const Inst* isLocal(Warp& warp, const Inst* inst) { return testAddress<inWindow<localWindow>>(warp, inst); }
const Inst* isParam(Warp& warp, const Inst* inst) { return testAddress<inWindow<paramWindow>>(warp, inst); }
const Inst* isConstant(Warp& warp, const Inst* inst) { return testAddress<inConstants>(warp, inst); }

// The stack grows by the maximum over all lanes, so that the lanes of an activation have the same top.
const Inst* allocateLocal(Warp& warp, const Inst* inst) {
  const uint64_t* bytes = warp.lanes<uint64_t>(inst->op[1]);
  uint64_t most = 0;
  for (uint32_t left = warp.active; left; left &= left - 1) most = std::max(most, bytes[__builtin_ctz(left)]);
  const uint64_t address = (warp.activation().localTop + inst->imm - 1) / inst->imm * inst->imm;
  if (most > 0xffffffff || address + most > 0xffffffff || !warp.growLocal(address + most))
    return warp.fault(Fault::Kind::stackOverflow, inst, warp.firstActive(),
                      "stack overflow: alloca of " + std::to_string(most) + " bytes");
  warp.activation().localTop = static_cast<uint32_t>(address + most);
  writeLanes<uint64_t>(warp, inst->op[0], [address](int) { return address; });
  return inst + 1;
}

const Inst* saveStack(Warp& warp, const Inst* inst) {
  const uint64_t top = warp.activation().localTop;
  writeLanes<uint64_t>(warp, inst->op[0], [top](int) { return top; });
  return inst + 1;
}

const Inst* restoreStack(Warp& warp, const Inst* inst) {
  const uint64_t top = warp.lanes<uint64_t>(inst->op[0])[warp.firstActive()];
  Activation& activation = warp.activation();
  if (top >= activation.localBase && top <= activation.localTop) activation.localTop = static_cast<uint32_t>(top);
  return inst + 1;
}

}  // namespace vgpu::emulator
