// Arguments and results of a call, for functions without PTX, one lane at a time.
#pragma once

#include "stub/emulator/ptx/run/warp.h"

namespace vgpu::emulator {

inline const CallSite& siteOf(const Inst* inst) { return *static_cast<const CallSite*>(inst->aux); }

// A parameter consists of rows of 4-byte lanes.
inline uint32_t word(Warp& warp, const Slot& slot, int lane, int index = 0) {
  return warp.lanes<uint32_t>(slot.offset)[index * laneCount + lane];
}
inline uint64_t argument64(Warp& warp, const CallSite& site, size_t index, int lane, int firstWord = 0) {
  const Slot& slot = site.arguments[index];
  const bool wide = slot.bytes / (4 * laneCount) > static_cast<uint32_t>(firstWord) + 1;
  return word(warp, slot, lane, firstWord) | (wide ? uint64_t{word(warp, slot, lane, firstWord + 1)} << 32 : 0);
}
inline void result64(Warp& warp, const CallSite& site, int lane, uint64_t value) {
  uint32_t* rows = warp.lanes<uint32_t>(site.results[0].offset);
  rows[lane] = static_cast<uint32_t>(value);
  if (site.results[0].bytes > 4 * laneCount) rows[laneCount + lane] = static_cast<uint32_t>(value >> 32);
}

}  // namespace vgpu::emulator
