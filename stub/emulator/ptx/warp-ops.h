// Collectives of a warp (shfl, vote, match, redux, …).
#pragma once

#include "handlers.h"

namespace vgpu::emulator {

enum class ShuffleMode : uint8_t { up, down, bfly, idx };
// shfl: op d, p, a, b, c, members; imm: ShuffleMode
const Inst* shuffle(Warp&, const Inst*);
// vote: op d, predicate, members; imm: kVoteNegated
constexpr uint64_t kVoteNegated = 1;
const Inst* voteAll(Warp&, const Inst*);
const Inst* voteAny(Warp&, const Inst*);
const Inst* voteUniform(Warp&, const Inst*);
const Inst* voteBallot(Warp&, const Inst*);
// match: op d, p, value, members; imm: bytes of the value
const Inst* matchAny(Warp&, const Inst*);
const Inst* matchAll(Warp&, const Inst*);
// redux: op d, value, members; by name: `add.u32`, `and.b32`, …; nullptr where there is none
Handler findRedux(std::string_view name);
// elect: op d, p, members
const Inst* elect(Warp&, const Inst*);
const Inst* warpBarrier(Warp&, const Inst*);  // op members
const Inst* activeMask(Warp&, const Inst*);   // op d

}  // namespace vgpu::emulator
