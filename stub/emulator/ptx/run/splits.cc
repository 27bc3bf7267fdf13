// Where a warp's threads diverge and reconverge: splits and joins (see warp.h).
#include "stub/emulator/ptx/run/block.h"
#include "stub/emulator/ptx/run/warp.h"

namespace vgpu::emulator {

void Warp::setActive(uint32_t mask) {
  active = mask;
  mode = 1;
  for (int lane = 0; lane < laneCount; ++lane) laneMask[lane] = 0u - ((mask >> lane) & 1);
}

void Warp::setMode(uint32_t mask) {
  if (mask != living) return setActive(mask);
  active = mask;
  mode = 0;
  if (current >= 0 && splits[current].join >= 0) dropJoins();
}

void Warp::restoreActive() { setMode(splits[current].mask); }

void Warp::load(int split) {
  current = split;
  currentActivation = splits[split].activation;
  frame = registerBase + activations[currentActivation].frame;
  setMode(splits[split].mask);
}

void Warp::save(const Inst* pc) {
  splits[current].pc = pc;
  splits[current].state = SplitState::ready;
}

int Warp::newSplit(const Inst* pc, uint32_t mask, int32_t join, int32_t activation) {
  int index = 0;
  while (splits[index].state != SplitState::unused) ++index;  // at most one for each lane, plus one being made
  splits[index] = {SplitState::ready, pc, mask, join, activation};
  ++splitCount;
  retain(activation);
  return index;
}

void Warp::freeSplit(int split) {
  release(splits[split].activation);
  splits[split].state = SplitState::unused;
  --splitCount;
  if (split == current) current = -1;
}

int Warp::newJoin(const Inst* at, uint32_t expected, int32_t parent, int32_t activation) {
  int index = 0;
  while (joins[index].at) ++index;  // each is expected by fewer lanes than its parent, so fewer than 64 in all
  joins[index] = {at, expected, 0, parent, activation};
  retain(activation);
  return index;
}

// If the current split has every living thread, no join has anyone to wait for.
void Warp::dropJoins() {
  for (Join& join : joins)
    if (join.at) {
      join.at = nullptr;
      release(join.activation);
    }
  splits[current].join = -1;
}

const Inst* Warp::pickNext() {
  if (const Split* only = alone(); only && only->state != SplitState::atWarpSync) {
    if (only->state == SplitState::ready) return load(last), only->pc;
    current = -1;
    return nullptr;
  }
  do {
    static_assert((2 * laneCount & (2 * laneCount - 1)) == 0);
    for (int k = 1; k <= 2 * laneCount; ++k) {
      const int index = (last + k) & (2 * laneCount - 1);
      if (splits[index].state != SplitState::ready) continue;
      last = index;
      load(index);
      return splits[index].pc;
    }
    current = -1;
  } while (completeWarpSyncs() || releaseJoined());
  return nullptr;
}

const Inst* Warp::diverge(const Inst* branch, const Inst* taken, uint32_t takenMask) {
  const Inst* const targets[] = {branch + 1, taken};
  const uint32_t masks[] = {active & ~takenMask, takenMask};
  return divergeMany(branch->join, targets, masks, 2);
}

const Inst* Warp::divergeMany(const Inst* joinAt, const Inst* const* targets, const uint32_t* masks, int count) {
  const int32_t activation = currentActivation;
  int32_t join = splits[current].join;
  if (joinAt && (join < 0 || joins[join].at != joinAt || joins[join].activation != activation))
    join = newJoin(joinAt, active, join, activation);
  retain(activation);  // keeps the activation while it may have no split
  freeSplit(current);
  const Inst* next = nullptr;
  int first = -1;
  for (int i = 0; i < count; ++i) {
    if (joinAt && targets[i] == joinAt) {
      joins[join].arrived |= masks[i];
    } else {
      const int split = newSplit(targets[i], masks[i], join, activation);
      if (first < 0) first = split;
    }
  }
  release(activation);
  if (first < 0) {
    shrinkJoins(0);
    return pickNext();
  }
  last = first;
  load(first);
  next = splits[first].pc;
  return next;
}

const Inst* Warp::arrive(const Inst* joinInst) {
  const int32_t index = splits[current].join;
  if (index < 0) return joinInst + 1;
  Join& join = joins[index];
  if (join.at != joinInst || join.activation != currentActivation) return joinInst + 1;
  join.arrived |= active;
  if (join.arrived != join.expected) {
    freeSplit(current);
    return pickNext();
  }
  // The last split to arrive continues for the others; the outer join may be at this instruction too, so it is executed again.
  Split& split = splits[current];
  split.mask = join.arrived;
  split.join = join.parent;
  join.at = nullptr;
  release(join.activation);
  setMode(split.mask);
  return joinInst;
}

// Joins no longer expect threads that have ended; joins that waited only for those are completed.
void Warp::shrinkJoins(uint32_t gone) {
  for (Join& join : joins) {
    if (!join.at) continue;
    join.expected &= ~gone;
    join.arrived &= ~gone;
    if (join.arrived != join.expected) continue;
    if (join.arrived) newSplit(join.at, join.arrived, join.parent, join.activation);
    join.at = nullptr;
    release(join.activation);
  }
}

bool Warp::releaseJoined() {
  bool released = false;
  for (Join& join : joins) {
    if (!join.at || !join.arrived) continue;
    newSplit(join.at + 1, join.arrived, join.parent, join.activation);
    join.expected &= ~join.arrived;
    join.arrived = 0;
    released = true;
  }
  return released;
}

const Inst* Warp::exitLanes(uint32_t mask, const Inst* following) {
  living &= ~mask;
  splits[current].mask &= ~mask;
  const auto arrived = static_cast<uint32_t>(__builtin_popcount(arrivedAtCluster & mask));
  arrivedAtCluster &= ~mask;
  owner->threadsExited(static_cast<uint32_t>(__builtin_popcount(mask)), arrived);
  if (splits[current].mask == 0) {
    freeSplit(current);
    shrinkJoins(mask);
    return pickNext();
  }
  shrinkJoins(mask);
  setMode(splits[current].mask);
  return following;
}

const Inst* Warp::waitAtBarrier(const Inst* following, int barrier) {
  Split& split = splits[current];
  split.pc = following;
  split.state = SplitState::atBarrier;
  split.barrier = barrier;
  return pickNext();
}

void Warp::releaseBarrier(int barrier) {
  if (Split* only = alone()) {
    if (only->state == SplitState::atBarrier && only->barrier == barrier) only->state = SplitState::ready;
    return;
  }
  for (Split& split : splits)
    if (split.state == SplitState::atBarrier && split.barrier == barrier) split.state = SplitState::ready;
}

const Inst* Warp::warpSync(const Inst* inst, const WarpSync& sync, uint32_t kind, uint32_t members) {
  sync.leave(*this, inst);
  if (((members & living) & ~active) == 0) {
    sync.take(*this, inst, members);
    return inst + 1;
  }
  Split& split = splits[current];
  split.pc = inst;
  split.state = SplitState::atWarpSync;
  split.syncKey = uint64_t{kind} << 32 | members;
  split.syncMask = members;
  split.sync = &sync;
  current = -1;
  completeWarpSyncs();
  return pickNext();
}

bool Warp::completeWarpSyncs() {
  bool completed = false;
  for (const Split& split : splits) {
    if (split.state != SplitState::atWarpSync) continue;
    uint32_t present = 0;
    for (const Split& other : splits)
      if (other.state == SplitState::atWarpSync && other.syncKey == split.syncKey) present |= other.mask;
    if ((split.syncMask & living) & ~present) continue;
    deliver(split.syncKey, split.syncMask);
    completed = true;
  }
  return completed;
}

// Merges splits that wait for each other at one instruction of one call, so that they execute it together.
bool Warp::merge(uint64_t key) {
  int first = -1;
  const auto waits = [&](const Split& split) { return split.state == SplitState::atWarpSync && split.syncKey == key; };
  for (int i = 0; i < 2 * laneCount; ++i) {
    if (!waits(splits[i])) continue;
    if (first < 0) first = i;
    if (splits[i].pc != splits[first].pc || splits[i].activation != splits[first].activation) return false;
  }
  Split& merged = splits[first];
  for (int i = first + 1; i < 2 * laneCount; ++i) {
    if (!waits(splits[i])) continue;
    // The merged split's join is the innermost one that expects all of them.
    int32_t common = merged.join;
    const auto expects = [&](int32_t join) { return (joins[join].expected & splits[i].mask) == splits[i].mask; };
    while (common >= 0 && !expects(common)) common = joins[common].parent;
    leaveJoins(merged.join, common, merged.mask);
    leaveJoins(splits[i].join, common, splits[i].mask);
    merged.join = common;
    merged.mask |= splits[i].mask;
    freeSplit(i);
  }
  merged.state = SplitState::ready;
  shrinkJoins(0);
  return true;
}

// Removes the lanes of `mask` from the joins from `from` up to `until`.
void Warp::leaveJoins(int32_t from, int32_t until, uint32_t mask) {
  for (int32_t join = from; join >= 0 && join != until; join = joins[join].parent) joins[join].expected &= ~mask;
}

void Warp::deliver(uint64_t key, uint32_t members) {
  if (merge(key)) return;
  for (int i = 0; i < 2 * laneCount; ++i) {
    Split& split = splits[i];
    if (split.state != SplitState::atWarpSync || split.syncKey != key) continue;
    load(i);
    split.sync->take(*this, split.pc, members);
    ++split.pc;
    split.state = SplitState::ready;
  }
  current = -1;
}

}  // namespace vgpu::emulator
