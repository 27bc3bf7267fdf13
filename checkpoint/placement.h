// Module images at the addresses that the program knows.
//
// Where a variable lies is the driver's decision, and it decides by what is loaded at that moment: the same loads give
// the same places. A program that has unloaded modules has left gaps that later ones filled or did not, and nobody
// keeps that history. So the modules are loaded as they were; where that puts one elsewhere, the memory is filled
// (placeholder-modules.h), and each module is loaded again with nothing open but the places of its own variables.
//
// Used by the working thread during a restore. Driver calls only that any program can make.
#pragma once

#include <vector>

#include "checkpoint/manifest.h"
#include "stub/worker/session-state.h"
#include "vgpu/objects/object-list.h"

namespace vgpu::checkpoint {

// Loads the modules that live, of all of `records`; `variables` are the rows of their kind (stub/worker/kinds/module.h). One that
// cannot be put in its place is loaded all the same: the kind's compare names it. Throws kj::Exception if one cannot be loaded at
// all.
void placeModules(stub::SessionState& on, const std::vector<ObjectRecord>& records, const Rows& variables);

// Whether placeModules() has executed the frames of that record's recipe which make it.
bool isPlacedModule(const ObjectRecord& record);

}  // namespace vgpu::checkpoint
