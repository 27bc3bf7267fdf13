// What a session's objects keep besides their recipes, over the table of kinds (stub/worker/kinds/): rows in the manifest, and the
// bytes behind them in the file `bytes`, kind after kind, row after row. Used on the working thread, quiesced.
#pragma once

#include <functional>

#include "checkpoint/chunk-file.h"
#include "checkpoint/manifest.h"
#include "stub/worker/execution.h"

namespace vgpu::checkpoint {

// Throws kj::Exception, for a person, if an object cannot be saved.
StateTables saveState(stub::Execution& on);

// Refuses the manifest, naming the table, if one has rows that its kind does not have, or is of a kind that this build does not
// know.
void requireValid(const SnapshotReader& directory, const Manifest& manifest);

// Before the recipes are executed, and after them: each object is what it was. Throws kj::Exception that names one which is not.
void prepareState(stub::Execution& on, const StateTables& state);
void compareState(stub::Execution& on, const StateTables& state);
void restoreState(stub::Execution& on, const StateTables& state);

// Behind all rows.
uint64_t bytesOf(const StateTables& state);

// Called with each piece's bytes once they are where they should be.
using Moved = std::function<void(size_t bytes)>;
void saveBytes(stub::Execution& on, Pipeline& pipeline, FileWriter& file, const StateTables& state, const Moved& moved);
// After compareState(). Throws kj::Exception as readChunks() does.
void restoreBytes(stub::Execution& on, Pipeline& pipeline, FileReader& file, const StateTables& state, const Moved& moved);

}  // namespace vgpu::checkpoint
