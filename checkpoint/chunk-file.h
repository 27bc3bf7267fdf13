// Transfers chunks between device memory and packs. Saved data (ranges of memory, images) is cut into chunks of at most 2 MiB. The calling
// thread, which has the devices' contexts, copies them through a ring of pinned memory while several threads digest, compress and write, or
// read, decompress and verify. So link, processors and disk work at the same time.
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

// With fewer chunks, a thread and its pack cost more than they save.
constexpr size_t chunksOfThread = 8;
// A copy of 2 MiB occupies the link for 38 us, and starting it takes another 1 or 2.
constexpr size_t mostCopiedAtOnce = 8 * chunkBytes;

// How items of given sizes are cut into chunks.
class ChunkPlan {
 public:
  explicit ChunkPlan(std::vector<uint64_t> sizes) : sizes(std::move(sizes)) {}

  struct Piece {
    size_t item;
    uint64_t offset;
    size_t bytes;  // at most chunkBytes; for several chunks that are copied at once, at most mostCopiedAtOnce

    // Whether `next` continues this piece, and both can be copied at once.
    bool goesOnWith(const Piece& next) const {
      return next.item == item && next.offset == offset + bytes && bytes + next.bytes <= mostCopiedAtOnce;
    }
  };
  // The next piece, in order; nothing after the last.
  std::optional<Piece> next();
  // The number of all pieces, and of their bytes.
  size_t count() const;
  uint64_t bytes() const;

 private:
  std::vector<uint64_t> sizes;
  size_t item = 0;
  uint64_t offset = 0;
};

using Piece = ChunkPlan::Piece;

ChunkPlan planOf(const std::vector<SavedBlob>& blobs);

// The device whose latest copies are those of a piece; nothing if the piece's bytes have already arrived.
using OnItsWay = std::optional<unsigned>;

// A chunk that is contiguous in device memory, with its digest at the time of digesting.
struct DevicePiece {
  unsigned device = 0;
  uint64_t address = 0;
  size_t bytes = 0;
  std::optional<Digest> digest;
};

// For a piece that a restoring worker may already have: it is in files, is there already, or is missing and must be sent outside of files.
enum class Residence { inFiles, missing, there };

// A piece whose bytes are stored nowhere yet.
struct NewPiece {
  Piece piece;
  size_t chunk;
  std::optional<Digest> digest;  // set after ChunkSink::has()
};

// Source and destination of a plan's pieces. The functions are called in order, on the calling thread.
struct ChunkSource {
  std::function<OnItsWay(const Piece&, std::byte* out)> fill;
  // Whether fill() takes pieces of an item that are larger than a chunk, as one copy.
  std::function<bool(size_t item)> isFlat = nullptr;
  // The digest of a piece, if it is known before its bytes are. Pieces whose digest the sink already has are not filled.
  std::function<std::optional<Digest>(const Piece&)> digest = nullptr;
  // Called before the digest is looked up. Missing pieces go to `hold`.
  std::function<Residence(size_t chunk, const Piece&, const std::optional<Digest>&)> residence = nullptr;
  // Called for pieces that are not filled.
  std::function<void(size_t bytes)> found = nullptr;
  // Pieces go there as far as there is room; the others are written.
  const PinnedRoom* room = nullptr;
  // Returns where to put a piece instead, to be added to the sink later; nullptr: the piece is written now.
  std::function<std::byte*(const NewPiece&)> hold = nullptr;
  // For pieces for which `hold` has no room: `keep` keeps the piece itself, to be added to the sink later, or returns false; then holdLast
  // is called like `hold`.
  std::function<bool(const NewPiece&)> keep = nullptr;
  std::function<std::byte*(const NewPiece&)> holdLast = nullptr;
  // Measures the phases, and counts the copied bytes.
  PhaseClock* clock = nullptr;
  uint64_t* copied = nullptr;

  void endPhase(const char* phase) const {
    if (clock != nullptr) clock->end(phase);
  }
  void noteCopied(size_t bytes) const {
    if (copied != nullptr) *copied += bytes;
  }
};

// Adds every piece of `plan` to `sink`: first the pieces that the sink knows by their digests, then the others, with as many threads as are
// worthwhile. `on`: the session whose GPUs copy; nullptr if fill() has the bytes at once.
void writeChunks(stub::SessionState* on, ChunkSink& sink, ChunkPlan plan, const ChunkSource& source);
// Waits until everything written is on disk.
void finishChunks(ChunkSink& sink);

constexpr bool isInFile(Form form) { return form != Form::zero && form != Form::pinned && form != Form::resident; }

// The chunks in the packs of a snapshot.
struct SavedChunks {
  // For a snapshot in `store`: the list contains chunk names, for the chunks of these plans, one plan after the other. The store must live
  // longer. Throws kj::Exception that says which chunk it lacks.
  SavedChunks(const SnapshotReader& directory, std::vector<ChunkPlace> places, ChunkStore& store, std::vector<ChunkPlan> plans);
  SavedChunks(const SnapshotReader& directory, std::vector<ChunkPlace> places, std::span<const uint64_t> packs, const DigestKey& key)
      : places(std::move(places)), packs(directory.openPacks(packs)), digester(key) {}
  std::vector<ChunkPlace> places;
  const std::vector<PackReader> packs;
  const Digester digester;
  const PinnedRoom* room = nullptr;  // has the chunks of form pinned (pinned-chunks.h), whose digests have not been verified
  // When a chunk's digest is verified: as it is read from a file, on the device when all chunks are there (state.h), or already.
  enum class Compared : uint8_t { asRead, onDevice, already };
  std::vector<Compared> compared;  // empty: all are verified as they are read from files
  Compared whenCompared(size_t chunk) const { return compared.empty() ? Compared::asRead : compared[chunk]; }

 private:
  struct Resolved;
  SavedChunks(Resolved&& resolved, const DigestKey& key);
  static Resolved resolve(const SnapshotReader& directory, std::vector<ChunkPlace> places, ChunkStore& store,
                          std::vector<ChunkPlan> plans);
};

// For a chunk in a file.
[[noreturn]] void refuseDigest(const SavedChunks& saved, size_t chunk);

// Reads the chunks of `plan`, the first of which has index `first`. Its threads begin to read at once, as far as the ring has slots.
class ChunkReading {
 public:
  ChunkReading(StagingRing& ring, const SavedChunks& saved, size_t first, ChunkPlan plan);
  ~ChunkReading();
  ChunkReading(const ChunkReading&) = delete;
  ChunkReading& operator=(const ChunkReading&) = delete;

  // Call it once. `take` is called in order on the calling thread; `bytes` is nullptr for a piece of zeros, and is valid until the copies
  // that `take` has begun are done. Verifies the digests of chunks except those that are verified later. Throws kj::Exception that names
  // the file, the chunk and the failed check. For flat items, `take` gets adjacent chunks of zeros or of pinned memory as one piece.
  // memory that follow each other as one piece.
  using Take = std::function<OnItsWay(const Piece&, const std::byte* bytes)>;
  void run(Transfers* transfers, const Take& take, const std::function<bool(size_t item)>& isFlat = nullptr);

 private:
  struct State;
  std::unique_ptr<State> state;
};

}  // namespace vgpu::checkpoint
