#include "checkpoint/write-out.h"

#include <fmt/format.h>

#include <cstring>

#include "checkpoint/chunk-file.h"
#include "checkpoint/pinned-chunks.h"
#include "checkpoint/progress.h"
#include "checkpoint/saved-snapshot.h"
#include "checkpoint/state.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/fault-point.h"
#include "vgpu/snapshot/replace-manifest.h"

namespace vgpu::checkpoint {

namespace {

// The chunks of a snapshot that are in `room`, each a plan's item of its own, and the pieces' places.
struct InMemory {
  std::vector<uint64_t> sizes;
  std::vector<ChunkPlace> places;
};

InMemory chunksIn(const PinnedRoom& room, const SnapshotReader& directory, const Manifest& manifest) {
  std::vector<ChunkPlan> plans{planOf(manifest.blobs), planOf(manifest.state)};
  auto places = findPinned(room, manifest.digestKey, loadChunks(directory, manifest), plans);
  InMemory found;
  size_t chunk = 0;
  for (auto& plan : plans)
    for (; auto piece = plan.next(); ++chunk) {
      if (places[chunk].form != Form::pinned) continue;
      found.sizes.push_back(piece->bytes);
      found.places.push_back(places[chunk]);
    }
  return found;
}

}  // namespace

Report writeOut(const std::string& path, const PinnedRoom& room, const Progress& progress) {
  SnapshotReader directory(path);
  Manifest manifest = readManifest(directory);
  requireValid(directory, manifest);
  auto store = storeOf(directory, manifest);
  if (store == nullptr) fail(fmt::format("the snapshot {} is in no store", path));
  InMemory memory = chunksIn(room, directory, manifest);
  ChunkSink sink(*store);
  ChunkPlan plan(memory.sizes);
  Phase phase(progress, "writing", plan.bytes());
  auto fill = [&](const Piece& piece, std::byte* out) -> OnItsWay {
    auto bytes = room.at(memory.places[piece.item].offset, piece.bytes);
    std::memcpy(out, bytes.data(), bytes.size());
    faultPoint("write.writing");
    phase.advance(piece.bytes);
    return std::nullopt;
  };
  writeChunks(nullptr, sink, plan, {.fill = fill});
  finishChunks(sink);
  auto written = sink.places();
  for (size_t chunk = 0; chunk < written.size(); ++chunk)
    if (written[chunk].digest != memory.places[chunk].digest) refusePinned(chunk);
  sink.commit();
  manifest.pool.clear();
  replaceManifest(path, encodeManifest(manifest));
  return {.deviceBytes = manifest.deviceBytes, .storedBytes = sink.writtenBytes(), .objects = manifest.objectCount};
}

}  // namespace vgpu::checkpoint
