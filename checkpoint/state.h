// What a session's objects keep besides their recipes, over the table of kinds (stub/worker/kinds/): rows in the manifest, and
// the chunks of the bytes behind them, kind after kind, row after row. Used on the working thread, quiesced.
#pragma once

#include <functional>

#include "checkpoint/chunk-file.h"
#include "vgpu/snapshot/manifest.h"
#include "stub/worker/session-state.h"
#include "stub/worker/kinds/kind.h"

namespace vgpu::checkpoint {

using namespace snapshot;

// Throws kj::Exception, for a person, if an object cannot be saved.
StateTables saveState(stub::SessionState& on);

// Refuses the tables, naming the one, if one has rows that its kind does not have, or is of a kind that this build does not know.
// `devices`: of the session.
void requireValid(const StateTables& state, size_t devices, const Refusal& refuse);
// The same of a snapshot's, none of which may be missing.
void requireValid(const SnapshotReader& directory, const Manifest& manifest);

// One step of a restore, for each kind that has it: prepare before the recipes are executed, compare and restore after them.
// Throws as the step does.
using RestoreStep = void (*stub::KindModule::*)(stub::SessionState& on, const Rows& rows);
void runStep(stub::SessionState& on, const StateTables& state, RestoreStep step);

// Behind all rows.
uint64_t bytesOf(const StateTables& state);

// How those are cut into chunks.
ChunkPlan planOf(const StateTables& state);

// All that a save would read, and cut as it would. `digester`: with their digests, while the GPUs are idle; nullptr: without.
std::vector<DevicePiece> devicePieces(stub::SessionState& on, const Digester* digester);

// Called with each piece's bytes when they are on their way.
using Moved = std::function<void(size_t bytes)>;
// `where`: its room and its hold say where the bytes go. `residence`: of chunks that lie in device memory without gaps.
using ResidenceOf = std::function<Residence(size_t chunk, const DevicePiece& piece)>;
// `keep`: what source.keep does with one that lies so.
using KeepPiece = std::function<bool(const NewPiece& one, const DevicePiece& from)>;
void saveBytes(stub::SessionState& on, ChunkSink& sink, ChunkSource where, const StateTables& state, const Moved& moved,
               const ResidenceOf& residence = nullptr, const KeepPiece& keep = nullptr);
// The places in device memory of planOf(state)'s pieces, in order; nothing for one that lies otherwise.
std::vector<std::optional<DevicePiece>> placesOf(const StateTables& state);

// Marks those of the chunks of `saved` from number `first` on, `state`'s, that device memory has already, as its digests say:
// Form::resident, and compared. After compareOnGpus(). Returns their bytes.
uint64_t markResident(stub::SessionState& on, SavedChunks& saved, size_t first, const StateTables& state);

// Leaves it to the GPUs to compare the chunks in files with their digests, as far as they can: a processor does 4 GB/s. Before
// they are read; restoreBytes() compares them.
void compareOnGpus(const stub::Driver& driver, SavedChunks& saved, size_t first, const StateTables& state);

// After the step compare. `reading` is of planOf(state), whose chunks are those of `saved` from number `first` on. Throws
// kj::Exception as ChunkReading does.
void restoreBytes(stub::SessionState& on, StagingRing& ring, ChunkReading& reading, const SavedChunks& saved, size_t first,
                  const StateTables& state, const Moved& moved);

}  // namespace vgpu::checkpoint
