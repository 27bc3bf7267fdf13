// Collectives of a warp. Each has two halves, so that lanes at different instructions can take part: a lane leaves a value for the others,
// and takes its result when every member has arrived (see WarpSync).
#include "stub/emulator/ptx/run/collectives.h"
#include "stub/emulator/ptx/lanes/whole-numbers.h"
#include "stub/emulator/ptx/run/block.h"

namespace vgpu::emulator {
namespace {

enum Kind : uint32_t { shuffleKind, voteKind, matchKind, reduxKind, electKind, barrierKind };

// Active lanes with the same member mask.
struct Group {
  uint32_t members, lanes;
};

// Groups the active lanes by the masks at `members`; returns the number of groups.
int findGroups(Warp& warp, const uint32_t* members, Group (&groups)[laneCount]) {
  int count = 0;
  for (uint32_t left = warp.active; left; left &= ~groups[count++].lanes) {
    const uint32_t mask = members[__builtin_ctz(left)];
    uint32_t lanes = 0;
    for (uint32_t others = left; others; others &= others - 1)
      if (members[__builtin_ctz(others)] == mask) lanes |= others & -others;
    groups[count] = {mask | lanes, lanes};
  }
  return count;
}

// Several groups of lanes are at one instruction, each with its own members. If all groups are complete, they take part one after the
// other; otherwise they diverge, and each waits for its own members.
const Inst* syncGroups(Warp& warp, const Inst* inst, const WarpSync& sync, const Group* groups, int count) {
  const Inst* again[laneCount];
  uint32_t masks[laneCount];
  bool complete = true;
  for (int i = 0; i < count; ++i) {
    again[i] = inst;
    masks[i] = groups[i].lanes;
    complete &= ((groups[i].members & warp.live()) & ~groups[i].lanes) == 0;
  }
  if (!complete) return warp.divergeMany(nullptr, again, masks, count);
  for (int i = 0; i < count; ++i) {
    warp.setActive(groups[i].lanes);
    sync.leave(warp, inst);
    sync.take(warp, inst, groups[i].members);
  }
  warp.restoreActive();
  return inst + 1;
}

// The lanes in the mask of operand `Members` take part in `Sync`, and the executing lane in any case, because PTX does not define a mask
// without its own lane.
template <const WarpSync& Sync, Kind K, int Members>
const Inst* collective(Warp& warp, const Inst* inst) {
  const uint32_t* members = warp.lanes<uint32_t>(inst->op[Members]);
  const uint32_t first = members[warp.firstActive()];
  uint32_t different = 0;
  for (int lane = 0; lane < laneCount; ++lane)
    different |= (members[lane] ^ first) & (0u - ((warp.active >> lane) & 1));
  if (different == 0) return warp.warpSync(inst, Sync, K, first | warp.active);
  Group groups[laneCount];
  const int count = findGroups(warp, members, groups);
  return syncGroups(warp, inst, Sync, groups, count);
}

template <class F>
void forActive(Warp& warp, F each) {
  for (uint32_t left = warp.active; left; left &= left - 1) each(__builtin_ctz(left));
}

template <int Operand>
void leave32(Warp& warp, const Inst* inst) {
  const uint32_t* value = warp.lanes<uint32_t>(inst->op[Operand]);
  if (warp.active == ~0u)
    for (int lane = 0; lane < laneCount; ++lane) warp.exchange[lane] = value[lane];
  else
    forActive(warp, [&](int lane) { warp.exchange[lane] = value[lane]; });
}

// ---- shfl (PTX ISA, shfl.sync: the pseudocode)
struct ShuffleSource {
  int lane;
  bool inRange;
};

ShuffleSource shuffleSource(ShuffleMode mode, int lane, uint32_t b, uint32_t c) {
  const int by = static_cast<int>(b & 31), clamp = static_cast<int>(c & 31), segment = static_cast<int>(c >> 8 & 31);
  const int most = (lane & segment) | (clamp & ~segment), least = lane & segment;
  int source = 0;
  bool inRange = false;
  switch (mode) {
    case ShuffleMode::up:
      source = lane - by, inRange = source >= most;
      break;
    case ShuffleMode::down:
      source = lane + by, inRange = source <= most;
      break;
    case ShuffleMode::bfly:
      source = lane ^ by, inRange = source <= most;
      break;
    case ShuffleMode::idx:
      source = least | (by & ~segment), inRange = source <= most;
      break;
  }
  return {inRange ? source & 31 : lane, inRange};
}

void takeShuffle(Warp& warp, const Inst* inst, uint32_t) {
  const auto mode = static_cast<ShuffleMode>(inst->imm);
  uint32_t* d = warp.lanes<uint32_t>(inst->op[0]);
  uint32_t* p = warp.lanes<uint32_t>(inst->op[1]);
  const uint32_t* b = warp.lanes<uint32_t>(inst->op[3]);
  const uint32_t* c = warp.lanes<uint32_t>(inst->op[4]);
  forActive(warp, [&](int lane) {
    const ShuffleSource source = shuffleSource(mode, lane, b[lane], c[lane]);
    d[lane] = static_cast<uint32_t>(warp.exchange[source.lane]);
    p[lane] = source.inRange ? ~0u : 0;
  });
}
constexpr WarpSync shuffleSync{leave32<2>, takeShuffle};

// ---- vote
void leaveVote(Warp& warp, const Inst* inst) {
  const uint32_t mask = maskOf(warp.lanes<uint32_t>(inst->op[1])) ^ (inst->imm & voteNegated ? ~0u : 0);
  forActive(warp, [&](int lane) { warp.exchange[lane] = (mask >> lane) & 1; });
}
uint32_t ballot(Warp& warp, uint32_t members) {
  uint32_t votes = 0;
  for (uint32_t left = members & warp.live(); left; left &= left - 1)
    if (warp.exchange[__builtin_ctz(left)]) votes |= 1u << __builtin_ctz(left);
  return votes;
}
void writeAll(Warp& warp, const Inst* inst, uint32_t value) {
  writeLanes<uint32_t>(warp, inst->op[0], [value](int) { return value; });
}
constexpr WarpSync voteAllSync{leaveVote, [](Warp& warp, const Inst* inst, uint32_t members) {
                                 writeAll(warp, inst, ballot(warp, members) == (members & warp.live()) ? ~0u : 0);
                               }};
constexpr WarpSync voteAnySync{leaveVote, [](Warp& warp, const Inst* inst, uint32_t members) {
                                 writeAll(warp, inst, ballot(warp, members) ? ~0u : 0);
                               }};
constexpr WarpSync voteUniformSync{leaveVote, [](Warp& warp, const Inst* inst, uint32_t members) {
                                     const uint32_t votes = ballot(warp, members);
                                     writeAll(warp, inst, votes == 0 || votes == (members & warp.live()) ? ~0u : 0);
                                   }};
constexpr WarpSync voteBallotSync{
    leaveVote, [](Warp& warp, const Inst* inst, uint32_t members) { writeAll(warp, inst, ballot(warp, members)); }};

// ---- match
void leaveMatch(Warp& warp, const Inst* inst) {
  forActive(warp, [&](int lane) {
    warp.exchange[lane] =
        inst->imm == 8 ? warp.lanes<uint64_t>(inst->op[2])[lane] : warp.lanes<uint32_t>(inst->op[2])[lane];
  });
}
uint32_t equalTo(Warp& warp, uint64_t value, uint32_t members) {
  uint32_t equal = 0;
  for (uint32_t left = members & warp.live(); left; left &= left - 1)
    if (warp.exchange[__builtin_ctz(left)] == value) equal |= 1u << __builtin_ctz(left);
  return equal;
}
constexpr WarpSync matchAnySync{leaveMatch, [](Warp& warp, const Inst* inst, uint32_t members) {
                                  uint32_t* d = warp.lanes<uint32_t>(inst->op[0]);
                                  forActive(warp,
                                            [&](int lane) { d[lane] = equalTo(warp, warp.exchange[lane], members); });
                                }};
constexpr WarpSync matchAllSync{leaveMatch, [](Warp& warp, const Inst* inst, uint32_t members) {
                                  const uint32_t all = members & warp.live();
                                  const bool same = equalTo(warp, warp.exchange[__builtin_ctz(all)], members) == all;
                                  writeAll(warp, inst, same ? all : 0);
                                  writeLanes<uint32_t>(warp, inst->op[1], [same](int) { return same ? ~0u : 0; });
                                }};

// ---- redux
template <class T, T (*F)(T, T)>
void takeRedux(Warp& warp, const Inst* inst, uint32_t members) {
  uint32_t left = members & warp.live();
  auto value = static_cast<T>(warp.exchange[__builtin_ctz(left)]);
  for (left &= left - 1; left; left &= left - 1) value = F(value, static_cast<T>(warp.exchange[__builtin_ctz(left)]));
  writeAll(warp, inst, static_cast<uint32_t>(value));
}
template <class T, T (*F)(T, T)>
const Inst* redux(Warp& warp, const Inst* inst) {
  static constexpr WarpSync collectiveSync{leave32<1>, takeRedux<T, F>};
  return collective<collectiveSync, reduxKind, 2>(warp, inst);
}

struct ReduxRow {
  std::string_view name;
  Handler handler;
};
constexpr ReduxRow reduxRows[] = {
    {"add.u32", redux<uint32_t, add<uint32_t>>},    {"add.s32", redux<int32_t, add<int32_t>>},
    {"min.u32", redux<uint32_t, least<uint32_t>>},  {"min.s32", redux<int32_t, least<int32_t>>},
    {"max.u32", redux<uint32_t, most<uint32_t>>},   {"max.s32", redux<int32_t, most<int32_t>>},
    {"and.b32", redux<uint32_t, bitAnd<uint32_t>>}, {"or.b32", redux<uint32_t, bitOr<uint32_t>>},
    {"xor.b32", redux<uint32_t, bitXor<uint32_t>>},
};

// ---- elect, bar.warp.sync
void leaveNothing(Warp&, const Inst*) {}
constexpr WarpSync electSync{leaveNothing, [](Warp& warp, const Inst* inst, uint32_t members) {
                               const auto leader = static_cast<uint32_t>(__builtin_ctz(members & warp.live()));
                               writeAll(warp, inst, leader);
                               writeLanes<uint32_t>(warp, inst->op[1], [leader](int lane) {
                                 return static_cast<uint32_t>(lane) == leader ? ~0u : 0;
                               });
                             }};
constexpr WarpSync barrierSync{leaveNothing, [](Warp& warp, const Inst*, uint32_t) {
                                 if (SharedCheck* check = warp.block().check()) check->orderedInWarp(warp.index());
                               }};

}  // namespace

const Handler shuffle = collective<shuffleSync, shuffleKind, 5>;
const Handler voteAll = collective<voteAllSync, voteKind, 2>;
const Handler voteAny = collective<voteAnySync, voteKind, 2>;
const Handler voteUniform = collective<voteUniformSync, voteKind, 2>;
const Handler voteBallot = collective<voteBallotSync, voteKind, 2>;
const Handler matchAny = collective<matchAnySync, matchKind, 3>;
const Handler matchAll = collective<matchAllSync, matchKind, 3>;
const Handler elect = collective<electSync, electKind, 2>;
const Handler warpBarrier = collective<barrierSync, barrierKind, 0>;
const Inst* activeMask(Warp& warp, const Inst* inst) {
  writeAll(warp, inst, warp.active);
  return inst + 1;
}

Handler findRedux(std::string_view name) {
  for (const ReduxRow& each : reduxRows)
    if (each.name == name) return each.handler;
  return nullptr;
}

}  // namespace vgpu::emulator
