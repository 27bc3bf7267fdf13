// Branches, calls, exits and the guard.
#include <emmintrin.h>

#include <cstring>

#include "stub/emulator/ptx/run/access.h"
#include "stub/emulator/ptx/run/block.h"
#include "stub/emulator/ptx/run/handlers.h"

namespace vgpu::emulator {
namespace {

template <size_t Bytes>
const Inst* masked(Warp& warp, const Inst* inst) {
  struct Cell {
    std::byte bytes[Bytes];
  };
  std::byte* const out = warp.frame + inst->op[0];
  Cell before[laneCount], after[laneCount];
  std::memcpy(before, out, sizeof before);
  inst->run[0](warp, inst);
  std::memcpy(after, out, sizeof after);
  for (int lane = 0; lane < laneCount; ++lane) after[lane] = warp.laneMask[lane] ? after[lane] : before[lane];
  std::memcpy(out, after, sizeof after);
  return inst + 1;
}

template <class T>
const Inst* maskedWord(Warp& warp, const Inst* inst) {
  T* const out = warp.lanes<T>(inst->op[0]);
  T before[laneCount];
  std::memcpy(before, out, sizeof before);
  inst->run[0](warp, inst);
  for (int lane = 0; lane < laneCount; ++lane) out[lane] = warp.laneMask[lane] ? out[lane] : before[lane];
  return inst + 1;
}

bool spend(Warp& warp, const Inst* inst) { return (warp.budget -= inst->op[7]) < 0; }

}  // namespace

const Inst* masked4(Warp& warp, const Inst* inst) { return maskedWord<uint32_t>(warp, inst); }
const Inst* masked8(Warp& warp, const Inst* inst) { return maskedWord<uint64_t>(warp, inst); }
const Inst* masked16(Warp& warp, const Inst* inst) { return masked<16>(warp, inst); }

uint32_t maskOf(const uint32_t* predicate) {
  uint32_t mask = 0;
  for (int k = 0; k < laneCount; k += 4) {
    __m128i four;
    std::memcpy(&four, predicate + k, sizeof four);
    mask |= static_cast<uint32_t>(_mm_movemask_ps(_mm_castsi128_ps(four))) << k;
  }
  return mask;
}

void spread(uint32_t* out, uint32_t mask, uint32_t writeMask) {
  for (int lane = 0; lane < laneCount; ++lane) {
    const uint32_t value = 0u - ((mask >> lane) & 1);
    out[lane] = (writeMask >> lane) & 1 ? value : out[lane];
  }
}

const Inst* branch(Warp& warp, const Inst* inst) {
  if (spend(warp, inst)) return warp.sliceEnded(inst->target);
  return inst->target;
}

const Inst* branchIf(Warp& warp, const Inst* inst) {
  const uint32_t taken = (maskOf(warp.lanes<uint32_t>(inst->op[0])) ^ static_cast<uint32_t>(inst->op[1])) & warp.active;
  const bool ended = spend(warp, inst);
  const Inst* next;
  if (taken == 0)
    next = inst + 1;
  else if (taken == warp.active)
    next = inst->target;
  else
    next = warp.diverge(inst, inst->target, taken);
  return ended && next ? warp.sliceEnded(next) : next;
}

const Inst* branchIndexed(Warp& warp, const Inst* inst) {
  const auto& table = static_cast<const IndexedTargets*>(inst->aux)->targets;
  const uint32_t* index = warp.lanes<uint32_t>(inst->op[0]);
  const Inst* targets[laneCount];
  uint32_t masks[laneCount];
  int count = 0;
  for (uint32_t left = warp.active; left;) {
    const int lane = __builtin_ctz(left);
    if (index[lane] >= table.size())
      return warp.fault(
          Fault::Kind::illegalInstruction, inst, lane,
          "brx.idx with index " + std::to_string(index[lane]) + " of " + std::to_string(table.size()) + " targets");
    const Inst* target = table[index[lane]];
    uint32_t same = 0;
    for (uint32_t others = left; others; others &= others - 1) {
      const int other = __builtin_ctz(others);
      if (index[other] < table.size() && table[index[other]] == target) same |= 1u << other;
    }
    targets[count] = target;
    masks[count++] = same;
    left &= ~same;
  }
  const bool ended = spend(warp, inst);
  const Inst* next = count == 1 ? targets[0] : warp.divergeMany(inst->target, targets, masks, count);
  return ended && next ? warp.sliceEnded(next) : next;
}

const Inst* guard(Warp& warp, const Inst* inst) {
  const uint32_t mask = (maskOf(warp.lanes<uint32_t>(inst->op[0])) ^ static_cast<uint32_t>(inst->op[1])) & warp.active;
  if (mask == warp.active) return inst + 1;
  if (mask == 0) return inst + 2;
  warp.setActive(mask);
  const Inst* next = (inst + 1)->run[1](warp, inst + 1);
  if (next) warp.restoreActive();
  return next;
}

const Inst* joinWhole(Warp&, const Inst* inst) { return inst + 1; }
const Inst* joinMasked(Warp& warp, const Inst* inst) { return warp.arrive(inst); }

const Inst* callDirect(Warp& warp, const Inst* inst) {
  const auto& site = *static_cast<const CallSite*>(inst->aux);
  const Inst* next = warp.call(inst, site, *site.callee);
  return next && spend(warp, inst) ? warp.sliceEnded(next) : next;
}

const Inst* callIndirect(Warp& warp, const Inst* inst) {
  const auto& site = *static_cast<const CallSite*>(inst->aux);
  const uint64_t* target = warp.lanes<uint64_t>(site.target);
  const int first = warp.firstActive();
  const uint64_t address = target[first];
  uint32_t same = 0;
  for (uint32_t left = warp.active; left; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    if (target[lane] == address) same |= 1u << lane;
  }
  if (same != warp.active) {
    // Each group executes this instruction again, and they reconverge after it.
    const Inst* const again[] = {inst, inst};
    const uint32_t masks[] = {same, warp.active & ~same};
    return warp.divergeMany(inst + 1, again, masks, 2);
  }
  const auto& known = warp.block().kernel().byAddress;
  const auto found = known.find(address);
  if (found == known.end()) {
    char text[64];
    std::snprintf(text, sizeof text, "a call to 0x%llx, where there is no function",
                  static_cast<unsigned long long>(address));
    return warp.fault(Fault::Kind::invalidPc, inst, first, text);
  }
  return warp.call(inst, site, *found->second);
}

const Inst* returnCall(Warp& warp, const Inst*) { return warp.returnFromCall(); }
const Inst* exitThread(Warp& warp, const Inst* inst) { return warp.exitLanes(warp.active, inst + 1); }
// nanosleep does not sleep; it shortens the warp's slice, so that other warps run soon.
const Inst* sleepNow(Warp& warp, const Inst* inst) {
  waiting(warp);
  return inst + 1;
}
const Inst* nothing(Warp&, const Inst* inst) { return inst + 1; }

const Inst* trap(Warp& warp, const Inst* inst) {
  return warp.fault(Fault::Kind::trap, inst, warp.firstActive(), "trap");
}

const Inst* noMulticast(Warp& warp, const Inst* inst) {
  return warp.fault(Fault::Kind::illegalAddress, inst, warp.firstActive(),
                    "an access to a multicast object, which the device does not support");
}

// A locked instruction orders all earlier accesses; all threads that fence use the same word.
const Inst* fence(Warp& warp, const Inst* inst) {
  if (SharedCheck* check = warp.block().check()) check->ordered();
  static std::atomic<uint32_t> meeting{0};
  meeting.fetch_add(1, std::memory_order_seq_cst);
  return inst + 1;
}

const Inst* barrier(Warp& warp, const Inst* inst) {
  const int lane = warp.firstActive();
  const uint32_t index = warp.lanes<uint32_t>(inst->op[0])[lane];
  if (index > 15)
    return warp.fault(Fault::Kind::illegalInstruction, inst, lane,
                      "barrier " + std::to_string(index) + "; there are 16");
  const bool waits = !(inst->imm & barrierArrives);
  uint32_t threads = static_cast<uint32_t>(__builtin_popcount(warp.active)), expected = 0;
  if (inst->imm & barrierHasCount) {
    // A count consists of whole warps, so a block's last warp counts as 32 even if fewer of its threads live.
    expected = warp.lanes<uint32_t>(inst->op[1])[lane];
    if (expected % laneCount)
      return warp.fault(Fault::Kind::illegalInstruction, inst, lane,
                        "a barrier for " + std::to_string(expected) + " threads: not a multiple of 32");
    // Lanes of a warp may arrive separately: those that complete the warp add what is missing to 32.
    uint32_t& apart = warp.arrivedApart[index];
    if (apart & warp.active) apart = 0;
    const bool whole = (apart | warp.active) == warp.live();
    if (whole) threads = laneCount - static_cast<uint32_t>(__builtin_popcount(apart));
    apart = whole ? 0 : apart | warp.active;
  }
  Block::Votes votes;
  if (inst->imm & barrierReduces) {
    const uint32_t negate = inst->imm & barrierNegated ? ~0u : 0;
    const uint32_t mask = (maskOf(warp.lanes<uint32_t>(inst->op[2])) ^ negate) & warp.active;
    votes = {static_cast<uint32_t>(__builtin_popcount(mask)), static_cast<uint32_t>(__builtin_popcount(warp.active & ~mask))};
  }
  if (warp.block().arrive(static_cast<int>(index), expected, threads, votes, waits) || !waits) return inst + 1;
  return warp.waitAtBarrier(inst + 1, static_cast<int>(index));
}

const Inst* barrierCount(Warp& warp, const Inst* inst) {
  const Barrier& red = warp.block().red(static_cast<int>(warp.lanes<uint32_t>(inst->op[1])[warp.firstActive()]));
  writeLanes<uint32_t>(warp, inst->op[0], [&](int) { return red.count; });
  return inst + 1;
}
const Inst* barrierAll(Warp& warp, const Inst* inst) {
  const Barrier& red = warp.block().red(static_cast<int>(warp.lanes<uint32_t>(inst->op[1])[warp.firstActive()]));
  writeLanes<uint32_t>(warp, inst->op[0], [&](int) { return red.all; });
  return inst + 1;
}
const Inst* barrierAny(Warp& warp, const Inst* inst) {
  const Barrier& red = warp.block().red(static_cast<int>(warp.lanes<uint32_t>(inst->op[1])[warp.firstActive()]));
  writeLanes<uint32_t>(warp, inst->op[0], [&](int) { return red.any; });
  return inst + 1;
}

}  // namespace vgpu::emulator
