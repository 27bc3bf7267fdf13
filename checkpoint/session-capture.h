// The parts of a save, for who does them at different times (live-snapshot.h): what is taken of a quiesced session besides the
// bytes of chunks, where chunks go, and how all of it becomes a snapshot.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/chunk-file.h"
#include "checkpoint/snapshot.h"
#include "vgpu/objects/object-list.h"

namespace vgpu::checkpoint {

struct SessionCapture {
  Manifest manifest;  // but for its files
  std::vector<ObjectRecord> records;
  PendingCalls pending;
  std::string output;  // printed and not fetched
};
// `objects`: see save(). Throws kj::Exception, for a person, if an object cannot be saved.
SessionCapture captureSession(stub::SessionState& on, const std::string& objects, const Identity& identity);

// Where the chunks of a new snapshot go: the store that its directory is in, or its packs.
struct NewChunks {
  explicit NewChunks(SnapshotWriter& directory);
  std::unique_ptr<ChunkStore> store;
  std::unique_ptr<ChunkSink> sink;
};

// Digests of images that the sink knows already, by image and offset.
using ImageDigests = std::map<std::pair<uint64_t, uint64_t>, Digest>;
// The images' chunks: the first of a snapshot's list. `where`: its room and its hold say where the bytes go.
void saveImages(const stub::SessionState& on, ChunkSink& sink, ChunkSource where, const ImageDigests& known,
                const std::vector<SavedBlob>& blobs, const Progress& progress);
// Of the modules that the session has.
std::vector<SavedBlob> imagesOf(const stub::SessionState& on);

// When all chunks have been added. There is a snapshot when this returns. The report has the phases of `clock`.
Report publish(SessionCapture& capture, NewChunks& chunks, SnapshotWriter& directory, PhaseClock& clock);

}  // namespace vgpu::checkpoint
