// mbarrier objects and asynchronous copies. A copy is made at once, which PTX allows; so waiting for a group of copies does nothing.
#pragma once

#include "stub/emulator/ptx/run/access.h"

namespace vgpu::emulator {

// For all: op[0] output (a 64-bit state, a predicate or a count), op[1] address, op[2] operand; form as for an access.
const Inst* mbarrierInit(Warp&, const Inst*);          // op[2] count
const Inst* mbarrierArrive(Warp&, const Inst*);        // op[2] count
const Inst* mbarrierArriveDrop(Warp&, const Inst*);    // op[2] count
const Inst* mbarrierArriveExpect(Warp&, const Inst*);  // op[2] bytes
const Inst* mbarrierDropExpect(Warp&, const Inst*);    // op[2] bytes
const Inst* mbarrierExpect(Warp&, const Inst*);        // op[2] bytes
const Inst* mbarrierComplete(Warp&, const Inst*);      // op[2] bytes
const Inst* mbarrierTestState(Warp&, const Inst*);     // op[2] state
const Inst* mbarrierTestParity(Warp&, const Inst*);    // op[2] parity
const Inst* mbarrierPending(Warp&, const Inst*);       // op[1] state, no address

// `bytes` have arrived for the barrier at a generic address. False after a fault.
bool completeTransaction(Warp&, const Inst*, int lane, uint64_t address, uint32_t bytes);

// op[0] shared address (64 bits), op[1] global address (64 bits), op[2] bytes to read (the rest is zero); op[3]: bytes; addresses include
// their offsets.
const Inst* copyAsync(Warp&, const Inst*);

}  // namespace vgpu::emulator
