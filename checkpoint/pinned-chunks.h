// Chunks that go to pinned memory, and come back from there, without a ring between (pinned-memory.h): GPUs copy them straight
// into their room and out of it, and digest what they have copied. Of the thread that saves or restores.
#pragma once

#include <span>
#include <vector>

#include "checkpoint/chunk-file.h"

namespace vgpu::checkpoint {

// Puts pieces into source.room and adds them to `sink`; returns those for which there is no room. Those that are there already
// are not copied. When this returns or throws, no copy is on its way.
std::vector<NewPiece> pinPieces(stub::SessionState* on, ChunkSink& sink, std::vector<NewPiece> pieces, const ChunkSource& source);

// Puts pieces where source.hold says, leaves them to source.keep, or puts them where source.holdLast says; returns those for
// which there is no room. When this returns or throws, no copy is on its way.
std::vector<NewPiece> holdPieces(stub::SessionState* on, std::vector<NewPiece> pieces, const ChunkSource& source);

// The same places, of form pinned for the chunks that `room` has. `plans`: of these chunks, one after the other; `key`: of their
// digests.
std::vector<ChunkPlace> findPinned(const PinnedRoom& room, const DigestKey& key, std::vector<ChunkPlace> places,
                                   std::vector<ChunkPlan> plans);

// The bytes of a chunk of form pinned.
std::span<const std::byte> pinnedBytes(const SavedChunks& saved, size_t chunk, size_t bytes);

// Compares chunks of form pinned, by number and size, with their digests, by several threads. Throws kj::Exception that names one
// that differs.
struct PinnedPiece {
  size_t chunk, bytes;
};
void requirePinned(const SavedChunks& saved, std::span<const PinnedPiece> pieces);
// What it throws.
[[noreturn]] void refusePinned(size_t chunk);

// Those of form pinned among the chunks of `plan`, the first of which is number `first`.
std::vector<PinnedPiece> pinnedOf(const SavedChunks& saved, size_t first, ChunkPlan plan);

}  // namespace vgpu::checkpoint
