// The blocks of one cluster: their barrier, and the addresses by which they access each other's shared memory.
//
// One host thread runs them in turns. An address in a block's own shared memory has zeros from bit 24 on; mapa stores the rank of a block
// plus one there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "stub/emulator/ptx/run/windows.h"

namespace vgpu::emulator {

class Block;
class Warp;
struct Inst;

struct Cluster {
  std::vector<Block*> blocks;  // by rank
  uint32_t arrived = 0;        // living threads that have arrived, in this phase of the barrier

  // If all living threads have arrived: releases the waiting ones and begins the next phase.
  void completeIfAllArrived();
};

constexpr int rankShift = 24;
constexpr uint64_t ownRank = ~uint64_t{0};
constexpr uint32_t noRank = 0xfe;  // more than the blocks of any cluster

// The rank in an address of the shared window.
inline uint64_t rankIn(uint64_t address) { return (offsetIn(address) >> rankShift) - 1; }
template <class T>
T withRank(T address, uint32_t rank) {
  return static_cast<T>((address & ~(T{0xff} << rankShift)) | (T{std::min(rank, noRank)} + 1) << rankShift);
}

// op[0] address, op[1] address, op[2] rank
const Inst* mapAddress32(Warp&, const Inst*);
const Inst* mapAddress64(Warp&, const Inst*);
// op[0] rank, op[1] address
const Inst* rankOfAddress32(Warp&, const Inst*);
const Inst* rankOfAddress64(Warp&, const Inst*);
// barrier.cluster
const Inst* clusterArrive(Warp&, const Inst*);
const Inst* clusterWait(Warp&, const Inst*);

}  // namespace vgpu::emulator
