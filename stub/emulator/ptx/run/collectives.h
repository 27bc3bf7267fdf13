// Collectives of a warp (shfl, vote, match, redux, …).
#pragma once

#include "stub/emulator/ptx/run/handlers.h"

namespace vgpu::emulator {

enum class ShuffleMode : uint8_t { up, down, bfly, idx };
// shfl: op d, p, a, b, c, members; imm: ShuffleMode
extern const Handler shuffle;
// vote: op d, predicate, members; imm: voteNegated
constexpr uint64_t voteNegated = 1;
extern const Handler voteAll;
extern const Handler voteAny;
extern const Handler voteUniform;
extern const Handler voteBallot;
// match: op d, p, value, members; imm: bytes of the value
extern const Handler matchAny;
extern const Handler matchAll;
// redux: op d, value, members; by name: `add.u32`, `and.b32`, …; nullptr if there is none
Handler findRedux(std::string_view name);
// elect: op d, p, members
extern const Handler elect;
extern const Handler warpBarrier;            // op members
const Inst* activeMask(Warp&, const Inst*);  // op d

}  // namespace vgpu::emulator
