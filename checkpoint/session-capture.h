// The steps of a save, for operations that do them at different times (live-snapshot.h): capturing everything of a quiesced session except
// the bytes of chunks, choosing the destination of chunks, and publishing the snapshot.
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
  Manifest manifest;  // except `files`
  std::vector<ObjectRecord> records;
  PendingCalls pending;
  std::string output;  // printed by kernels and not fetched yet
};
// `objects`: as for save(). Throws kj::Exception with a message for the person if an object cannot be saved.
SessionCapture captureSession(stub::SessionState& on, const std::string& objects, const Identity& identity);

// The destination of a new snapshot's chunks: the store that its directory is in, or its own packs.
struct NewChunks {
  explicit NewChunks(SnapshotWriter& directory);
  std::unique_ptr<ChunkStore> store;
  std::unique_ptr<ChunkSink> sink;
};

// Digests of images that the sink already knows, by image and offset.
using ImageDigests = std::map<std::pair<uint64_t, uint64_t>, Digest>;
// Saves the images' chunks, the first in a snapshot's list. `where`: its `room` and `hold` say where the bytes go.
void saveImages(const stub::SessionState& on, ChunkSink& sink, ChunkSource where, const ImageDigests& known,
                const std::vector<SavedBlob>& blobs, const Progress& progress);
// The images of the session's modules.
std::vector<SavedBlob> imagesOf(const stub::SessionState& on);

// Call it when all chunks have been added. The snapshot exists when this returns. The report contains the phases of `clock`.
Report publish(SessionCapture& capture, NewChunks& chunks, SnapshotWriter& directory, PhaseClock& clock);

}  // namespace vgpu::checkpoint
