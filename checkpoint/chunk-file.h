// Chunks on their way between device memory and packs. What is kept — ranges of memory, images — is cut into chunks of at most
// 2 MiB; the calling thread, which has the devices' contexts, copies them through a ring of pinned memory while several threads
// digest, compress and write, or read, decompress and verify. So link, processors and disk work at the same time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "vgpu/base/phase-times.h"
#include "checkpoint/pinned-memory.h"
#include "checkpoint/staging-ring.h"
#include "checkpoint/transfers.h"
#include "vgpu/snapshot/chunk-sink.h"
#include "vgpu/snapshot/manifest.h"
#include "vgpu/snapshot/snapshot-reader.h"

namespace vgpu::checkpoint {

using namespace snapshot;

// With fewer, a thread and its pack cost more than they save.
constexpr size_t chunksOfThread = 8;
// A copy of 2 MiB takes the link 38 us, and its beginning another 1 or 2.
constexpr size_t mostCopiedAtOnce = 8 * chunkBytes;

// How things of given sizes are cut.
class ChunkPlan {
 public:
  explicit ChunkPlan(std::vector<uint64_t> sizes) : sizes(std::move(sizes)) {}

  struct Piece {
    size_t item;
    uint64_t offset;
    size_t bytes;  // <= chunkBytes, of several that are copied at once <= mostCopiedAtOnce

    // Whether it goes on with `next`, and both can be copied at once.
    bool goesOnWith(const Piece& next) const {
      return next.item == item && next.offset == offset + bytes && bytes + next.bytes <= mostCopiedAtOnce;
    }
  };
  // The next one, in order; nothing behind the last.
  std::optional<Piece> next();
  // How many there are in all, and of how many bytes.
  size_t count() const;
  uint64_t bytes() const;

 private:
  std::vector<uint64_t> sizes;
  size_t item = 0;
  uint64_t offset = 0;
};

using Piece = ChunkPlan::Piece;

ChunkPlan planOf(const std::vector<SavedBlob>& blobs);

// The device of whose copies the last ones are a piece's; nothing if its bytes are where they should be.
using OnItsWay = std::optional<unsigned>;

// A chunk that lies in a device's memory without gaps, as it was when it was digested.
struct DevicePiece {
  unsigned device = 0;
  uint64_t address = 0;
  size_t bytes = 0;
  std::optional<Digest> digest;
};

// Of a piece that is restored by a worker which may have it already: whether that has it, or must get it by another way than files.
enum class Residence { inFiles, missing, there };

// A piece whose bytes nobody has yet.
struct NewPiece {
  Piece piece;
  size_t chunk;
  std::optional<Digest> digest;  // after ChunkSink::has()
};

// Where the pieces of a plan come from, and go to. Called in order, on the calling thread.
struct ChunkSource {
  std::function<OnItsWay(const Piece&, std::byte* out)> fill;
  // Whether fill() takes pieces of an item that are larger than a chunk, as one copy.
  std::function<bool(size_t item)> isFlat = nullptr;
  // The digest of a piece, if it is known before its bytes are; those that the sink has already are not filled.
  std::function<std::optional<Digest>(const Piece&)> digest = nullptr;
  // Asked before the digest is looked for. Those that are missing are for `hold`.
  std::function<Residence(size_t chunk, const Piece&, const std::optional<Digest>&)> residence = nullptr;
  // Told of those that are not filled.
  std::function<void(size_t bytes)> found = nullptr;
  // Where they are put, as far as there is room; those for which there is none are written.
  const PinnedRoom* room = nullptr;
  // Where one is put in the place of that, to be added to the sink later; nullptr: it is written now.
  std::function<std::byte*(const NewPiece&)> hold = nullptr;
  // For which that has no room: what keeps one by itself, to be added to the sink later, or false; then where it is put likewise.
  std::function<bool(const NewPiece&)> keep = nullptr;
  std::function<std::byte*(const NewPiece&)> holdLast = nullptr;
  // What is told where the time goes, and counts what was copied.
  PhaseClock* clock = nullptr;
  uint64_t* copied = nullptr;

  void endPhase(const char* phase) const {
    if (clock != nullptr) clock->end(phase);
  }
  void noteCopied(size_t bytes) const {
    if (copied != nullptr) *copied += bytes;
  }
};

// Adds every piece of `plan` to `sink`: first all that it knows by their digests, then the others, by as many threads as pay. `on`: whose
// GPUs copy; nullptr if fill() has the bytes at once.
void writeChunks(stub::SessionState* on, ChunkSink& sink, ChunkPlan plan, const ChunkSource& source);
// Waits until the disk has all that was written.
void finishChunks(ChunkSink& sink);

constexpr bool isInFile(Form form) { return form != Form::zero && form != Form::pinned && form != Form::resident; }

// What is in the packs of a snapshot.
struct SavedChunks {
  // Of `store`, whose names the list has, for the chunks of these plans, one after the other. The store must live longer. Throws
  // kj::Exception that says which chunk it lacks.
  SavedChunks(const SnapshotReader& directory, std::vector<ChunkPlace> places, ChunkStore& store, std::vector<ChunkPlan> plans);
  SavedChunks(const SnapshotReader& directory, std::vector<ChunkPlace> places, std::span<const uint64_t> packs, const DigestKey& key)
      : places(std::move(places)), packs(directory.openPacks(packs)), digester(key) {}
  std::vector<ChunkPlace> places;
  const std::vector<PackReader> packs;
  const Digester digester;
  const PinnedRoom* room = nullptr;  // has those of form pinned (pinned-chunks.h), which nobody has compared with their digests
  // When a chunk is compared with its digest: as it is read from a file, on the device when all are there (state.h), or it has been.
  enum class Compared : uint8_t { asRead, onDevice, already };
  std::vector<Compared> compared;  // empty: all in files as they are read
  Compared whenCompared(size_t chunk) const { return compared.empty() ? Compared::asRead : compared[chunk]; }

 private:
  struct Resolved;
  SavedChunks(Resolved&& resolved, const DigestKey& key);
  static Resolved resolve(const SnapshotReader& directory, std::vector<ChunkPlace> places, ChunkStore& store,
                          std::vector<ChunkPlan> plans);
};

// For a chunk in a file.
[[noreturn]] void refuseDigest(const SavedChunks& saved, size_t chunk);

// Reads the chunks of `plan`, the first of which is number `first`. Threads begin to read at once, as far as the ring's slots go.
class ChunkReading {
 public:
  ChunkReading(StagingRing& ring, const SavedChunks& saved, size_t first, ChunkPlan plan);
  ~ChunkReading();
  ChunkReading(const ChunkReading&) = delete;
  ChunkReading& operator=(const ChunkReading&) = delete;

  // Once. `take` is called in order on the calling thread; `bytes` is nullptr for a piece of zeros, and may be read until the
  // copies that `take` has begun are done. Throws kj::Exception that names the file, the chunk and the check. Chunks are compared
  // with their digests, but those that are compared later. Of items that are flat, `take` gets chunks of zeros or of pinned
  // memory that follow each other as one piece.
  using Take = std::function<OnItsWay(const Piece&, const std::byte* bytes)>;
  void run(Transfers* transfers, const Take& take, const std::function<bool(size_t item)>& isFlat = nullptr);

 private:
  struct State;
  std::unique_ptr<State> state;
};

}  // namespace vgpu::checkpoint
