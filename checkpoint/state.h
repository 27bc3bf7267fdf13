// The state of a session's objects besides their recipes, for all kinds (stub/worker/kinds/): rows in the manifest, and the chunks of the
// rows' bytes, kind by kind, row by row. Used on the working thread, quiesced.
#pragma once

#include <functional>

#include "checkpoint/chunk-file.h"
#include "vgpu/snapshot/manifest.h"
#include "stub/worker/session-state.h"
#include "stub/worker/kinds/kind.h"

namespace vgpu::checkpoint {

using namespace snapshot;

// Throws kj::Exception with a message for the person if an object cannot be saved.
StateTables saveState(stub::SessionState& on);

// Refuses the tables, naming the invalid one, if a table has rows that do not fit its kind, or is of a kind that this build does not know.
// `devices`: number of the session's devices.
void requireValid(const StateTables& state, size_t devices, const Refusal& refuse);
// The same for a snapshot's tables; none may be missing.
void requireValid(const SnapshotReader& directory, const Manifest& manifest);

// One step of a restore, for each kind that defines it: prepare before the recipes are executed, compare and restore after them. Throws as
// the step does.
using RestoreStep = void (*stub::KindModule::*)(stub::SessionState& on, const Rows& rows);
void runStep(stub::SessionState& on, const StateTables& state, RestoreStep step);

// The bytes of all rows.
uint64_t bytesOf(const StateTables& state);

// How these bytes are cut into chunks.
ChunkPlan planOf(const StateTables& state);

// All pieces that a save would read, cut in the same way. `digester`: computes their digests, while the GPUs are idle; nullptr: without.
std::vector<DevicePiece> devicePieces(stub::SessionState& on, const Digester* digester);

// Called with the size of each piece whose copy has begun.
using Moved = std::function<void(size_t bytes)>;
// `where`: its `room` and `hold` say where the bytes go. `residence`: for chunks that are contiguous in device memory.
using ResidenceOf = std::function<Residence(size_t chunk, const DevicePiece& piece)>;
// `keep`: implements source.keep for such a chunk.
using KeepPiece = std::function<bool(const NewPiece& one, const DevicePiece& from)>;
void saveBytes(stub::SessionState& on, ChunkSink& sink, ChunkSource where, const StateTables& state, const Moved& moved,
               const ResidenceOf& residence = nullptr, const KeepPiece& keep = nullptr);
// The places in device memory of planOf(state)'s pieces, in order; nothing for a piece that is not contiguous there.
std::vector<std::optional<DevicePiece>> placesOf(const StateTables& state);

// Marks the chunks of `state` (those of `saved` from index `first` on) that device memory already has, by their digests: as Form::resident,
// and verified. Call it after compareOnGpus(). Returns their bytes.
uint64_t markResident(stub::SessionState& on, SavedChunks& saved, size_t first, const StateTables& state);

// Leaves the digests of chunks in files to the GPUs to verify, as far as possible: a processor does 4 GB/s. Call it before the chunks are
// read; restoreBytes() verifies them.
void compareOnGpus(const stub::Driver& driver, SavedChunks& saved, size_t first, const StateTables& state);

// Call it after the step compare. `reading` reads planOf(state), whose chunks are those of `saved` from index `first` on. Throws
// kj::Exception as ChunkReading does.
void restoreBytes(stub::SessionState& on, StagingRing& ring, ChunkReading& reading, const SavedChunks& saved, size_t first,
                  const StateTables& state, const Moved& moved);

}  // namespace vgpu::checkpoint
